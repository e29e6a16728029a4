package index

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
)

// maxHits bounds how many pieces a query looks at before it ignores further words.
const maxHits = 40_000

// hit is a piece that has a word of the query.
type hit struct {
	row  int64
	mask uint64  // its words
	sum  float64 // their weights times their impacts
}

// candidate is a document that has a word of the query.
type candidate struct {
	id        int64
	mask      uint64 // the words of all its pieces
	hits      []hit  // by piece
	relevance float64
}

// scope is what a query searches.
type scope struct {
	low, high int64   // of the ids of pieces
	folders   []int64 // none: all
	pieces    int
	without   map[int64]bool // folders in the range that are not searched

	generation int64 // of the index
}

// candidates returns the documents that p may match, most relevant first.
func (p *plan) candidates(ctx context.Context, tx *sql.Tx, x *Index, s scope) ([]candidate, error) {
	hits, err := p.hits(ctx, tx, x, s)
	if err != nil {
		return nil, err
	}
	var all []candidate
	for len(hits) > 0 {
		id := hits[0].row >> pieceShift
		n := 1
		for n < len(hits) && hits[n].row>>pieceShift == id {
			n++
		}
		c := candidate{id: id, hits: hits[:n]}
		hits = hits[n:]
		if !s.without[id>>folderShift] && p.admits(&c) {
			all = append(all, c)
		}
	}
	return byRelevance(all), nil
}

// byRelevance orders candidates, which come by id, by relevance, and then by id. It
// sorts numbers, because there may be many.
func byRelevance(all []candidate) []candidate {
	keys := make([]uint64, len(all))
	for i := range all {
		keys[i] = uint64((1-all[i].relevance)*(1<<32))<<31 | uint64(i)
	}
	slices.Sort(keys)
	ordered := make([]candidate, len(all))
	for i, k := range keys {
		ordered[i] = all[k&(1<<31-1)]
	}
	return ordered
}

// admits rates c. It tells whether c may contain all required phrases.
func (p *plan) admits(c *candidate) bool {
	best := 0.0
	for _, h := range c.hits {
		c.mask |= h.mask
		best = max(best, h.sum)
	}
	for _, ph := range p.phrases {
		if ph.required && !slices.ContainsFunc(c.hits, func(h hit) bool { return h.mask&ph.need == ph.need }) {
			return false
		}
	}
	c.relevance = p.relevance(c.mask, best/p.total)
	return true
}

// relevance returns a number from 0 to 1: from 0.5 on for a document that has all
// words, below for others. quality, up to 1, tells how much the document is about them.
func (p *plan) relevance(mask uint64, quality float64) float64 {
	quality = min(1, quality)
	if mask&p.need == p.need {
		return 0.5 + quality/2
	}
	coverage := p.weightOf(mask) / p.total
	return 0.5 * (0.6*coverage + 0.4*min(quality, coverage))
}

// hits returns the pieces that have a word of p, by row, and weighs the words.
func (p *plan) hits(ctx context.Context, tx *sql.Tx, x *Index, s scope) (all []hit, err error) {
	find := tx.StmtContext(ctx, x.findWord)
	defer find.Close()
	found := 0
	for _, word := range p.order() {
		if found > maxHits && !p.words[word].phrase {
			p.cut = true
			continue
		}
		list, err := x.postings(ctx, find, p.words[word].text, s)
		if err != nil {
			return nil, err
		}
		found += list.n
		p.weigh(word, list.n, s.pieces)
		var own []hit
		for class, list := range list.lists {
			gain := p.words[word].weight * classes[class].value
			own = merge(own, len(list), func(i int) hit { return hit{list[i], 1 << word, gain} })
		}
		all = merge(all, len(own), func(i int) hit { return own[i] })
	}
	return all, nil
}

// merge merges n hits into a; both are ordered by row.
func merge(a []hit, n int, next func(i int) hit) []hit {
	if n == 0 {
		return a
	}
	all := make([]hit, 0, len(a)+n)
	for i := range n {
		h := next(i)
		for len(a) > 0 && a[0].row < h.row {
			all = append(all, a[0])
			a = a[1:]
		}
		if len(a) > 0 && a[0].row == h.row {
			h.mask |= a[0].mask
			h.sum += a[0].sum
			a = a[1:]
		}
		all = append(all, h)
	}
	return append(all, a...)
}

// postings returns the pieces that have a word.
func (x *Index) postings(ctx context.Context, find *sql.Stmt, word string, s scope) (p postings, err error) {
	key := postingsKey{word, s.low}
	if p, ok := x.common.get(s.generation, key); ok {
		return p, nil
	}
	for i, c := range classes {
		if p.lists[i], err = fetch(ctx, find, `"`+word+string(c.digit)+`"`, s); err != nil {
			return p, err
		}
		p.n += len(p.lists[i])
	}
	x.common.put(s.generation, key, p)
	return p, nil
}

// fetch returns the pieces that have a term of the full-text table.
func fetch(ctx context.Context, find *sql.Stmt, term string, s scope) (list []int64, err error) {
	rows, err := find.QueryContext(ctx, term, s.low, s.high)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var text sql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		if list, err = parseRows(text); err != nil {
			return nil, err
		}
	}
	return list, rows.Err()
}

// parseRows parses numbers between commas.
func parseRows(list []byte) ([]int64, error) {
	if len(list) == 0 {
		return nil, nil
	}
	all := make([]int64, 0, len(list)/14+1)
	var n int64
	for _, c := range list {
		switch {
		case c >= '0' && c <= '9':
			n = n*10 + int64(c-'0')
		case c == ',':
			all = append(all, n)
			n = 0
		default:
			return nil, strconv.ErrSyntax
		}
	}
	return append(all, n), nil
}
