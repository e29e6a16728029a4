package index

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

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

// room is memory that searches use again, so that the garbage collector, which shares
// their processors, runs once in some searches and not in each.
type room struct {
	all, own, free      []hit
	candidates, ordered []candidate
	keys                []uint64
}

// candidates returns the documents that p may match, most relevant first, in r.
func (x *Index) candidates(ctx context.Context, tx *sql.Tx, p *query.Plan, s scope, r *room) ([]candidate, error) {
	if err := x.hits(ctx, tx, p, s, r); err != nil {
		return nil, err
	}
	all := r.candidates[:0]
	for hits := r.all; len(hits) > 0; {
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
	r.candidates = all
	r.order()
	return r.ordered, nil
}

// order orders the candidates, which come by id, by relevance, and then by id. It sorts
// numbers, because there may be many.
func (r *room) order() {
	r.keys, r.ordered = r.keys[:0], r.ordered[:0]
	for i := range r.candidates {
		r.keys = append(r.keys, uint64((1-r.candidates[i].relevance)*(1<<32))<<31|uint64(i))
	}
	slices.Sort(r.keys)
	for _, k := range r.keys {
		r.ordered = append(r.ordered, r.candidates[k&(1<<31-1)])
	}
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

// hits sets r.all to the pieces that have a word of p, by row, and weighs the words.
func (x *Index) hits(ctx context.Context, tx *sql.Tx, p *query.Plan, s scope, r *room) error {
	find := tx.StmtContext(ctx, x.findWord)
	defer find.Close()
	r.all = r.all[:0]
	found := 0
	for _, word := range p.Order() {
		if found > maxHits && !p.Words[word].Phrase {
			p.Ignore(word)
			continue
		}
		lists, err := x.postings(ctx, find, p.Words[word].Text, s)
		if err != nil {
			return err
		}
		found += lists.N
		p.Weigh(word, lists.N, s.pieces)
		r.own = appendHits(r.own[:0], lists.Rows, 1<<word, p.Words[word].Weight)
		r.free = merge(r.free[:0], r.all, r.own)
		r.all, r.free = r.free, r.all
	}
	return nil
}

// appendHits appends the hits of a word, by row.
func appendHits(all []hit, lists [len(impact.Classes)][]int64, mask uint64, weight float64) []hit {
	for {
		next := -1
		for class, list := range lists {
			if len(list) > 0 && (next < 0 || list[0] < lists[next][0]) {
				next = class
			}
		}
		if next < 0 {
			return all
		}
		all = append(all, hit{lists[next][0], mask, weight * impact.Classes[next].Value})
		lists[next] = lists[next][1:]
	}
}

// merge appends the hits of a and b, which are ordered by row, to all.
func merge(all, a, b []hit) []hit {
	for len(a) > 0 && len(b) > 0 {
		h := a[0]
		switch {
		case h.row < b[0].row:
			a = a[1:]
		case h.row > b[0].row:
			h, b = b[0], b[1:]
		default:
			h.mask |= b[0].mask
			h.sum += b[0].sum
			a, b = a[1:], b[1:]
		}
		all = append(all, h)
	}
	return append(append(all, a...), b...)
}

// postings returns the pieces that have a word.
func (x *Index) postings(ctx context.Context, find *sql.Stmt, word string, s scope) (p postings.Lists, err error) {
	key := postings.Key{Word: word, Low: s.low, High: s.high}
	if p, ok := x.common.Get(s.generation, key); ok {
		return p, nil
	}
	rows, err := find.QueryContext(ctx, `"`+word, s.low, s.high)
	if err != nil {
		return p, err
	}
	defer rows.Close()
	for rows.Next() {
		var class int
		var text sql.RawBytes
		if err := rows.Scan(&class, &text); err != nil {
			return p, err
		}
		if p.Rows[class], err = postings.Parse(text); err != nil {
			return p, err
		}
		p.N += len(p.Rows[class])
	}
	if err := rows.Err(); err != nil {
		return p, err
	}
	x.common.Put(s.generation, key, p)
	return p, nil
}

// findWord returns the statement that finds the pieces between two that have a word, which
// is given after a quotation mark, by its class.
func findWord() string {
	var all []string
	for i, c := range impact.Classes {
		all = append(all, fmt.Sprintf(`SELECT %d, group_concat(rowid) FROM words
			WHERE words MATCH ?1 || '%c"' AND rowid BETWEEN ?2 AND ?3`, i, c.Digit))
	}
	return strings.Join(all, " UNION ALL ")
}
