package index

import (
	"cmp"
	"context"
	"database/sql"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
)

// match is a word of the query in a chunk.
type match struct {
	start, end int // in bytes, into the chunk
	word       int
}

// place is the passage of a document that answers the query best.
type place struct {
	chunk   chunk
	text    string // of the chunk
	matches []match
	quality float64 // 0-1: how many of the words are there, and how close together
}

// near is how many words apart two words of a query may stand to count as neighbours.
const near = 3

// storedPiece reads a piece.
func (x *Index) storedPiece(ctx context.Context, tx *sql.Tx, row int64) (text string, chunks []chunk, err error) {
	var b sql.RawBytes
	read := tx.StmtContext(ctx, x.readPiece)
	defer read.Close()
	rows, err := read.QueryContext(ctx, row)
	if err != nil {
		return "", nil, err
	}
	defer rows.Close()
	if !rows.Next() {
		return "", nil, cmp.Or(rows.Err(), errChunks)
	}
	if err := rows.Scan(&text, &b); err != nil {
		return "", nil, err
	}
	chunks, err = parseChunks(b, len(text))
	return text, chunks, err
}

// locate returns the best place of c, and the relevance that c has by it. It reads the
// piece with the most weight and, to verify phrases, others. A relevance of 0 means
// that c does not match.
func (s *search) locate(ctx context.Context, tx *sql.Tx, c *candidate) (place, float64, error) {
	p := s.plan
	hits := slices.Clone(c.hits)
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.sum, a.sum) })
	mask, open := c.mask, uint64(1)<<len(p.phrases)-1 // phrases not found yet
	var best place
	for i, h := range hits {
		if i > 0 && !p.mayHave(open, h.mask) {
			if open == 0 {
				break
			}
			continue
		}
		text, chunks, err := s.index.storedPiece(ctx, tx, h.row)
		if err != nil {
			return place{}, 0, err
		}
		found := p.phrasesIn(text, open)
		if i == 0 || found != 0 && best.quality < 1 {
			if at := p.bestChunk(text, chunks); i == 0 || at.quality >= best.quality {
				best = at
			}
		}
		open &^= found
	}
	if mask = p.verified(mask, open); mask == 0 {
		return place{}, 0, nil
	}
	quality := 0.4*hits[0].sum/p.total + 0.6*best.quality
	return best, p.relevance(mask, quality), nil
}

// mayHave tells whether a piece with the words of mask may contain one of phrases.
func (p *plan) mayHave(phrases, mask uint64) bool {
	for i, ph := range p.phrases {
		if phrases&(1<<i) != 0 && mask&ph.need == ph.need {
			return true
		}
	}
	return false
}

// phrasesIn returns which of phrases occur in text.
func (p *plan) phrasesIn(text string, phrases uint64) (found uint64) {
	folded := ""
	for i, ph := range p.phrases {
		if phrases&(1<<i) == 0 {
			continue
		}
		if !ph.literallyIn(text) {
			if folded == "" {
				folded = fold(text)
			}
			if !strings.Contains(folded, ph.folded) {
				continue
			}
		}
		found |= 1 << i
	}
	return found
}

// literallyIn tells whether the phrase's first occurrence in text, as it was written,
// stands between ASCII characters that end a word. It is faster than folding the text.
func (ph *phrase) literallyIn(text string) bool {
	at := strings.Index(text, ph.written)
	if at < 0 {
		return false
	}
	end := at + len(ph.written)
	ends := func(c byte) bool { return c < utf8.RuneSelf && ascii[c] == 0 }
	return (at == 0 || ends(text[at-1])) && (end == len(text) || ends(text[end]))
}

// verified removes from mask the words that are only in phrases that were not found. It
// returns 0 if one of these is required.
func (p *plan) verified(mask, missing uint64) uint64 {
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
	for i, w := range p.words {
		if w.free {
			keep |= 1 << i
		}
	}
	return mask &^ (drop &^ keep)
}

// bestChunk returns the first chunk of the highest quality.
func (p *plan) bestChunk(text string, chunks []chunk) (best place) {
	best.quality = -1
	for _, c := range chunks {
		if at := p.rate(text[c.start:c.end]); at.quality > best.quality {
			best = at
			best.chunk = c
		}
	}
	if best.quality < 0 {
		return place{}
	}
	return best
}

// rate finds the words of p in the text of a chunk.
func (p *plan) rate(text string) place {
	at := place{text: text}
	var mask, joined uint64
	last, lastPos, pos := -1, 0, 0
	terms(text, func(t term) {
		if t.kind != part {
			pos++
		}
		if !p.first[t.text[0]] {
			return
		}
		i, ok := p.index[string(t.text)]
		if !ok {
			return
		}
		at.matches = append(at.matches, match{t.start, t.end, i})
		mask |= 1 << i
		if last >= 0 && i == last+1 && pos-lastPos <= near {
			joined |= 1 << i
		}
		last, lastPos = i, pos
	})
	if p.total == 0 {
		return at
	}
	closeness := 1.0
	if n := len(p.words) - 1; n > 0 {
		closeness = float64(bits.OnesCount64(joined)) / float64(n)
	}
	at.quality = p.weightOf(mask) / p.total * (0.5 + 0.5*closeness)
	return at
}
