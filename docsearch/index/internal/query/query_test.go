package query_test

import (
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/query"
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
