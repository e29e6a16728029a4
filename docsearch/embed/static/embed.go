package static

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	batch     = 512 // texts: so many take some thirty milliseconds
	checksum  = 8   // digits of it in the name of a model
	leastWord = 2   // letters: single ones, such as variables, mean nothing
)

// Model returns the name of the model, which has the beginning of its checksum: another table
// is another model.
func (m *Model) Model() string { return m.head.Name + "-" + m.head.Checksum[:checksum] }

// Batch returns how many texts are best given at a time.
func (m *Model) Batch() int { return batch }

// Embed returns a vector for each text. It is zero if the model knows less than half of the
// words: the text is in another language, or no text. It fails if ctx ends.
func (m *Model) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	all := make([][]float32, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		all[i] = m.embed(text)
	}
	return all, nil
}

// Known returns how much of a text the model knows, from 0 to 1: the share of the weights of its
// words. A word that is not known has the weight of an average one.
func (m *Model) Known(text string) float64 {
	known, unknown := 0.0, 0.0
	eachWord(text, nil, func(word []byte) {
		if len(word) < leastWord {
			return
		}
		if row, ok := m.find(word); ok {
			known += float64(m.scales[row])
		} else {
			unknown += m.average
		}
	})
	if known == 0 {
		return 0
	}
	return known / (known + unknown)
}

// embed returns the vector of a text, not of length 1.
func (m *Model) embed(text string) []float32 {
	sum := make([]float32, m.head.Dimensions)
	known, all := 0, 0
	var buffer [64]byte
	eachWord(text, buffer[:0], func(word []byte) {
		if len(word) < leastWord {
			return
		}
		all++
		if row, ok := m.find(word); ok {
			known++
			m.add(sum, int(row))
		}
	})
	if 2*known < all || known == 0 {
		clear(sum)
	}
	return sum
}

// add adds the vector of a row.
func (m *Model) add(sum []float32, row int) {
	scale := m.scales[row]
	numbers := m.table[row*len(sum):]
	numbers = numbers[:len(sum)]
	for i := range sum {
		sum[i] += scale * float32(int8(numbers[i]))
	}
}

// endings are the endings of words, each with its replacement in the stem.
var endings = []struct{ from, to string }{
	{"ies", "y"}, {"s", ""}, {"es", ""}, {"ed", ""}, {"ed", "e"}, {"ing", ""}, {"ing", "e"}, {"ly", ""}, {"ness", ""},
	{"able", ""}, {"able", "e"}, {"er", ""}, {"er", "e"}, {"ers", ""}, {"ers", "e"},
}

const leastStem = 3 // letters

// find returns the row of a word, or of its stem if there is none.
func (m *Model) find(word []byte) (int32, bool) {
	row, ok := m.rows[string(word)]
	if ok {
		return row, true
	}
	for _, ending := range endings {
		stem, has := strings.CutSuffix(string(word), ending.from)
		if !has || len(stem) < leastStem {
			continue
		}
		if row, ok := m.rows[stem+ending.to]; ok {
			return row, true
		}
	}
	return 0, false
}

// eachWord calls f with each word of a text, in lower case and without accents. Identifiers
// are cut into their parts: readFile, read_file and HTTPServer have two words each. f must not
// keep the word.
func eachWord(text string, buffer []byte, f func(word []byte)) {
	word := buffer
	flush := func() {
		if len(word) > 0 {
			f(word)
			word = word[:0]
		}
	}
	for text != "" {
		start := strings.IndexFunc(text, unicode.IsLetter)
		if start < 0 {
			break
		}
		text = text[start:]
		run := text
		if end := strings.IndexFunc(text, isBorder); end >= 0 {
			run = text[:end]
		}
		text = text[len(run):]
		if !isASCII(run) {
			run = fold(run)
		}
		before, next := rune(0), rune(0)
		for i := 0; i < len(run); {
			r, size := utf8.DecodeRuneInString(run[i:])
			i += size
			next, _ = utf8.DecodeRuneInString(run[i:])
			if unicode.IsUpper(r) && (unicode.IsLower(before) || unicode.IsUpper(before) && unicode.IsLower(next)) {
				flush()
			}
			word = utf8.AppendRune(word, unicode.ToLower(r))
			before = r
		}
		flush()
		// The s of a genitive is no word.
		if rest, ok := strings.CutPrefix(text, "'s"); ok && (rest == "" || !isLetterAt(rest)) {
			text = rest
		}
	}
}

func isBorder(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }

func isLetterAt(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// fold returns a word without accents.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsMark(r) {
			return -1
		}
		return r
	}, norm.NFKD.String(s))
}
