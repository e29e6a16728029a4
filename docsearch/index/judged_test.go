package index_test

import (
	"context"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/embed/static"
	"github.com/mcp-sse/mcp-sse/docsearch/extract"
	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

// goPackages are the packages of Go's source in the judged set.
var goPackages = []string{"bufio", "bytes", "container/heap", "context", "encoding/csv", "encoding/json", "errors", "io", "io/fs",
	"log/slog", "net/http", "net/url", "os", "path/filepath", "sort", "strconv", "strings", "sync", "text/template", "time"}

// TestJudgedQueries searches for what people search for. At least 54 of 60 queries find
// a right answer among the first three documents, by words alone, and with the model in the
// program.
func TestJudgedQueries(t *testing.T) {
	t.Parallel()
	model, err := static.Default()
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]index.Options{"words": {}, "words and meaning": {Embedder: model}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testJudgedQueries(t, o)
		})
	}
}

func testJudgedQueries(t *testing.T, o index.Options) {
	x := open(t, o)
	fill(t, x, judgedDocuments(t))
	embedAll(t, x)
	queries, found, first := 0, 0, 0
	for line := range strings.Lines(readFile(t, "testdata/judged.txt")) {
		query, answers, ok := strings.Cut(strings.TrimSpace(line), " => ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		queries++
		r, err := x.Search(t.Context(), index.Query{Text: query, Limit: 3})
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		var got []string
		for _, result := range r.Results {
			name, _ := filepath.Rel(folder, result.Path)
			got = append(got, filepath.ToSlash(name))
		}
		isAnswer := func(name string) bool { return slices.Contains(strings.Split(answers, ", "), name) }
		if slices.ContainsFunc(got, isAnswer) {
			found++
		} else {
			t.Logf("%s: found %v", query, got)
		}
		if len(got) > 0 && isAnswer(got[0]) {
			first++
		}
	}
	t.Logf("%d queries: %d found, %d first", queries, found, first)
	if queries != 60 || found < 54 {
		t.Errorf("%d of %d queries found an answer, want 54 of 60", found, queries)
	}
}

// judgedDocuments returns the documents of the judged set.
func judgedDocuments(t *testing.T) (all []index.Change) {
	t.Helper()
	e := extract.New(extract.Options{})
	add := func(name, text string) {
		d, err := e.Extract(context.Background(), path.Base(name), []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, index.Change{Path: name, Stamp: index.Stamp{Size: int64(len(text))}, Document: d})
	}
	var name, body string
	for line := range strings.Lines(readFile(t, "testdata/mixed.txt") + "-- end --\n") {
		next, ok := strings.CutPrefix(line, "-- ")
		if !ok {
			body += line
			continue
		}
		if name != "" {
			add("mixed/"+name, body)
		}
		name, body = strings.TrimSuffix(strings.TrimSpace(next), " --"), ""
	}
	for _, pkg := range goPackages {
		for _, file := range glob(t, filepath.Join(goRoot(), "src", pkg, "*.go")) {
			if !strings.HasSuffix(file, "_test.go") && filepath.Base(file) != "h2_bundle.go" { // a third of net/http
				add("go/"+pkg+"/"+filepath.Base(file), readFile(t, file))
			}
		}
	}
	root := filepath.Join("..", "..")
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/design/*.md", "docs/reference/*.md"} {
		for _, file := range glob(t, filepath.Join(root, pattern)) {
			name, _ := filepath.Rel(root, file)
			add("docs/"+strings.TrimPrefix(filepath.ToSlash(name), "docs/"), readFile(t, file))
		}
	}
	return all
}

// goRoot returns where the source of Go is; empty if go does not say.
func goRoot() string {
	out, _ := exec.Command("go", "env", "GOROOT").Output() // the files that are missing tell
	return strings.TrimSpace(string(out))
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files, %v", pattern, err)
	}
	return files
}

func readFile(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func fill(t *testing.T, x *index.Index, all []index.Change) {
	t.Helper()
	for batch := range slices.Chunk(all, 50) {
		update(t, x, batch...)
	}
}
