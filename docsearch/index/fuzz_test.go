package index_test

import (
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

func FuzzQuery(f *testing.F) {
	for _, q := range hostile {
		f.Add(q)
	}
	x := open(f, index.Options{})
	update(f, x, text("a.txt", "some words, 漢字 and fooBar\nmore"))
	f.Fuzz(func(t *testing.T, q string) {
		r, err := x.Search(t.Context(), index.Query{Text: q, Terms: []string{q}})
		if err != nil {
			if len(index.Terms(q)) > 0 {
				t.Errorf("%q: %v", q, err)
			}
			return
		}
		for _, r := range r.Results {
			if !(r.Relevance > 0 && r.Relevance <= 1) {
				t.Errorf("%q: relevance %v", q, r.Relevance)
			}
		}
	})
}

func FuzzCursor(f *testing.F) {
	f.Add(index.Cursor(7, 20), uint64(7))
	f.Add("AAAA", uint64(0))
	f.Fuzz(func(_ *testing.T, s string, query uint64) { _ = index.ParseCursor(s, query) })
}

var hostile = []string{
	"a AND b OR NOT c", `"`, `""`, `"""`, `a"b"c"`, "NEAR(a b, 3)", "term:a", "^a", "a*", "-a", "{term}: a",
	"(((", "a + b", "\x00", "a\x00b", "'; DROP TABLE words; --", "\xff\xfe", "%", "_", "__", "the", "...",
	"🎉🎉", "漢", "かな", "\u0301", "İ", "ﬁ", strings.Repeat("x", 1<<20), strings.Repeat("word ", 200_000),
	strings.Repeat(`"a b" `, 10_000), strings.Repeat("a_b", 1000), "fooBarBaz_Qux9", "ก็", "e\u0301",
}
