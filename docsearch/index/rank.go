package index

import (
	"context"
	"database/sql"
	"slices"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/impact"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/postings"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/query"
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
	folders   []int64 // that are searched; none: all
	pieces    int
	without   map[int64]bool   // folders in the range that are not searched
	paths     map[int64]string // of the others

	generation int64 // of the index
}

// candidates returns the documents that p may match, most relevant first.
func (x *Index) candidates(ctx context.Context, tx *sql.Tx, p *query.Plan, s scope) ([]candidate, error) {
	hits, err := x.hits(ctx, tx, p, s)
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
		if !s.without[id>>folderShift] && admits(p, &c) {
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
func admits(p *query.Plan, c *candidate) bool {
	best := 0.0
	for _, h := range c.hits {
		c.mask |= h.mask
		best = max(best, h.sum)
	}
	if !p.Admits(func(mask uint64) bool {
		return slices.ContainsFunc(c.hits, func(h hit) bool { return h.mask&mask == mask })
	}) {
		return false
	}
	c.relevance = p.Relevance(c.mask, best/p.Total)
	return true
}

// hits returns the pieces that have a word of p, by row, and weighs the words.
func (x *Index) hits(ctx context.Context, tx *sql.Tx, p *query.Plan, s scope) (all []hit, err error) {
	find := tx.StmtContext(ctx, x.findWord)
	defer find.Close()
	var own, free []hit // free is for the next merge
	found := 0
	for _, word := range p.Order() {
		if found > maxHits && !p.Words[word].Phrase {
			p.Ignore(word)
			continue
		}
		list, err := x.postings(ctx, find, p.Words[word].Text, s)
		if err != nil {
			return nil, err
		}
		found += list.N
		p.Weigh(word, list.N, s.pieces)
		own = own[:0]
		for class, list := range list.Rows {
			gain := p.Words[word].Weight * impact.Classes[class].Value
			own, free = merge(free, own, len(list), func(i int) hit { return hit{list[i], 1 << word, gain} })
		}
		all, free = merge(free, all, len(own), func(i int) hit { return own[i] })
	}
	return all, nil
}

// merge merges n hits with those of a; all are ordered by row. It writes to the room of
// into, and returns the slice that is free then.
func merge(into, a []hit, n int, next func(i int) hit) (merged, free []hit) {
	if n == 0 {
		return a, into
	}
	free = a
	merged = slices.Grow(into[:0], len(a)+n)
	for i := range n {
		h := next(i)
		for len(a) > 0 && a[0].row < h.row {
			merged = append(merged, a[0])
			a = a[1:]
		}
		if len(a) > 0 && a[0].row == h.row {
			h.mask |= a[0].mask
			h.sum += a[0].sum
			a = a[1:]
		}
		merged = append(merged, h)
	}
	return append(merged, a...), free
}

// postings returns the pieces that have a word.
func (x *Index) postings(ctx context.Context, find *sql.Stmt, word string, s scope) (p postings.Lists, err error) {
	key := postings.Key{Word: word, Low: s.low, High: s.high}
	if p, ok := x.common.Get(s.generation, key); ok {
		return p, nil
	}
	for i, c := range impact.Classes {
		if p.Rows[i], err = fetch(ctx, find, `"`+word+string(c.Digit)+`"`, s); err != nil {
			return p, err
		}
		p.N += len(p.Rows[i])
	}
	x.common.Put(s.generation, key, p)
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
		if list, err = postings.Parse(text); err != nil {
			return nil, err
		}
	}
	return list, rows.Err()
}
