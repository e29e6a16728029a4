package docstest_test

import (
	"regexp"
	"strings"
	"testing"
)

// ourWords are those that mean something of this project's own. The glossary
// explains them.
var ourWords = regexp.MustCompile(`(?i)\b(announcement|dialect|gate|warm (?:servers?|sessions?)|shared sessions?)\b`)

const glossary = "architecture.md#words"

// TestWordsAreExplainedBeforeTheyAreUsed checks that a page which uses such a word
// has a link to the glossary before it, or in the same paragraph.
func TestWordsAreExplainedBeforeTheyAreUsed(t *testing.T) {
	for _, p := range pages(t) {
		text := strings.ReplaceAll(strings.Join(p.prose, "\n"), "](#words)", "]("+glossary+")")
		if p.path == "docs/architecture.md" {
			text = strings.Replace(text, "\n## Words\n", "\n"+glossary+"\n", 1)
		}
		explained := false
		for paragraph := range strings.SplitSeq(text, "\n\n") {
			explained = explained || strings.Contains(paragraph, glossary)
			// What is code is the name of an option, a route or a log line.
			word := ourWords.FindString(link.ReplaceAllString(codeSpan.ReplaceAllString(paragraph, ""), ""))
			if word != "" && !explained {
				t.Errorf("%s uses %q and has no link to %s before it, or in that paragraph:\n%.200s", p.path, word, glossary, paragraph)
				break
			}
		}
	}
}

// TestGlossaryHasOurWords checks that those words are in it.
func TestGlossaryHasOurWords(t *testing.T) {
	var have strings.Builder
	for _, row := range cells(t, "docs/architecture.md", "## Words") {
		have.WriteString(row[0] + "\n")
	}
	for _, word := range []string{"client", "connection", "session", "server", "upstream", "request", "handshake",
		"gate", "announcement", "dialect", "shared", "warm", "principal"} {
		if !strings.Contains(have.String(), word) {
			t.Errorf("the glossary does not have %q", word)
		}
	}
}
