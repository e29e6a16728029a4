package index_test

import (
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
