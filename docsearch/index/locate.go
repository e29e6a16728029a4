package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"path"
	"slices"
	"strings"

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
	if err != nil {
		return best, 0, err
	}
	quality := 0.4*hits[0].sum/p.Total + 0.6*best.Quality
	named, err := s.named(ctx, tx, c.id)
	quality += (1 - quality) * nameShare * named
	return best, p.Relevance(mask, quality), err
}

// nameShare is how much of the quality that its text lacks a document gets for a name
// or title that is the query.
const nameShare = 0.9

// named tells how much, from 0 to 1, the name or the title of a document is the query.
func (s *search) named(ctx context.Context, tx *sql.Tx, id int64) (float64, error) {
	describe := tx.StmtContext(ctx, s.index.describe)
	defer describe.Close()
	var folder, key int64
	var file, title string
	if err := describe.QueryRowContext(ctx, id).Scan(&folder, &file, &title, &key); err != nil {
		return 0, err
	}
	name := path.Base(file)
	return max(s.plan.NameQuality(name), s.plan.NameQuality(strings.TrimSuffix(name, path.Ext(name))), s.plan.NameQuality(title)), nil
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
