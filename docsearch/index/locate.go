package index

import (
	"cmp"
	"context"
	"database/sql"
	"path"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/pieces"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/query"
)

// read is what the rank of a candidate is computed from.
type read struct {
	*candidate
	hits     []hit // those with the most weight first
	first    piece // of the first hit
	document document
}

// read reads what the ranks of candidates, at most readBatch, are computed from.
func (s *search) read(ctx context.Context, tx *sql.Tx, found []candidate) ([]read, error) {
	all := make([]read, len(found))
	ids, rows := make([]int64, len(found)), make([]int64, len(found))
	for i := range found {
		c := &found[i]
		hits := slices.Clone(c.hits)
		slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.sum, a.sum) })
		all[i] = read{candidate: c, hits: hits}
		ids[i], rows[i] = c.id, hits[0].row
	}
	texts, err := s.index.pieces(ctx, tx, rows...)
	if err != nil {
		return nil, err
	}
	documents, err := s.index.documents(ctx, tx, ids...)
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].first, all[i].document = texts[rows[i]], documents[ids[i]]
	}
	return all, nil
}

// locate returns the best place of c, and the relevance that c has by it. It looks at the
// piece with the most weight and, to verify phrases, reads others. A relevance of 0 means
// that c does not match.
func (s *search) locate(ctx context.Context, tx *sql.Tx, c *read) (query.Place, float64, error) {
	p := s.plan
	open := p.Phrases() // not found yet
	var places []piece  // the first, and those of phrases
	size := 0
	for i, h := range c.hits {
		if i > 0 && !p.MayHave(open, h.mask) {
			if open == 0 {
				break
			}
			continue
		}
		if size > maxUnmatched {
			s.long = true
			break
		}
		at := c.first
		if i > 0 {
			var err error
			if at, err = s.index.piece(ctx, tx, h.row); err != nil {
				return query.Place{}, 0, err
			}
		}
		size += len(at.text)
		found := p.PhrasesIn(at.text, open)
		if i == 0 || found != 0 {
			places = append(places, at)
		}
		open &^= found
	}
	mask := p.Verified(c.mask, open)
	if mask == 0 {
		s.unmatched += size
		return query.Place{}, 0, nil
	}
	best, err := s.best(places)
	if err != nil {
		return best, 0, err
	}
	quality := 0.4*c.hits[0].sum/p.Total + 0.6*best.Quality
	quality += (1 - quality) * nameShare * s.named(&c.document)
	return best, p.Relevance(mask, quality), nil
}

// nameShare is how much of the quality that its text lacks a document gets for a name
// or title that is the query.
const nameShare = 0.9

// named tells how much, from 0 to 1, the name or the title of a document is the query.
func (s *search) named(d *document) float64 {
	name := path.Base(d.path)
	return max(s.plan.NameQuality(name), s.plan.NameQuality(strings.TrimSuffix(name, path.Ext(name))), s.plan.NameQuality(d.title))
}

// best returns the best place of all. Of equals it is the last, which has more phrases.
func (s *search) best(all []piece) (best query.Place, err error) {
	for i := range all {
		if i > 0 && best.Quality >= 1 {
			break
		}
		chunks, err := pieces.ParseChunks(all[i].chunks, len(all[i].text))
		if err != nil {
			return best, err
		}
		if at := s.plan.BestChunk(all[i].text, chunks); i == 0 || at.Quality >= best.Quality {
			best = at
		}
	}
	return best, nil
}
