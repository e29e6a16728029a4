package docstest_test

import (
	"go/ast"
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

// logCode is what the code logs: the levels of each message, and the attributes that its
// calls name themselves, without those of With and of slices.
type logCode struct{ levels, attributes map[string]set }

func readLogCode(t *testing.T, files []*ast.File) *logCode {
	t.Helper()
	c := &logCode{levels: map[string]set{}, attributes: map[string]set{}}
	for _, file := range files {
		for node := range ast.Preorder(file) {
			if call, ok := node.(*ast.CallExpr); ok {
				c.note(call)
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
var methods = map[string]int{"Debug": 0, "Info": 0, "Warn": 0, "Error": 0, "Log": 2, "logDebug": 0}

// note notes a call if it logs.
func (c *logCode) note(call *ast.CallExpr) {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	at, ok := methods[selector.Sel.Name]
	if !ok || len(call.Args) <= at {
		return
	}
	message, ok := text(call.Args[at])
	if !ok {
		return
	}
	if c.levels[message] == nil {
		c.levels[message], c.attributes[message] = set{}, set{}
	}
	c.levels[message][strings.ToLower(strings.TrimPrefix(selector.Sel.Name, "log"))] = true
	for i := at + 1; i < len(call.Args); i += 2 { // names, each with its value
		if name, ok := text(call.Args[i]); ok {
			c.attributes[message][name] = true
		}
	}
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
	files := programFiles(t)
	code, known := readLogCode(t, files), literals(files)
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
			if !known[name] {
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
