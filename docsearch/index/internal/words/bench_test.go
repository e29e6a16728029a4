package words_test

import (
	"os"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/words"
)

// BenchmarkEach measures source code, most of whose words are short, and has this
// package's source for it.
func BenchmarkEach(b *testing.B) {
	source, err := os.ReadFile("words.go")
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat(string(source), 10)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		n := 0
		words.Each(text, func(words.Term) { n++ })
	}
}
