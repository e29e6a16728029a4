package index_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/extract"
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

func FuzzSnippet(f *testing.F) {
	f.Add("lazy dog", "The quick brown fox\njumps over the lazy dog.")
	f.Add("漢字", strings.Repeat("漢字かな", 200))
	f.Add("fooBar", strings.Repeat("x", 500)+" fooBar foo_bar "+strings.Repeat("é", 300))
	f.Fuzz(func(t *testing.T, query, text string) {
		text = clean(text)
		s := index.Snippet(query, text)
		if !utf8.ValidString(s) {
			t.Fatalf("%q is not UTF-8", s)
		}
		if strings.Count(s, api.HighlightStart) != strings.Count(s, api.HighlightEnd) {
			t.Errorf("%q has highlights without end", s)
		}
		plain := strings.NewReplacer(api.HighlightStart, "", api.HighlightEnd, "").Replace(s)
		if len(plain) > 300 {
			t.Errorf("%d bytes: %q", len(plain), s)
		}
		if !strings.Contains(strings.Join(strings.Fields(text), " "), plain) {
			t.Errorf("%q is not in %q", plain, text)
		}
	})
}

func FuzzPieces(f *testing.F) {
	f.Add("a\nb\n\nc", 2, 3)
	f.Add(strings.Repeat("word ", 5000), 100, 4000)
	f.Add(strings.Repeat("漢", 9000), 1, 0)
	f.Fuzz(func(t *testing.T, text string, a, b int) {
		text = clean(text)
		checkPieces(t, &extract.Document{Text: text, Sections: []extract.Section{{Offset: a, Heading: "A", Page: 1}, {Offset: b, Page: 2}}})
	})
}

func FuzzChunks(f *testing.F) {
	f.Add([]byte{1, 0, 3, 1, 1, 0, 0}, 3)
	f.Fuzz(func(_ *testing.T, b []byte, size int) {
		if size >= 0 && size < 1<<20 {
			_, _ = index.ParseChunks(b, size)
		}
	})
}

// clean makes of s what extract could return.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "?")
	return strings.NewReplacer(api.HighlightStart, "", api.HighlightEnd, "", "\x00", "").Replace(s)
}

// checkPieces fails t unless the pieces of d cover its text without gaps.
func checkPieces(t *testing.T, d *extract.Document) {
	t.Helper()
	var b strings.Builder
	for _, p := range index.Pieces(d) {
		covered := 0
		for _, c := range p.Chunks() {
			if !utf8.ValidString(c) || len(c) == 0 || len(c) > 1800 {
				t.Fatalf("a chunk of %d bytes", len(c))
			}
			covered += len(c)
		}
		if covered < len(p.Own()) {
			t.Fatalf("chunks have %d bytes of %d", covered, len(p.Own()))
		}
		b.WriteString(p.Own())
	}
	if b.String() != d.Text {
		t.Fatal("the pieces are not the text")
	}
}

var hostile = []string{
	"a AND b OR NOT c", `"`, `""`, `"""`, `a"b"c"`, "NEAR(a b, 3)", "term:a", "^a", "a*", "-a", "{term}: a",
	"(((", "a + b", "\x00", "a\x00b", "'; DROP TABLE words; --", "\xff\xfe", "%", "_", "__", "the", "...",
	"🎉🎉", "漢", "かな", "\u0301", "İ", "ﬁ", strings.Repeat("x", 1<<20), strings.Repeat("word ", 200_000),
	strings.Repeat(`"a b" `, 10_000), strings.Repeat("a_b", 1000), "fooBarBaz_Qux9", "ก็", "e\u0301",
}
