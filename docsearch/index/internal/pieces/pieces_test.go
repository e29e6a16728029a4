package pieces_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/extract"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/pieces"
)

// FuzzPieces repeats its text: the fuzzer spends a minute to shorten each long input
// that it finds interesting.
func FuzzPieces(f *testing.F) {
	f.Add("a\nb\n\nc", uint16(1), 2, 3)
	f.Add("word ", uint16(5000), 100, 4000)
	f.Add("漢", uint16(9000), 1, 0)
	f.Fuzz(func(t *testing.T, text string, times uint16, a, b int) {
		const most = 40_000
		text = clean(strings.Repeat(text, min(int(times), most/(len(text)+1))))
		checkPieces(t, &extract.Document{Text: text, Sections: []extract.Section{{Offset: a, Heading: "A", Page: 1}, {Offset: b, Page: 2}}})
	})
}

func FuzzChunks(f *testing.F) {
	f.Add([]byte{1, 0, 3, 1, 1, 0, 0}, 3)
	f.Fuzz(func(_ *testing.T, b []byte, size int) {
		if size >= 0 && size < 1<<20 {
			_, _ = pieces.ParseChunks(b, size)
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
	for _, p := range pieces.Cut(d) {
		covered := 0
		for _, c := range p.Chunks {
			if text := p.Text[c.Start:c.End]; !utf8.ValidString(text) || len(text) == 0 || len(text) > 1800 {
				t.Fatalf("a chunk of %d bytes", c.End-c.Start)
			}
			covered += c.End - c.Start
		}
		if covered < p.Own {
			t.Fatalf("chunks have %d bytes of %d", covered, p.Own)
		}
		b.WriteString(p.Text[:p.Own])
	}
	if b.String() != d.Text {
		t.Fatal("the pieces are not the text")
	}
}
