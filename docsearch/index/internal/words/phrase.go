package words

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Phrase is a sequence of words that a text must have as it is.
type Phrase struct {
	folded string
	words  []string // nil if they are not all of ASCII characters
}

// NewPhrase returns the phrase of the words of text.
func NewPhrase(text string) Phrase {
	p := Phrase{folded: Fold(text)}
	if strings.IndexFunc(p.folded, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		p.words = strings.Fields(p.folded)
	}
	return p
}

// In tells whether text has the phrase.
func (p *Phrase) In(text string) bool {
	if len(p.words) > 0 && !hasForeign(text) {
		return p.inASCII(text)
	}
	return strings.Contains(Fold(text), p.folded)
}

// hasForeign tells whether text has a term with characters beyond ASCII.
func hasForeign(text string) bool {
	for i := 0; i < len(text); i++ {
		if text[i] < utf8.RuneSelf {
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if wordRune(r) || unicode.Is(unicode.So, r) {
			return true
		}
		i += size - 1
	}
	return false
}

// inASCII is In for a text all of whose terms are ASCII. It is much faster than Fold:
// it looks at the first two letters of a word only, mostly.
func (p *Phrase) inASCII(text string) bool {
	const lower = 'a' - 'A' // no other bit tells upper case from lower case
	w := p.words[0]
	for i := 0; i+len(w) <= len(text); i++ {
		if text[i]|lower != w[0]|lower || len(w) > 1 && text[i+1]|lower != w[1]|lower {
			continue
		}
		start := i
		for start > 0 && text[start-1] == '_' {
			start--
		}
		if start > 0 && ascii[text[start-1]] != 0 {
			continue
		}
		if _, end := nextWord(text, start); equal(text, start, end, w) && p.follows(text, end) {
			return true
		}
	}
	return false
}

// follows tells whether the words of p but the first come next in text, from offset i on.
func (p *Phrase) follows(text string, i int) bool {
	for _, w := range p.words[1:] {
		start, end := nextWord(text, i)
		if !equal(text, start, end, w) {
			return false
		}
		i = end
	}
	return true
}

// nextWord returns where the next word of text from offset i on begins and ends; both
// are the end of text if there is none. Underscores alone are no word.
func nextWord(text string, i int) (start, end int) {
	for {
		for i < len(text) && ascii[text[i]] == 0 {
			i++
		}
		var all uint8
		for start = i; i < len(text) && ascii[text[i]] != 0; i++ {
			all |= ascii[text[i]]
		}
		if all != isUnderscore {
			return start, i
		}
	}
}

// equal tells whether the word from start to end of text is indexed as w.
func equal(text string, start, end int, w string) bool {
	if end-start < len(w) {
		return false
	}
	start, end = trim(text, start, end)
	if min(end-start, maxTerm) != len(w) {
		return false
	}
	for i := range len(w) {
		c := text[start+i]
		if ascii[c] == isUpper {
			c += 'a' - 'A'
		}
		if c != w[i] {
			return false
		}
	}
	return true
}

// Fold returns the words of text in the form in which they are indexed, each between
// spaces, so that a phrase occurs in a text if its fold without the outer spaces does.
// Characters of scripts without spaces follow each other directly.
func Fold(text string) string {
	var b strings.Builder
	b.Grow(len(text) + 2)
	last := -1 // the end of the character before, of a script without spaces
	Each(text, func(t Term) {
		switch t.Kind {
		case Part, Pair:
			return
		case Single:
			if t.Start != last && b.Len() > 0 {
				b.WriteByte(' ')
			}
			last = t.End
		default:
			b.WriteByte(' ')
		}
		b.Write(t.Text)
		if t.Kind != Single {
			b.WriteByte(' ')
		}
	})
	return b.String()
}
