package query_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/query"
)

// snippet returns the snippet of a text for a query, "" if the query is empty.
func snippet(words, text string) string {
	p := query.Parse(words, nil, nil)
	if p == nil {
		return ""
	}
	for i := range p.Words {
		p.Weigh(i, i+1, 100)
	}
	return p.Snippet(text, p.Rate(text).Matches)
}

func FuzzSnippet(f *testing.F) {
	f.Add("lazy dog", "The quick brown fox\njumps over the lazy dog.")
	f.Add("漢字", strings.Repeat("漢字かな", 200))
	f.Add("fooBar", strings.Repeat("x", 500)+" fooBar foo_bar "+strings.Repeat("é", 300))
	f.Fuzz(func(t *testing.T, query, text string) {
		text = strings.ToValidUTF8(text, "?")
		s := snippet(query, text)
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
