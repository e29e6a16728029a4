package index

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Query says what to search for. Text has words, which a document may contain, and
// phrases in double quotes, which it must contain. A document that matches Concepts
// and Terms has a word of a concept or one of the terms, as it is. Letter case,
// diacritics and punctuation make no difference.
type Query struct {
	Folders   []string // none for all
	Text      string
	Concepts  []string
	Terms     []string
	Limit     int     // 1-100; 0 is 10
	Threshold float64 // least relevance
	Content   bool    // return the text of the chunks
	Cursor    string  // NextCursor of the response before
}

const (
	defaultLimit = 10
	maxLimit     = 100
	maxWords     = 32       // of a query; the rest is ignored
	maxQuery     = 16 << 10 // bytes of a query that are looked at
)

// stopWords are ignored in a query that has other words.
var stopWords = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`a about an and are as at be been but by can do does for from
		had has have how i if in into is it its me my no not of on or our so than that the their
		them then there these they this to was we were what when where which who why will with
		would you your s t`) {
		m[w] = true
	}
	return m
}()

// queryWord is one word to look up.
type queryWord struct {
	text   string
	bonus  bool    // a compound: its parts suffice
	free   bool    // stands outside of phrases too
	phrase bool    // stands in a phrase
	weight float64 // its inverse document frequency, known once its pieces are counted
}

// phrase is a sequence of words that must occur as it is.
type phrase struct {
	written  string
	folded   string
	need     uint64 // its words
	required bool   // in each document
}

// plan is a parsed query.
type plan struct {
	words   []queryWord // bit i of a mask stands for words[i]
	index   map[string]int
	first   [256]bool // the bytes with which words begin: most other words do not
	phrases []phrase
	cut     bool    // words were left out
	total   float64 // of the weights of words that count
	need    uint64  // the words that a document with all of them has
}

// parse makes a plan of q. It fails with ErrQuery if q has no word.
func parse(q *Query) (*plan, error) {
	p := &plan{index: map[string]int{}}
	room := maxQuery
	take := func(s string) string {
		if len(s) > room {
			p.cut = true
			s = s[:cutBefore(s, room)]
		}
		room -= len(s)
		return s
	}
	text := take(q.Text)
	for {
		before, rest, _ := strings.Cut(text, `"`)
		inside, after, closed := strings.Cut(rest, `"`)
		p.addText(before)
		if !closed {
			p.addText(inside)
			break
		}
		p.addPhrase(inside, true)
		text = after
	}
	for _, c := range q.Concepts {
		p.addText(take(c))
	}
	for _, t := range q.Terms {
		p.addPhrase(take(t), false)
	}
	if len(p.words) == 0 {
		return nil, ErrQuery
	}
	p.dropStopWords()
	return p, nil
}

// addText adds the words of a text outside of phrases.
func (p *plan) addText(text string) {
	queryTerms(text, func(t term) {
		if i := p.word(t); i >= 0 {
			p.words[i].free = true
			p.words[i].bonus = t.kind == compound && !p.words[i].phrase
		}
	})
}

// addPhrase adds a phrase and its words.
func (p *plan) addPhrase(text string, required bool) {
	ph := phrase{written: strings.TrimSpace(text), folded: fold(text), required: required}
	queryTerms(text, func(t term) {
		if t.kind == part {
			return
		}
		if i := p.word(t); i >= 0 {
			p.words[i].phrase = true
			p.words[i].bonus = false
			ph.need |= 1 << i
		}
	})
	if ph.need != 0 {
		p.phrases = append(p.phrases, ph)
	}
}

// word returns the number of a word, -1 if there are too many.
func (p *plan) word(t term) int {
	if i, ok := p.index[string(t.text)]; ok {
		return i
	}
	if len(p.words) == maxWords {
		p.cut = true
		return -1
	}
	i := len(p.words)
	p.index[string(t.text)] = i
	p.first[t.text[0]] = true
	p.words = append(p.words, queryWord{text: string(t.text)})
	return i
}

// queryTerms is terms without the single characters that are part of a pair.
func queryTerms(text string, yield func(term)) {
	var held []byte // a single that the next pair may include
	var at term
	inPair := -1 // the end of the last pair
	flush := func() {
		if held != nil {
			at.text = held
			yield(at)
			held = nil
		}
	}
	terms(text, func(t term) {
		switch t.kind {
		case pair:
			if held != nil && at.start != t.start {
				flush()
			}
			held = nil
			inPair = t.end
			yield(t)
		case single:
			if t.end != inPair {
				flush()
				held, at = t.text, t
			}
		default:
			flush()
			yield(t)
		}
	})
	flush()
}

// dropStopWords removes words that tell nothing, if there are others. A phrase of
// nothing else keeps them.
func (p *plan) dropStopWords() {
	var telling, keep uint64
	for i, w := range p.words {
		if !stopWords[w.text] {
			telling |= 1 << i
		}
	}
	if telling == 0 {
		return
	}
	keep = telling
	for _, ph := range p.phrases {
		if ph.need&telling == 0 {
			keep |= ph.need
		}
	}
	var kept []queryWord
	moved := make([]int, len(p.words))
	clear(p.index)
	for i, w := range p.words {
		moved[i] = -1
		if keep&(1<<i) != 0 {
			moved[i] = len(kept)
			p.index[w.text] = len(kept)
			kept = append(kept, w)
		}
	}
	p.words = kept
	for i := range p.phrases {
		var need uint64
		for from, to := range moved {
			if to >= 0 && p.phrases[i].need&(1<<from) != 0 {
				need |= 1 << to
			}
		}
		p.phrases[i].need = need
	}
}

// order returns the numbers of the words, likely rare ones first.
func (p *plan) order() []int {
	order := make([]int, len(p.words))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		wa, wb := p.words[a], p.words[b]
		if wa.phrase != wb.phrase {
			if wa.phrase {
				return -1
			}
			return 1
		}
		return cmp.Compare(len(wb.text), len(wa.text))
	})
	return order
}

// weigh sets the weight of a word that occurs in n of all pieces.
func (p *plan) weigh(word, n, all int) {
	w := &p.words[word]
	n = max(n, 1)
	w.weight = math.Log(1 + (float64(max(all-n, 0))+0.5)/(float64(n)+0.5))
	if w.bonus {
		w.weight /= 2
		return
	}
	p.total += w.weight
	p.need |= 1 << word
}

// weightOf returns the weight of the words of a mask that count.
func (p *plan) weightOf(mask uint64) (sum float64) {
	for i, w := range p.words {
		if mask&p.need&(1<<i) != 0 {
			sum += w.weight
		}
	}
	return sum
}

func (p *plan) warning() string {
	return fmt.Sprintf("the query is long: only its first %d words, and %d KiB, are used", maxWords, maxQuery>>10)
}

// fold returns the words of text in the form in which they are indexed, each between
// spaces, so that a phrase occurs in a text if its fold without the outer spaces does.
// Characters of scripts without spaces follow each other directly.
func fold(text string) string {
	var b strings.Builder
	b.Grow(len(text) + 2)
	last := -1 // the end of the character before, of a script without spaces
	terms(text, func(t term) {
		switch t.kind {
		case part, pair:
			return
		case single:
			if t.start != last && b.Len() > 0 {
				b.WriteByte(' ')
			}
			last = t.end
		default:
			b.WriteByte(' ')
		}
		b.Write(t.text)
		if t.kind != single {
			b.WriteByte(' ')
		}
	})
	return b.String()
}
