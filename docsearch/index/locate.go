package index

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/pieces"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/query"
)

// storedPiece reads a piece.
func (x *Index) storedPiece(ctx context.Context, tx *sql.Tx, row int64) (text string, chunks []pieces.Chunk, err error) {
	var b sql.RawBytes
	read := tx.StmtContext(ctx, x.readPiece)
	defer read.Close()
	rows, err := read.QueryContext(ctx, row)
	if err != nil {
		return "", nil, err
	}
	defer rows.Close()
	if !rows.Next() {
		return "", nil, cmp.Or(rows.Err(), pieces.ErrChunks)
	}
	if err := rows.Scan(&text, &b); err != nil {
		return "", nil, err
	}
	chunks, err = pieces.ParseChunks(b, len(text))
	return text, chunks, err
}

// locate returns the best place of c, and the relevance that c has by it. It reads the
// piece with the most weight and, to verify phrases, others. A relevance of 0 means
// that c does not match.
func (s *search) locate(ctx context.Context, tx *sql.Tx, c *candidate) (query.Place, float64, error) {
	p := s.plan
	hits := slices.Clone(c.hits)
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.sum, a.sum) })
	mask, open := c.mask, p.Phrases() // phrases not found yet
	var best query.Place
	for i, h := range hits {
		if i > 0 && !p.MayHave(open, h.mask) {
			if open == 0 {
				break
			}
			continue
		}
		text, chunks, err := s.index.storedPiece(ctx, tx, h.row)
		if err != nil {
			return query.Place{}, 0, err
		}
		found := p.PhrasesIn(text, open)
		if i == 0 || found != 0 && best.Quality < 1 {
			if at := p.BestChunk(text, chunks); i == 0 || at.Quality >= best.Quality {
				best = at
			}
		}
		open &^= found
	}
	if mask = p.Verified(mask, open); mask == 0 {
		return query.Place{}, 0, nil
	}
	quality := 0.4*hits[0].sum/p.Total + 0.6*best.Quality
	return best, p.Relevance(mask, quality), nil
}
