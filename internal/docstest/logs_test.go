package docstest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const logPage = "docs/reference/logs.md"

type set = map[string]bool

// logCode is what the code logs: the levels and attributes of each message, and
// every attribute that some call sets, With included.
type logCode struct {
	levels, attributes map[string]set
	all                set
	functions          map[string]*ast.FuncDecl // by name, the last of each
}

func readLogCode(t *testing.T) *logCode {
	t.Helper()
	c := &logCode{levels: map[string]set{}, attributes: map[string]set{}, all: set{}, functions: map[string]*ast.FuncDecl{}}
	var functions []*ast.FuncDecl
	for _, folder := range programFolders(t) {
		names, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
					functions = append(functions, f)
					c.functions[f.Name.Name] = f
				}
			}
		}
	}
	for _, f := range functions {
		for node := range ast.Preorder(f) {
			if call, ok := node.(*ast.CallExpr); ok {
				c.note(f, call)
			}
		}
	}
	if len(c.levels) < 20 {
		t.Fatalf("found %d log lines in the code: correct this test", len(c.levels))
	}
	return c
}

// methods has the position of the message in calls of a slog.Logger, and of what wraps
// one.
var methods = map[string]int{"Debug": 0, "Info": 0, "Warn": 0, "Error": 0, "Log": 2, "With": -1, "logDebug": 0}

// note notes a call in function f if it logs.
func (c *logCode) note(f *ast.FuncDecl, call *ast.CallExpr) {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	at, ok := methods[selector.Sel.Name]
	if !ok || len(call.Args) <= at {
		return
	}
	names := c.names(f, call.Args[at+1:], call.Ellipsis.IsValid(), set{})
	if at >= 0 {
		message, ok := text(call.Args[at])
		if !ok {
			return
		}
		if c.levels[message] == nil {
			c.levels[message], c.attributes[message] = set{}, set{}
		}
		c.levels[message][strings.ToLower(strings.TrimPrefix(selector.Sel.Name, "log"))] = true
		maps.Copy(c.attributes[message], names)
	}
	maps.Copy(c.all, names)
}

// names returns the keys among the arguments of a log call in function f. seen
// has the variables and functions that were looked at.
func (c *logCode) names(f *ast.FuncDecl, args []ast.Expr, spread bool, seen set) set {
	names := set{}
	for i := 0; i < len(args); i++ {
		name, ok := text(args[i])
		switch {
		case ok:
			names[name] = true
			i++ // its value
		case spread && i == len(args)-1:
			maps.Copy(names, c.slice(f, args[i], seen))
		}
	}
	return names
}

// slice returns the keys in an expression that is a slice of attributes.
func (c *logCode) slice(f *ast.FuncDecl, e ast.Expr, seen set) set {
	names := set{}
	switch e := e.(type) {
	case *ast.CompositeLit:
		names = c.names(f, e.Elts, false, seen)
	case *ast.CallExpr:
		name := ""
		switch fun := e.Fun.(type) {
		case *ast.Ident:
			name = fun.Name
		case *ast.SelectorExpr:
			name = fun.Sel.Name
		}
		if name == "append" {
			maps.Copy(names, c.slice(f, e.Args[0], seen))
		}
		if len(e.Args) > 0 {
			maps.Copy(names, c.names(f, e.Args[1:], e.Ellipsis.IsValid(), seen))
		}
		helper := c.functions[name]
		if helper == nil || seen[name] {
			break
		}
		seen[name] = true
		for node := range ast.Preorder(helper) {
			if r, ok := node.(*ast.ReturnStmt); ok {
				for _, result := range r.Results {
					maps.Copy(names, c.slice(helper, result, seen))
				}
			}
		}
	case *ast.Ident:
		if key := f.Name.Name + " " + e.Name; !seen[key] {
			seen[key] = true
			maps.Copy(names, c.assigned(f, e.Name, seen))
		}
	}
	return names
}

// assigned returns the keys in what function f assigns to a variable.
func (c *logCode) assigned(f *ast.FuncDecl, variable string, seen set) set {
	names := set{}
	for node := range ast.Preorder(f) {
		assign, ok := node.(*ast.AssignStmt)
		if !ok {
			continue
		}
		for _, left := range assign.Lhs {
			if id, ok := left.(*ast.Ident); ok && id.Name == variable {
				for _, right := range assign.Rhs {
					maps.Copy(names, c.slice(f, right, seen))
				}
			}
		}
	}
	return names
}

// text returns the value of a string literal.
func text(e ast.Expr) (string, bool) {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(literal.Value)
	return value, err == nil
}

var (
	quoted  = regexp.MustCompile("`([^`]+)`")
	logItem = regexp.MustCompile("^- ((?:`[^`]+`(?:, )?)+)(?: \\(([^)]+)\\))?(?::|$)")
)

// TestLogLinesAreTheCode compares the list of log lines with the messages,
// levels and attributes that the code logs, both ways.
func TestLogLinesAreTheCode(t *testing.T) {
	code := readLogCode(t)
	general, docs := set{}, set{} // attributes of any line; messages
	section, levels := "", ""
	for _, line := range logItems(t) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = title
		}
		if title, ok := strings.CutPrefix(line, "### "); ok {
			levels = strings.ToLower(title)
		}
		item := logItem.FindStringSubmatch(line)
		if item == nil {
			continue
		}
		if section == "Attributes" {
			maps.Copy(general, names(item[1]))
			continue
		}
		listed := names(item[2])
		for name := range listed {
			if !code.all[name] {
				t.Errorf("%s has the attribute %q of %s, which the code never sets", logPage, name, item[1])
			}
		}
		for message := range names(item[1]) {
			docs[message] = true
			if code.levels[message] == nil {
				t.Errorf("%s has the log line %q, which is not in the code", logPage, message)
			}
			for level := range code.levels[message] {
				if level != "log" && !strings.Contains(levels, level) {
					t.Errorf("%s gives %q the level %q, the code %s", logPage, message, levels, level)
				}
			}
			for name := range code.attributes[message] {
				if !listed[name] && !general[name] {
					t.Errorf("%s does not list the attribute %s of %q", logPage, name, message)
				}
			}
		}
	}
	for message := range code.levels {
		if !docs[message] {
			t.Errorf("the log line %q is not in %s", message, logPage)
		}
	}
}

// logItems returns the headings and list items of the page, each as one line.
func logItems(t *testing.T) (lines []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, logPage))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\n")
		if rest, ok := strings.CutPrefix(line, "  "); ok && len(lines) > 0 {
			lines[len(lines)-1] += " " + rest
		} else {
			lines = append(lines, line)
		}
	}
	return lines
}

// names returns what stands in backquotes.
func names(s string) set {
	found := set{}
	for _, m := range quoted.FindAllStringSubmatch(s, -1) {
		found[m[1]] = true
	}
	return found
}
