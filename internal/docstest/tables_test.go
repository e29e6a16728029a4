package docstest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// rows returns the cells of the table rows of a page below a heading, up to the
// next heading, without the quotes around a cell.
func rows(t *testing.T, name, heading string) (out [][]string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	ssetest.Must(t, err)
	_, section, found := strings.Cut("\n"+string(data), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", name, heading)
	}
	section, _, _ = strings.Cut(section, "\n#")
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") {
			continue
		}
		row := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range row {
			row[i] = strings.Trim(strings.TrimSpace(row[i]), "`")
		}
		out = append(out, row)
	}
	return out
}

// programFiles returns the syntax of the files of the packages that log for the gateway:
// all but those of tests and of programs that measure.
func programFiles(t *testing.T) (files []*ast.File) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		folder, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case slices.Contains([]string{"e2e", "tools", "docsearch"}, folder):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		files = append(files, file)
		return err
	})
	ssetest.Must(t, err)
	return files
}

// literals returns the string literals in files.
func literals(files []*ast.File) set {
	all := set{}
	for _, file := range files {
		for node := range ast.Preorder(file) {
			if literal, ok := node.(*ast.BasicLit); ok {
				if value, ok := text(literal); ok {
					all[value] = true
				}
			}
		}
	}
	return all
}

// TestReasonsAreInTheCode compares the reasons in the tables of errors with those in the
// code, both ways.
func TestReasonsAreInTheCode(t *testing.T) {
	files := programFiles(t)
	literals, listed := literals(files), set{}
	for _, heading := range []string{"## JSON-RPC errors on the stream", "### Requests to remote servers", "### Initialization errors"} {
		found := 0
		for _, row := range rows(t, "docs/reference/errors.md", heading)[1:] {
			if !word.MatchString(row[0]) { // a code, or the head of another table
				continue
			}
			listed[row[0]] = true
			if found++; !literals[row[0]] {
				t.Errorf("docs/reference/errors.md has %s below %q, which is not in the code", row[0], heading)
			}
		}
		if found == 0 {
			t.Errorf("found nothing below %q", heading)
		}
	}
	inCode := set{}
	for _, file := range files {
		maps.Copy(inCode, reasons(file))
	}
	if len(inCode) < 20 {
		t.Fatalf("found %d reasons in the code: correct this test", len(inCode))
	}
	for reason := range inCode {
		if !listed[reason] {
			t.Errorf("docs/reference/errors.md does not have the reason %q", reason)
		}
	}
}

// TestTroubleshootingQuotesTheCode checks that the refusals by which users look for help are
// those of the code, as far as they are constant there.
func TestTroubleshootingQuotesTheCode(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(root, "docs/troubleshooting.md"))
	ssetest.Must(t, err)
	known := slices.Collect(maps.Keys(literals(programFiles(t))))
	for _, heading := range []string{"## 404 Not Found", "## 401 and 403"} {
		_, section, _ := strings.Cut(string(data), heading)
		section, _, _ = strings.Cut(section, "\n## ")
		items := refusal.FindAllStringSubmatch(section, -1)
		if len(items) < 3 {
			t.Errorf("found %d refusals below %q", len(items), heading)
		}
		for _, item := range items {
			for quote := range names(item[1]) {
				if !slices.ContainsFunc(known, func(text string) bool {
					return strings.HasPrefix(text, quote) || len(text) > len(quote)/2 && strings.HasPrefix(quote, text)
				}) {
					t.Errorf("docs/troubleshooting.md quotes %q below %q, which the code does not say", quote, heading)
				}
			}
		}
	}
}

// refusal is a list item that begins with what refusals say.
var refusal = regexp.MustCompile("(?m)^- ((?:`[^`]+`(?:, )?)+):")

// reasons returns the reasons that a file gives clients: the literals that it passes to
// ReasonError or, if it passes another value, assigns to a variable reason; and in the
// packages of upstreams its constants.
func reasons(file *ast.File) set {
	passed, assigned, computed := set{}, set{}, false
	note := func(to set, name string, value ast.Expr) {
		if text, ok := text(value); ok && strings.EqualFold(name, "reason") {
			to[text] = true
		}
	}
	for node := range ast.Preorder(file) {
		switch n := node.(type) {
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "ReasonError" {
				_, literal := text(n.Args[1])
				computed = computed || !literal
				note(passed, "reason", n.Args[1])
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if name, ok := to.(*ast.Ident); ok && len(n.Rhs) == len(n.Lhs) {
					note(assigned, name.Name, n.Rhs[i])
				}
			}
		case *ast.ValueSpec:
			upstream := file.Name.Name == "exchange" || file.Name.Name == "statelessserver"
			for i, name := range n.Names {
				if upstream && len(n.Values) > i && len(name.Name) > len("reason") {
					note(passed, name.Name[:len("reason")], n.Values[i])
				}
			}
		}
	}
	if computed {
		maps.Copy(passed, assigned)
	}
	return passed
}

var word = regexp.MustCompile(`^[a-z]+(_[a-z]+)+$|^[a-z]{6,}$`)
