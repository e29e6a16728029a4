package query

import (
	"math/bits"
	"slices"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/pieces"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/words"
)

// Match is a word of the query in a chunk.
type Match struct {
	start, end int // in bytes, into the chunk
	word       int
}

// Place is the passage of a document that answers the query best.
type Place struct {
	Chunk   pieces.Chunk
	Text    string // of the chunk
	Matches []Match
	Quality float64 // 0-1: how many of the words are there, and how close together
}

// near is how many words apart two words of a query may stand to count as neighbours.
const near = 3

// Phrases returns the set of all phrases.
func (p *Plan) Phrases() uint64 { return uint64(1)<<len(p.phrases) - 1 }

// Admits tells whether a document may have all required phrases, given whether it has
// a piece with the words of a mask.
func (p *Plan) Admits(has func(mask uint64) bool) bool {
	for _, ph := range p.phrases {
		if ph.required && !has(ph.need) {
			return false
		}
	}
	return true
}

// Strict tells whether each result must contain some phrase.
func (p *Plan) Strict() bool {
	return slices.ContainsFunc(p.phrases, func(ph phrase) bool { return ph.required })
}

// Relevance returns a number from 0 to 1: from 0.5 on for a document that has all
// words, below for others. quality, up to 1, tells how much the document is about them.
func (p *Plan) Relevance(mask uint64, quality float64) float64 {
	quality = min(1, quality)
	if mask&p.need == p.need {
		return 0.5 + quality/2
	}
	coverage := p.weightOf(mask) / p.Total
	return 0.5 * (0.6*coverage + 0.4*min(quality, coverage))
}

// MayHave tells whether a piece with the words of mask may contain one of phrases.
func (p *Plan) MayHave(phrases, mask uint64) bool {
	for i, ph := range p.phrases {
		if phrases&(1<<i) != 0 && mask&ph.need == ph.need {
			return true
		}
	}
	return false
}

// PhrasesIn returns which of phrases occur in text.
func (p *Plan) PhrasesIn(text string, phrases uint64) (found uint64) {
	for i := range p.phrases {
		if phrases&(1<<i) != 0 && p.phrases[i].words.In(text) {
			found |= 1 << i
		}
	}
	return found
}

// Verified removes from mask the words that are only in phrases that were not found. It
// returns 0 if one of these is required.
func (p *Plan) Verified(mask, missing uint64) uint64 {
	var drop, keep uint64
	for i, ph := range p.phrases {
		switch {
		case missing&(1<<i) == 0:
			keep |= ph.need
		case ph.required:
			return 0
		default:
			drop |= ph.need
		}
	}
	for i, w := range p.Words {
		if w.free {
			keep |= 1 << i
		}
	}
	return mask &^ (drop &^ keep)
}

// BestChunk returns the first chunk of the highest quality.
func (p *Plan) BestChunk(text string, chunks []pieces.Chunk) (best Place) {
	best.Quality = -1
	for _, c := range chunks {
		if at := p.Rate(text[c.Start:c.End]); at.Quality > best.Quality {
			best = at
			best.Chunk = c
		}
	}
	if best.Quality < 0 {
		return Place{}
	}
	return best
}

// NameQuality tells how much, from 0 to 1, a name is what p asks for: which part of the
// words it has, and which part of it these words are.
func (p *Plan) NameQuality(name string) float64 {
	var mask uint64
	all, found := 0, 0
	words.Each(name, func(t words.Term) {
		i, ok := p.index[string(t.Text)]
		if ok {
			mask |= 1 << i
		}
		if t.Kind == words.Part {
			return
		}
		all++
		if ok {
			found++
		}
	})
	if found == 0 || p.Total == 0 {
		return 0
	}
	return p.weightOf(mask) / p.Total * float64(found) / float64(all)
}

// Rate finds the words of p in the text of a chunk.
func (p *Plan) Rate(text string) Place {
	at := Place{Text: text}
	var mask, joined uint64
	last, lastPos := -1, 0
	words.EachOf(text, &p.first, func(t words.Term) {
		if !p.first[t.Text[0]] {
			return
		}
		i, ok := p.index[string(t.Text)]
		if !ok {
			return
		}
		at.Matches = append(at.Matches, Match{t.Start, t.End, i})
		mask |= 1 << i
		if last >= 0 && i == last+1 && t.Pos-lastPos <= near {
			joined |= 1 << i
		}
		last, lastPos = i, t.Pos
	})
	if p.Total == 0 {
		return at
	}
	closeness := 1.0
	if n := len(p.Words) - 1; n > 0 {
		closeness = float64(bits.OnesCount64(joined)) / float64(n)
	}
	at.Quality = p.weightOf(mask) / p.Total * (0.5 + 0.5*closeness)
	return at
}
