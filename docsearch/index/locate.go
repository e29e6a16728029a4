package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/pieces"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/query"
)

// piece is a piece as it is stored.
type piece struct {
	text   string
	chunks []byte
}

// piece reads a piece.
func (x *Index) piece(ctx context.Context, tx *sql.Tx, row int64) (p piece, err error) {
	read := tx.StmtContext(ctx, x.readPiece)
	defer read.Close()
	err = read.QueryRowContext(ctx, row).Scan(&p.text, &p.chunks)
	if errors.Is(err, sql.ErrNoRows) {
		err = pieces.ErrChunks
	}
	return p, err
}

// locate returns the best place of c, and the relevance that c has by it. It reads the
// piece with the most weight and, to verify phrases, others. A relevance of 0 means
// that c does not match.
func (s *search) locate(ctx context.Context, tx *sql.Tx, c *candidate) (query.Place, float64, error) {
	p := s.plan
	hits := slices.Clone(c.hits)
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.sum, a.sum) })
	open := p.Phrases() // not found yet
	var places []piece  // the first, and those of phrases
	size := 0
	for i, h := range hits {
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
		at, err := s.index.piece(ctx, tx, h.row)
		if err != nil {
			return query.Place{}, 0, err
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
	quality := 0.4*hits[0].sum/p.Total + 0.6*best.Quality
	return best, p.Relevance(mask, quality), err
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
