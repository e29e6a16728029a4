package index_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/docsearch/extract"
	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

// The passages cover the text without gaps. FuzzCut repeats its text: the fuzzer spends a
// minute to shorten each long input that it finds interesting.
func FuzzCut(f *testing.F) {
	f.Add("a\nb\n\nc", uint16(1), 2, 3)
	f.Add("word ", uint16(5000), 100, 4000)
	f.Add("漢", uint16(9000), 1, 0)
	f.Fuzz(func(t *testing.T, text string, times uint16, a, b int) {
		text = strings.ToValidUTF8(strings.Repeat(text, min(int(times), 40_000/(len(text)+1))), "?")
		texts, starts := index.Cut(&extract.Document{Text: text, Sections: []extract.Section{{Offset: a, Heading: "A", Page: 1}, {Offset: b, Page: 2}}})
		var all strings.Builder
		for n, passage := range texts {
			end := len(text)
			if n+1 < len(starts) {
				end = starts[n+1]
			}
			if !utf8.ValidString(passage) || len(passage) == 0 || len(passage) > 1800 || end <= starts[n] || end-starts[n] > len(passage) {
				t.Fatalf("a passage of %d bytes, from %d to %d", len(passage), starts[n], end)
			}
			all.WriteString(passage[len(passage)-(end-starts[n]):])
		}
		if all.String() != text {
			t.Fatal("the passages are not the text")
		}
	})
}
