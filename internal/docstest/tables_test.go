package docstest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rows returns the cells of the table rows of a page below a heading, up to the
// next heading, without the quotes around a cell.
func rows(t *testing.T, name, heading string) (out [][]string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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

// TestReasonsAreInTheCode checks that what a client may get, by the tables of errors,
// stands in the code.
func TestReasonsAreInTheCode(t *testing.T) {
	literals := literals(programFiles(t))
	for _, heading := range []string{"## JSON-RPC errors on the stream", "### Requests to remote servers", "### Initialization errors"} {
		found := 0
		for _, row := range rows(t, "docs/reference/errors.md", heading)[1:] {
			if !word.MatchString(row[0]) { // a code, or the head of another table
				continue
			}
			if found++; !literals[row[0]] {
				t.Errorf("docs/reference/errors.md has %s below %q, which is not in the code", row[0], heading)
			}
		}
		if found == 0 {
			t.Errorf("found nothing below %q", heading)
		}
	}
}

var word = regexp.MustCompile(`^[a-z]+(_[a-z]+)+$|^[a-z]{6,}$`)
