package docstest_test

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/connstate"
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

func TestStatesTableIsTheCode(t *testing.T) {
	states := []connstate.State{
		connstate.Initializing, connstate.Ready, connstate.Failed, connstate.Draining, connstate.Closed,
	}
	table := rows(t, "docs/reference/states.md", "## Moves")
	if len(table) < len(states)+1 {
		t.Fatalf("the table has %d rows, want one for each state", len(table))
	}
	for i, from := range states {
		row := table[i+1]
		if row[0] != from.String() || len(row) != len(states)+1 {
			t.Fatalf("row %d is %v, want that of %v", i+1, row, from)
		}
		for j, to := range states {
			if got, want := row[j+1] == "x", connstate.CanMove(from, to); got != want {
				t.Errorf("the table says %v for %v to %v, the code %v", got, from, to, want)
			}
		}
	}
}

// upstreamFolders are those of the packages that make up upstream.
var upstreamFolders = []string{
	"upstream", "upstream/stdio", "upstream/remote", "upstream/internal/exchange",
	"upstream/internal/streamable", "upstream/internal/stateless", "upstream/internal/httpsse",
}

// gatewayFolders are those of the packages that make up gateway.
var gatewayFolders = []string{"gateway", "gateway/internal/bridge", "gateway/internal/sessions"}

// programFolders returns the folders of the packages that log for the gateway: all
// but those of tests and of programs that measure.
func programFolders(t *testing.T) (folders []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		folder, _ := filepath.Rel(root, path)
		switch {
		case err != nil || !d.IsDir():
			return err
		case slices.Contains([]string{"e2e", "bench", "internal/load", "docs", "docsearch", "node_modules"}, folder), strings.HasPrefix(d.Name(), ".") && folder != ".":
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

// same reports what is in one of two sets only.
func same(t *testing.T, what string, inDocs, inCode map[string]bool) {
	t.Helper()
	if len(inCode) == 0 {
		t.Fatalf("found no %s in the code: correct this test's patterns", what)
	}
	for name := range inCode {
		if !inDocs[name] {
			t.Errorf("%s %s is in the code and not in docs/reference/errors.md", what, name)
		}
	}
	for name := range inDocs {
		if !inCode[name] {
			t.Errorf("%s %s is in docs/reference/errors.md and not in the code", what, name)
		}
	}
}

// firstCells returns the first cell of each row but the head.
func firstCells(table [][]string) map[string]bool {
	cells := make(map[string]bool)
	for _, row := range table[1:] {
		cells[row[0]] = true
	}
	return cells
}

func TestReasonsAreTheCode(t *testing.T) {
	code := make(map[string]bool)
	patterns := []*regexp.Regexp{
		regexp.MustCompile(`(?:ReasonError|unusable)\([^\n]*, "([a-z_]+)", `),
	}
	text := source(t, append(gatewayFolders, "multiplex", "streamable", "streamable/internal/stateless")...)
	for _, pattern := range patterns {
		for _, m := range pattern.FindAllStringSubmatch(text, -1) {
			code[m[1]] = true
		}
	}
	docs := firstCells(rows(t, "docs/reference/errors.md", "## JSON-RPC errors on the stream"))
	for name := range docs { // the second table of the section is of codes
		if _, err := strconv.Atoi(name); err == nil || name == "code" {
			delete(docs, name)
		}
	}
	same(t, "reason", docs, code)
}

func TestRemoteReasonsAreTheCode(t *testing.T) {
	code := make(map[string]bool)
	for _, m := range regexp.MustCompile(`\s[rR]eason\w+\s*=\s*"([a-z_]+)"`).FindAllStringSubmatch(source(t, upstreamFolders...), -1) {
		code[m[1]] = true
	}
	same(t, "reason", firstCells(rows(t, "docs/reference/errors.md", "### Requests to remote servers")), code)
}

func TestPhasesAreTheCode(t *testing.T) {
	code := make(map[string]bool)
	for _, m := range regexp.MustCompile(`Phase\w+\s*=\s*"([a-z_]+)"`).FindAllStringSubmatch(source(t, "metrics"), -1) {
		code[m[1]] = true
	}
	delete(code, "other")
	same(t, "phase", firstCells(rows(t, "docs/reference/errors.md", "### Initialization errors")), code)
}

func TestStatusesAreTheCode(t *testing.T) {
	byName := make(map[string]string)
	for status := 100; status < 600; status++ {
		if text := http.StatusText(status); text != "" {
			byName[strings.NewReplacer(" ", "", "-", "", "'", "").Replace(text)] = strconv.Itoa(status)
		}
	}
	code := map[string]bool{"200": true} // the stream's, which the engine sets
	for _, m := range regexp.MustCompile(`http\.Status([A-Z]\w+)`).FindAllStringSubmatch(source(t, "front")+source(t, "sse")+source(t, "streamable"), -1) {
		if status, ok := byName[m[1]]; ok {
			code[status] = true
		}
	}
	same(t, "status", firstCells(rows(t, "docs/reference/errors.md", "## HTTP status codes")), code)
}

// TestPausesAreTheCode compares the mean of the pauses between starts in
// docs/reference/states.md with the constants.
func TestPausesAreTheCode(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "docs/reference/states.md"))
	if err != nil {
		t.Fatal(err)
	}
	docs := regexp.MustCompile(`mean\s+is\s+(\d+) ms and doubles with each failure in a row, up to (\d+) s`).FindStringSubmatch(string(data))
	code := source(t, "gateway/internal/sessions")
	first := regexp.MustCompile(`firstPause = (\d+) \* time\.Millisecond`).FindStringSubmatch(code)
	most := regexp.MustCompile(`maxPause\s+= (\d+) \* time\.Second`).FindStringSubmatch(code)
	if docs == nil || first == nil || most == nil {
		t.Fatalf("found %q in the docs, %q and %q in the code: correct this test's patterns", docs, first, most)
	}
	if docs[1] != first[1] || docs[2] != most[1] {
		t.Errorf("docs/reference/states.md says %q, the code %s ms and %s s", docs[0], first[1], most[1])
	}
}
