package postings

import (
	"maps"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/impact"
)

// A larger change is not taken over: the lists are read again. Searches wait for the
// taking over, 15 ms at most.
const (
	maxChangeBytes = 1 << 20 // of the rows of the full-text table
	maxChangeRows  = 64
)

// Change is what one transaction does to the pieces of the index. The zero Change does
// nothing.
type Change struct {
	rows  map[int64]string // the row of the full-text table, "" if it was removed
	bytes int
	large bool // rows is not complete
}

// Add tells that a piece was added with a row of the full-text table, as impact makes it.
func (c *Change) Add(piece int64, row string) {
	if c.large {
		return
	}
	c.bytes += len(row)
	if c.bytes > maxChangeBytes || len(c.rows) >= maxChangeRows {
		c.large, c.rows = true, nil
		return
	}
	if c.rows == nil {
		c.rows = map[int64]string{}
	}
	c.rows[piece] = row
}

// Remove tells that a piece was removed.
func (c *Change) Remove(piece int64) { c.Add(piece, "") }

// gain is the pieces that a word has after a change, of those that the change names.
type gain [len(impact.Classes)][]int64

// gains returns the pieces of the change, in order, and those that have one of words now.
func (c *Change) gains(words map[string]bool) (pieces []int64, gains map[string]*gain) {
	pieces = slices.Sorted(maps.Keys(c.rows))
	gains = map[string]*gain{}
	for _, piece := range pieces {
		for term := range strings.FieldsSeq(c.rows[piece]) {
			word, class := impact.Split(term)
			if !words[word] {
				continue
			}
			if gains[word] == nil {
				gains[word] = new(gain)
			}
			gains[word][class] = append(gains[word][class], piece)
		}
	}
	return pieces, gains
}

// patch returns p, the lists of k, after a change of pieces.
func (p Lists) patch(k Key, pieces []int64, g *gain) Lists {
	if g == nil {
		g = new(gain)
	}
	p.N = 0
	for class, list := range p.Rows {
		p.Rows[class] = patch(list, k, pieces, g[class])
		p.N += len(p.Rows[class])
	}
	return p
}

// patch returns list without the pieces, but with gained, those of them that have the word
// and are in the range of k. It does not change list, which others may read.
func patch(list []int64, k Key, pieces, gained []int64) []int64 {
	var patched []int64
	rest := list
	for _, piece := range pieces {
		at, has := slices.BinarySearch(rest, piece)
		gains := len(gained) > 0 && gained[0] == piece
		if gains {
			gained = gained[1:]
			gains = piece >= k.Low && piece <= k.High
		}
		if !has && !gains {
			continue
		}
		if patched == nil {
			patched = make([]int64, 0, len(list)+len(gained)+1)
		}
		patched = append(patched, rest[:at]...)
		if rest = rest[at:]; has {
			rest = rest[1:]
		}
		if gains {
			patched = append(patched, piece)
		}
	}
	if patched == nil {
		return list
	}
	return append(patched, rest...)
}
