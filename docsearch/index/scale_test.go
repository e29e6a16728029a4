package index_test

import (
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/extract"
	"github.com/mcp-sse/mcp-sse/docsearch/index"
	"github.com/mcp-sse/mcp-sse/docsearch/internal/scaletest"
)

func TestTimeIsLinearInTheText(t *testing.T) {
	for name, unit := range map[string]string{
		"words": "some words, and more.\n", "one line": "word ", "one word": "x", "compound": "aB_", "underscores": "_",
		"Han": "漢", "marks": "e\u0301", "accents": "é", "emoji": "🎉", "lines": "\n", "quotes": `"a `,
	} {
		t.Run(name, func(t *testing.T) {
			for work, f := range map[string]func(text string){
				"terms":   func(text string) { index.Terms(text) },
				"query":   func(text string) { index.Words(text) },
				"snippet": func(text string) { index.Snippet("a words x 漢 é", text) },
				"pieces":  func(text string) { index.Pieces(&extract.Document{Text: text}) },
			} {
				t.Run(work, func(t *testing.T) {
					scaletest.Linear(t, 10_000, func(n int) func() {
						text := strings.Repeat(unit, n/len(unit)+1)
						return func() { f(text) }
					})
				})
			}
		})
	}
}

func TestPiecesTakeTimeLinearInTheSections(t *testing.T) {
	for name, gap := range map[string]int{"apart": 10, "together": 0} {
		t.Run(name, func(t *testing.T) {
			scaletest.Linear(t, 10_000, func(n int) func() {
				d := &extract.Document{Text: strings.Repeat("word\n", 2*n)}
				for i := range n {
					d.Sections = append(d.Sections, extract.Section{Offset: i * gap, Heading: "h"})
				}
				return func() { index.Pieces(d) }
			})
		})
	}
}
