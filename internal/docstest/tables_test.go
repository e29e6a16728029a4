package docstest_test

import (
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
func rows(t *testing.T, name, heading string) [][]string {
	t.Helper()
	table := cells(t, name, heading)
	for _, row := range table {
		for i := range row {
			row[i] = strings.Trim(row[i], "`")
		}
	}
	return table
}

// cells returns the same as they are written.
func cells(t *testing.T, name, heading string) [][]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut("\n"+string(data), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", name, heading)
	}
	var out [][]string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "#") {
			break
		}
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") {
			continue
		}
		row := strings.Split(strings.Trim(line, "|"), "|")
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		out = append(out, row)
	}
	return out
}

// programFolders returns the folders of the packages that log for the gateway: all
// but those of tests and of programs that measure.
func programFolders(t *testing.T) (folders []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		folder, _ := filepath.Rel(root, path)
		switch {
		case err != nil || !d.IsDir():
			return err
		case slices.Contains([]string{"e2e", "tools", "docs", "docsearch", "node_modules"}, folder), strings.HasPrefix(d.Name(), ".") && folder != ".":
			return filepath.SkipDir
		}
		folders = append(folders, folder)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

// source returns the code of packages, tests left out.
func source(t *testing.T, folders ...string) string {
	t.Helper()
	var b strings.Builder
	for _, folder := range folders {
		names, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(data)
		}
	}
	return b.String()
}

// TestReasonsAreInTheCode checks that what a client may get, by the tables of errors,
// stands in the code.
func TestReasonsAreInTheCode(t *testing.T) {
	text := source(t, programFolders(t)...)
	for _, heading := range []string{"## JSON-RPC errors on the stream", "### Requests to remote servers", "### Initialization errors"} {
		found := 0
		for _, row := range rows(t, "docs/reference/errors.md", heading)[1:] {
			if !word.MatchString(row[0]) { // a code, or the head of another table
				continue
			}
			if found++; !strings.Contains(text, `"`+row[0]+`"`) {
				t.Errorf("docs/reference/errors.md has %s below %q, which is not in the code", row[0], heading)
			}
		}
		if found == 0 {
			t.Errorf("found nothing below %q", heading)
		}
	}
}

var word = regexp.MustCompile(`^[a-z]+(_[a-z]+)+$|^[a-z]{6,}$`)
