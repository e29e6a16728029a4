// Package query parses queries, and rates texts by them.
package query

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/words"
)

// MaxBytes is how many bytes of a query are looked at.
const MaxBytes = 16 << 10

const maxWords = 32 // of a query; the rest is ignored

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

// Word is one word to look up.
type Word struct {
	Text   string
	bonus  bool    // a compound: its parts suffice
	free   bool    // stands outside of phrases too
	Phrase bool    // stands in a phrase
	Weight float64 // its inverse document frequency, known once its pieces are counted
}

// phrase is a sequence of words that must occur as it is.
type phrase struct {
	words    words.Phrase
	need     uint64 // its words
	required bool   // in each document
}

// Plan is a parsed query.
type Plan struct {
	Words   []Word // bit i of a mask stands for Words[i]
	index   map[string]int
	first   [256]bool // the bytes with which words begin: most other words do not
	phrases []phrase
	cut     bool // words were left out because the query is long
	ignored []string
	Total   float64 // of the weights of words that count
	need    uint64  // the words that a document with all of them has
}

// Parse makes a plan. A text has words, which a document may contain, and phrases in
// double quotes, which it must contain; a document that matches concepts and terms has a
// word of a concept or one of the terms, as it is. Parse returns nil if there is no word.
func Parse(text string, concepts, terms []string) *Plan {
	p := &Plan{index: map[string]int{}}
	room := MaxBytes
	take := func(s string) string {
		if len(s) > room {
			p.cut = true
			s = s[:words.CutBefore(s, room)]
		}
		room -= len(s)
		return s
	}
	text = take(text)
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
	for _, c := range concepts {
		p.addText(take(c))
	}
	for _, t := range terms {
		p.addPhrase(take(t), false)
	}
	if len(p.Words) == 0 {
		return nil
	}
	p.dropStopWords()
	return p
}

// addText adds the words of a text outside of phrases.
func (p *Plan) addText(text string) {
	queryTerms(text, func(t words.Term) {
		if i := p.word(t); i >= 0 {
			p.Words[i].free = true
			p.Words[i].bonus = t.Kind == words.Compound && !p.Words[i].Phrase
		}
	})
}

// addPhrase adds a phrase and its words.
func (p *Plan) addPhrase(text string, required bool) {
	ph := phrase{words: words.NewPhrase(text), required: required}
	queryTerms(text, func(t words.Term) {
		if t.Kind == words.Part {
			return
		}
		if i := p.word(t); i >= 0 {
			p.Words[i].Phrase = true
			p.Words[i].bonus = false
			ph.need |= 1 << i
		}
	})
	if ph.need != 0 {
		p.phrases = append(p.phrases, ph)
	}
}

// word returns the number of a word, -1 if there are too many.
func (p *Plan) word(t words.Term) int {
	if i, ok := p.index[string(t.Text)]; ok {
		return i
	}
	if len(p.Words) == maxWords {
		p.cut = true
		return -1
	}
	i := len(p.Words)
	p.index[string(t.Text)] = i
	p.first[t.Text[0]] = true
	p.Words = append(p.Words, Word{Text: string(t.Text)})
	return i
}

// queryTerms is terms without the single characters that are part of a pair.
func queryTerms(text string, yield func(words.Term)) {
	var held []byte // a single that the next pair may include
	var at words.Term
	inPair := -1 // the end of the last pair
	flush := func() {
		if held != nil {
			at.Text = held
			yield(at)
			held = nil
		}
	}
	words.Each(text, func(t words.Term) {
		switch t.Kind {
		case words.Pair:
			if held != nil && at.Start != t.Start {
				flush()
			}
			held = nil
			inPair = t.End
			yield(t)
		case words.Single:
			if t.End != inPair {
				flush()
				held, at = t.Text, t
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
func (p *Plan) dropStopWords() {
	var telling, keep uint64
	for i, w := range p.Words {
		if !stopWords[w.Text] {
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
	var kept []Word
	moved := make([]int, len(p.Words))
	clear(p.index)
	for i, w := range p.Words {
		moved[i] = -1
		if keep&(1<<i) != 0 {
			moved[i] = len(kept)
			p.index[w.Text] = len(kept)
			kept = append(kept, w)
		}
	}
	p.Words = kept
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

// Order returns the numbers of the words, likely rare ones first.
func (p *Plan) Order() []int {
	order := make([]int, len(p.Words))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		wa, wb := p.Words[a], p.Words[b]
		if wa.Phrase != wb.Phrase {
			if wa.Phrase {
				return -1
			}
			return 1
		}
		return cmp.Compare(len(wb.Text), len(wa.Text))
	})
	return order
}

// Weigh sets the weight of a word that occurs in n of all pieces.
func (p *Plan) Weigh(word, n, all int) {
	w := &p.Words[word]
	n = max(n, 1)
	w.Weight = math.Log(1 + (float64(max(all-n, 0))+0.5)/(float64(n)+0.5))
	if w.bonus {
		w.Weight /= 2
		return
	}
	p.Total += w.Weight
	p.need |= 1 << word
}

// weightOf returns the weight of the words of a mask that count.
func (p *Plan) weightOf(mask uint64) (sum float64) {
	for i, w := range p.Words {
		if mask&p.need&(1<<i) != 0 {
			sum += w.Weight
		}
	}
	return sum
}

// Ignore leaves a word out because too many pieces have the others.
func (p *Plan) Ignore(word int) { p.ignored = append(p.ignored, p.Words[word].Text) }

// Warnings says what was left out.
func (p *Plan) Warnings() (all []string) {
	if p.cut {
		all = append(all, fmt.Sprintf("the query is long: only its first %d words, and %d KiB, are used", maxWords, MaxBytes>>10))
	}
	if len(p.ignored) > 0 {
		all = append(all, "so much has the words of the query that some of them were ignored: "+strings.Join(p.ignored, ", "))
	}
	return all
}
