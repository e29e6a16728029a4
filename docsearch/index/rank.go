package index

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strconv"
)

// maxHits bounds how many pieces a query looks at before it ignores further words.
const maxHits = 60_000

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
	low, high int64 // of the ids of pieces
	pieces    int
	without   map[int64]bool // folders in the range that are not searched
}

// candidates returns the documents that p may match, most relevant first.
func (p *plan) candidates(ctx context.Context, tx *sql.Tx, s scope) ([]candidate, error) {
	hits, err := p.hits(ctx, tx, s)
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
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.relevance, a.relevance), cmp.Compare(a.id, b.id))
	})
	return all, nil
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
func (p *plan) hits(ctx context.Context, tx *sql.Tx, s scope) ([]hit, error) {
	find, err := tx.PrepareContext(ctx, "SELECT group_concat(rowid) FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ?")
	if err != nil {
		return nil, err
	}
	defer find.Close()
	var all []hit
	at := map[int64]int32{}
	found := 0
	for _, word := range p.order() {
		if found > maxHits && !p.words[word].phrase {
			p.cut = true
			continue
		}
		lists, n, err := fetch(ctx, find, p.words[word].text, s)
		if err != nil {
			return nil, err
		}
		found += n
		p.weigh(word, n, s.pieces)
		for class, list := range lists {
			gain := p.words[word].weight * classes[class].value
			for _, row := range list {
				i, ok := at[row]
				if !ok {
					i = int32(len(all))
					at[row] = i
					all = append(all, hit{row: row})
				}
				all[i].mask |= 1 << word
				all[i].sum += gain
			}
		}
	}
	slices.SortFunc(all, func(a, b hit) int { return cmp.Compare(a.row, b.row) })
	return all, nil
}

// fetch returns the pieces that have a word, by the class of its impact.
func fetch(ctx context.Context, find *sql.Stmt, word string, s scope) (lists [len(classes)][]int64, n int, err error) {
	for i, c := range classes {
		var list sql.RawBytes
		rows, err := find.QueryContext(ctx, `"`+word+string(c.digit)+`"`, s.low, s.high)
		if err != nil {
			return lists, n, err
		}
		for rows.Next() {
			if err = rows.Scan(&list); err == nil {
				lists[i], err = parseRows(list)
			}
			if err != nil {
				break
			}
		}
		if err := cmp.Or(err, rows.Err(), rows.Close()); err != nil {
			return lists, n, err
		}
		n += len(lists[i])
	}
	return lists, n, nil
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
