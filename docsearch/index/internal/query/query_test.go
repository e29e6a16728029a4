package query_test

import (
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/query"
	"github.com/mcp-sse/mcp-sse/docsearch/internal/scaletest"
)

// wordsOf returns the words that a query looks up.
func wordsOf(text string) (all []string) {
	p := query.Parse(text, nil, nil)
	if p == nil {
		return nil
	}
	for _, w := range p.Words {
		all = append(all, w.Text)
	}
	return all
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"how do I read a file": "read file",
		"to be or not to be":   "to be or not",
		"東京都":                  "東京 京都",
		"東":                    "東",
		"東 go 京都":              "東 go 京都",
		`"the file" name`:      "file name",
		`"to be" name`:         "to be name",
	} {
		if got := strings.Join(wordsOf(text), " "); got != want {
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
				return func() {
					wordsOf(text)
					snippet("a words x 漢 é", text)
				}
			})
		})
	}
}
