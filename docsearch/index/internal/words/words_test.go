package words_test

import (
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/words"
	"github.com/mcp-sse/mcp-sse/docsearch/internal/scaletest"
)

// terms returns the terms of a text.
func terms(text string) (all []string) {
	words.Each(text, func(t words.Term) { all = append(all, string(t.Text)) })
	return all
}

func TestTerms(t *testing.T) {
	for text, want := range map[string]string{
		"Hello, World":         "hello world",
		"readFile":             "readfile read file",
		"HTTPServer":           "httpserver http server",
		"parse_HTTP_response2": "parse_http_response2 parse http response2",
		"__init__":             "init",
		"don't":                "don t",
		"utf8 SHA256sum":       "utf8 sha256sum",
		"Straße ÉCOLE":         "straße ecole",
		"東京都":                  "東 東京 京 京都 都",
		"go言語":                 "go 言 言語 語",
		"___":                  "",
		"ﬁne ①":                "fine 1",
	} {
		if got := strings.Join(terms(text), " "); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// units are what texts that could take long are made of.
var units = map[string]string{
	"words": "some words, and more.\n", "one line": "word ", "one word": "x", "compound": "aB_", "underscores": "_",
	"Han": "漢", "marks": "e\u0301", "accents": "é", "emoji": "🎉", "lines": "\n", "quotes": `"a `,
}

func TestTimeIsLinearInTheText(t *testing.T) {
	for name, unit := range units {
		t.Run(name, func(t *testing.T) {
			scaletest.Linear(t, 10_000, func(n int) func() {
				text := strings.Repeat(unit, n/len(unit)+1)
				return func() { terms(text) }
			})
		})
	}
}
