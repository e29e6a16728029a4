package docstest_test

import (
	"regexp"
	"strings"
	"testing"
)

// ourWords are those that mean something of this project's own. The glossary
// explains them.
var ourWords = regexp.MustCompile(`(?i)\b(announcement|dialect|gate|warm servers?|shared sessions?)\b`)

// TestWordsAreExplained checks that a page with such a word has a link to the
// glossary, which has the word.
func TestWordsAreExplained(t *testing.T) {
	used := map[string]bool{}
	for _, p := range pages(t) {
		text := strings.Join(p.prose, "\n")
		// What is code is the name of an option, a route or a log line.
		words := ourWords.FindAllString(link.ReplaceAllString(codeSpan.ReplaceAllString(text, ""), ""), -1)
		for _, word := range words {
			used[strings.TrimSuffix(strings.ToLower(word), "s")] = true
		}
		if len(words) > 0 && p.path != "docs/glossary.md" && !strings.Contains(text, "glossary.md") {
			t.Errorf("%s uses %q and has no link to the glossary", p.path, words)
		}
	}
	explained := firstCells(cells(t, "docs/glossary.md", "# Glossary"))
	for word := range used {
		if !explained[word] {
			t.Errorf("the glossary does not have %q", word)
		}
	}
}
