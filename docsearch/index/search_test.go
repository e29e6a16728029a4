package index_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

func TestSearchFinds(t *testing.T) {
	x := open(t, index.Options{})
	update(t, x,
		text("a.txt", "The quick brown fox jumps over the lazy dog.\nIt is quick."),
		text("b.txt", "A lazy afternoon. The dog sleeps, quick foxes do not."),
		titled("c.go", "readFile", "func readFile(file_name string) { HTTPServer.Serve() }"),
		text("d.txt", "Ein schönes Café in Zürich"),
		text("e.txt", "全文検索エンジンは文書を索引する。东京是日本的首都"),
		text("f.txt", "party 🎉 tonight"),
	)
	for query, want := range map[string]string{
		"fox":                     "[a.txt]",
		"lazy dog":                "[a.txt b.txt]",
		`"lazy dog"`:              "[a.txt]",
		`"the dog sleeps"`:        "[b.txt]",
		`"dog lazy"`:              "[]",
		"fox afternoon":           "[a.txt b.txt]",
		"readFile":                "[c.go]",
		"read file":               "[c.go]",
		"file_name":               "[c.go]",
		"http":                    "[c.go]",
		"httpserver":              "[c.go]",
		"ZURICH cafe":             "[d.txt]",
		"検索":                      "[e.txt]",
		"首都":                      "[e.txt]",
		"京":                       "[e.txt]",
		"🎉":                       "[f.txt]",
		"the":                     "[a.txt b.txt]",
		`fox* NEAR(lazy) AND NOT`: "[a.txt b.txt]",
		"nothing":                 "[]",
	} {
		if got := found(t, x, query); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
}

// A document is found first by its name, with and without its extension, and by its
// title, though others say these words more often.
func TestNamesAndTitlesCountMost(t *testing.T) {
	x := open(t, index.Options{})
	var others []index.Change
	for n := range 60 {
		others = append(others, text(fmt.Sprintf("other-%d.txt", n), strings.Repeat("search go, the search.go of readme and architecture md: ranking report\n", 20+n)))
	}
	update(t, x, others...)
	update(t, x, text("pkg/search.go", "package search\n\nfunc find() {}\n"), text("README.md", "What this is.\n"),
		text("docs/architecture.md", "How it is built.\n"), titled("deep/x1.txt", "Ranking report", "Numbers, numbers.\n"))
	for query, want := range map[string]string{
		"search.go": "search.go", "readme": "README.md", "README": "README.md", "architecture.md": "architecture.md",
		"architecture": "architecture.md", "ranking report": "x1.txt",
	} {
		if got := found(t, x, query); !strings.HasPrefix(got, "["+want) {
			t.Errorf("%s: got %.80s, want %s first", query, got, want)
		}
	}
}
