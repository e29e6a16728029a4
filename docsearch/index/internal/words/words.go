// Package words finds the words of a text in the form in which they are indexed.
package words

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxTerm is the length of a term in bytes; a longer word is cut.
const maxTerm = 64

// Kind tells where a term comes from.
type Kind uint8

const (
	Simple   Kind = iota // a word
	Compound             // an identifier of several parts, as a whole: readfile of readFile
	Part                 // a part of the compound before
	Single               // one character of a script without spaces
	Pair                 // two neighbours of a script without spaces
)

// Term is a word of a text in the form in which it is indexed: lower case and without
// diacritics.
type Term struct {
	Text       []byte // valid until the next term
	Start, End int    // of the word in the text; of a part, of its compound
	Pos        int    // counts the terms that are no parts, from 1
	Kind       Kind
}

const (
	isLower = 1 << iota
	isUpper
	isDigit
	isUnderscore
	isWord = isLower | isUpper | isDigit | isUnderscore
)

var ascii = func() (class [256]uint8) {
	for c := range class {
		switch {
		case c >= 'a' && c <= 'z':
			class[c] = isLower
		case c >= 'A' && c <= 'Z':
			class[c] = isUpper
		case c >= '0' && c <= '9':
			class[c] = isDigit
		case c == '_':
			class[c] = isUnderscore
		}
	}
	return class
}()

// Each calls yield for each term of text, in order. A compound comes before its
// parts, and each character of a script without spaces before the pair that it begins.
func Each(text string, yield func(Term)) { EachOf(text, &anyByte, yield) }

var anyByte = func() (all [256]bool) {
	for i := range all {
		all[i] = true
	}
	return all
}()

// EachOf is Each, but it may leave out terms whose first byte is not in first.
func EachOf(text string, first *[256]bool, yield func(Term)) {
	t := tokenizer{text: text, first: first, yield: yield}
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if ascii[c] == 0 {
				i++
				continue
			}
			i = t.word(i)
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case unspaced(r):
			i = t.unspaced(i)
		case wordRune(r):
			i = t.word(i)
		case unicode.Is(unicode.So, r):
			t.emit([]byte(text[i:i+size]), i, i+size, Simple)
			i += size
		default:
			i += size
		}
	}
}

type tokenizer struct {
	text  string
	first *[256]bool
	pos   int // of the term before
	yield func(Term)
	buf   [maxTerm]byte
	long  []byte
}

// emit yields a term, cut to its largest length.
func (t *tokenizer) emit(b []byte, start, end int, k Kind) {
	if len(b) > maxTerm {
		b = b[:CutBefore(b, maxTerm)]
	}
	t.pos++
	t.yield(Term{Text: b, Start: start, End: end, Pos: t.pos, Kind: k})
}

// word yields the terms of the word at start and returns its end.
func (t *tokenizer) word(start int) int {
	i, seams := start, false
	var before, all uint8
	for ; i < len(t.text); i++ {
		class := ascii[t.text[i]]
		if class == 0 {
			break
		}
		// The first letter of Word ends no part.
		seams = seams || before|class == isLower|isUpper && (before == isLower || i > start+1)
		before = class
		all |= class
	}
	if i < len(t.text) && t.text[i] >= utf8.RuneSelf {
		if r, _ := utf8.DecodeRuneInString(t.text[i:]); wordRune(r) && !unspaced(r) {
			return t.foreign(start)
		}
	}
	if all == isUnderscore {
		return i
	}
	if seams || all&isUnderscore != 0 {
		t.compound(start, i)
		return i
	}
	c := t.text[start]
	if ascii[c] == isUpper {
		c += 'a' - 'A'
	}
	t.pos++
	if t.first[c] {
		n := t.lower(start, i, all)
		t.yield(Term{Text: t.buf[:n], Start: start, End: i, Pos: t.pos, Kind: Simple})
	}
	return i
}

// lower puts the word from start to end, cut to its largest length, into buf in lower
// case, and returns its length. classes are those of its characters.
func (t *tokenizer) lower(start, end int, classes uint8) int {
	n := copy(t.buf[:], t.text[start:end])
	if classes&isUpper != 0 {
		for i, c := range t.buf[:n] {
			if ascii[c] == isUpper {
				t.buf[i] = c + 'a' - 'A'
			}
		}
	}
	return n
}

// compound yields the word from start to end, without the underscores around it, and
// its parts.
func (t *tokenizer) compound(start, end int) {
	from, to := trim(t.text, start, end)
	whole := t.buf[:t.lower(from, to, isUpper)]
	first, after := t.nextPart(start, end)
	second, _ := t.nextPart(after, end)
	if second == end {
		t.emit(whole, start, end, Simple)
		return
	}
	t.emit(whole, start, end, Compound)
	for first < end {
		n := t.lower(first, after, isUpper)
		t.yield(Term{Text: t.buf[:n], Start: start, End: end, Pos: t.pos, Kind: Part})
		first, after = t.nextPart(after, end)
	}
}

// trim moves the borders of a word inwards, over underscores.
func trim(text string, start, end int) (from, to int) {
	for start < end && text[start] == '_' {
		start++
	}
	for start < end && text[end-1] == '_' {
		end--
	}
	return start, end
}

// nextPart returns where the next part of a compound begins and ends: Server of
// HTTPServer ends where HTTP does.
func (t *tokenizer) nextPart(i, end int) (from, to int) {
	for i < end && t.text[i] == '_' {
		i++
	}
	from = i
	for i < end && ascii[t.text[i]]&(isUpper|isDigit) != 0 {
		i++
	}
	if i-from > 1 && i < end && ascii[t.text[i]] == isLower && ascii[t.text[i-1]] == isUpper {
		return from, i - 1
	}
	for i < end && ascii[t.text[i]]&(isLower|isDigit) != 0 {
		i++
	}
	return from, i
}

// foreign yields the word at start, which has characters beyond ASCII, and returns its
// end.
func (t *tokenizer) foreign(start int) int {
	i := start
	for i < len(t.text) {
		r, size := utf8.DecodeRuneInString(t.text[i:])
		if !wordRune(r) || unspaced(r) {
			break
		}
		i += size
	}
	word := t.text[start:i]
	if len(word) > 4*maxTerm {
		word = word[:CutBefore(word, 4*maxTerm)]
	}
	t.long = t.long[:0]
	for _, r := range norm.NFKD.String(word) {
		if wordRune(r) && !unicode.Is(unicode.Mn, r) {
			t.long = utf8.AppendRune(t.long, unicode.ToLower(r))
		}
	}
	if len(t.long) > 0 {
		t.emit(t.long, start, i, Simple)
	}
	return i
}

// unspaced yields the characters, and pairs of them, of the run at start of a script
// without spaces, and returns its end.
func (t *tokenizer) unspaced(start int) int {
	i, before := start, start
	for i < len(t.text) {
		r, size := utf8.DecodeRuneInString(t.text[i:])
		if !unspaced(r) {
			break
		}
		if i > start {
			t.emit([]byte(t.text[before:i+size]), before, i+size, Pair)
		}
		t.emit([]byte(t.text[i:i+size]), i, i+size, Single)
		before = i
		i += size
	}
	return i
}

// wordRune tells whether r is part of a word.
func wordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return ascii[r] != 0
	}
	return unicode.In(r, unicode.L, unicode.N, unicode.M)
}

// unspaced tells whether r belongs to a script that does not put spaces between words.
// Korean does, but its words have endings.
func unspaced(r rune) bool {
	if r < 0x0e00 {
		return false
	}
	return r == 'ー' || r == '々' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// CutBefore returns the last border between characters of s at or before n.
func CutBefore[S string | []byte](s S, n int) int {
	if n >= len(s) {
		return len(s)
	}
	for i := n; i >= 0 && i > n-utf8.UTFMax; i-- {
		if utf8.RuneStart(s[i]) {
			return i
		}
	}
	return n
}
