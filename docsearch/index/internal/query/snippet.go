package query

import (
	"strings"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/words"
)

const (
	snippetBytes = 300 // of a snippet, without its highlights
	snippetCore  = 220 // from the first match to the last
)

// Snippet returns the part of a chunk's text around the words that weigh most, as one
// line with these words highlighted. matches are in order. It takes time linear in the
// text and the matches.
func (p *Plan) Snippet(text string, matches []Match) string {
	from, to := p.bestWindow(matches)
	low, high := 0, min(len(text), snippetBytes)
	if to > from {
		core := matches[to-1].end - matches[from].start
		margin := max(0, snippetBytes-core)
		low = max(0, matches[from].start-margin/3)
		high = min(len(text), max(low+snippetBytes, matches[from].start+min(core, snippetBytes)))
		low = max(0, min(low, high-snippetBytes))
	}
	low, high = wholeWords(text, low, high)
	for to < len(matches) && matches[to].end <= high {
		to++
	}
	for from > 0 && matches[from-1].start >= low {
		from--
	}
	return highlight(text, low, high, matches[from:to])
}

// bestWindow returns the matches [from, to) that stand in snippetCore bytes and whose
// words weigh most together.
func (p *Plan) bestWindow(matches []Match) (from, to int) {
	var count [maxWords]int
	weight, best := 0.0, 0.0
	start := 0
	for i, m := range matches {
		if count[m.word]++; count[m.word] == 1 {
			weight += p.Words[m.word].Weight + 1e-6 // a word of no weight is a match too
		}
		for start < i && m.end-matches[start].start > snippetCore {
			w := matches[start].word
			if count[w]--; count[w] == 0 {
				weight -= p.Words[w].Weight + 1e-6
			}
			start++
		}
		if weight > best+1e-9 {
			best, from, to = weight, start, i+1
		}
	}
	return from, to
}

// wholeWords moves the borders of a part of text so that they cut no word, if that
// takes few bytes, and no character.
func wholeWords(text string, low, high int) (int, int) {
	const most = 24
	for low > 0 && low < len(text) && !utf8.RuneStart(text[low]) {
		low++
	}
	high = words.CutBefore(text, high)
	if low > 0 {
		if i := strings.IndexAny(text[low:min(high, low+most)], " \n\t"); i >= 0 {
			low += i + 1
		}
	}
	if high < len(text) {
		if i := strings.LastIndexAny(text[max(low, high-most):high], " \n\t"); i >= 0 {
			high = max(low, high-most) + i
		}
	}
	return low, high
}

// highlight returns text[low:high] as one line, with the matches in highlights.
func highlight(text string, low, high int, matches []Match) string {
	var b strings.Builder
	b.Grow(high - low + 6*len(matches))
	at := low
	for i := 0; i < len(matches); {
		start, end := matches[i].start, matches[i].end
		for i++; i < len(matches) && matches[i].start < end; i++ {
			end = max(end, matches[i].end)
		}
		if start < at || end > high {
			continue
		}
		b.WriteString(text[at:start])
		b.WriteString(api.HighlightStart)
		b.WriteString(text[start:end])
		b.WriteString(api.HighlightEnd)
		at = end
	}
	if at < high {
		b.WriteString(text[at:high])
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
