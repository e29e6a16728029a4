package extract

import (
	"strings"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
)

// code returns the sections of source code: the declarations that begin in the first
// column.
func code(text string) []Section {
	var sections plain.Sections
	offset := 0
	for line := range strings.Lines(text) {
		if isDeclaration(line) {
			sections.Add(Section{Offset: offset, Heading: declaration(line)})
		}
		if sections.Full() {
			break
		}
		offset += len(line)
	}
	return sections.List
}

// declarations are the words that a declaration begins with, in the languages that are
// common.
var declarations = wordSet(`
	abstract async class const def defmodule defn enum export extension fn func function
	impl interface macro mod module namespace object package proc protocol pub public
	record sealed static struct sub template trait type typedef union`)

func wordSet(words string) map[string]bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

func isDeclaration(line string) bool {
	const longestWord = 16
	end := strings.IndexByte(line[:min(len(line), longestWord)], ' ')
	return end > 0 && declarations[line[:end]]
}

func declaration(line string) string {
	return strings.TrimRight(plain.OneLine(line), " {:(=")
}
