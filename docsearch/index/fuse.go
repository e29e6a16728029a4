package index

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/pieces"
)

// rrf is the k of reciprocal rank fusion: the result at rank r of a list adds 1/(k+r).
const rrf = 60

// fused is a document of either list.
type fused struct {
	id        int64
	relevance float64
	words     *candidate // nil: the vectors alone found it
	read      *ranked    // words, if its text was read
	near      *neighbor  // nil: the words alone did
}

// hybridPage adds the results from the cursor on, of both lists.
func (s *search) hybridPage(ctx context.Context, tx *sql.Tx, found []candidate, near []neighbor) error {
	all, err := s.fuse(ctx, tx, found, near)
	if err != nil {
		return err
	}
	for at := s.from.at; at < len(all) && all[at].relevance >= s.query.Threshold; at++ {
		if s.exhausted(at, len(all), 1) {
			return nil
		}
		r, err := s.settle(ctx, tx, &all[at])
		if err != nil {
			return err
		}
		if r.relevance == 0 {
			continue
		}
		if len(s.response.Results) == s.query.Limit {
			s.end(at, 1)
			return nil
		}
		s.add(&r)
	}
	return nil
}

// fuse merges the lists. Its relevance is the fused score as a share of the best one.
func (s *search) fuse(ctx context.Context, tx *sql.Tx, found []candidate, near []neighbor) ([]fused, error) {
	first, err := s.rerank(ctx, tx, found[:min(window, len(found))])
	if err != nil {
		return nil, err
	}
	rank := func(at int) float64 { return float64(rrf+1) / float64(rrf+1+at) / 2 }
	ranks := make(map[int64]int, len(first))
	for at, r := range first {
		ranks[r.id] = at
	}
	all := make([]fused, 0, len(found)+len(near))
	at := make(map[int64]int, len(found))
	for i := range found {
		f := fused{id: found[i].id, relevance: rank(i), words: &found[i]}
		if place, ok := ranks[f.id]; ok {
			f.relevance, f.read = rank(place), &first[place]
		}
		at[f.id] = len(all)
		all = append(all, f)
	}
	for i := range near {
		id := near[i].row >> pieceShift
		if k, ok := at[id]; ok {
			all[k].relevance += rank(i)
			all[k].near = &near[i]
		} else if !s.plan.Strict() {
			all = append(all, fused{id: id, relevance: rank(i), near: &near[i]})
		}
	}
	slices.SortFunc(all, func(a, b fused) int {
		return cmp.Or(cmp.Compare(b.relevance, a.relevance), cmp.Compare(a.id, b.id))
	})
	return all, nil
}

// settle reads the text of a result. The chunk is the words' best if it has most of
// them, else the one whose vector is closest.
func (s *search) settle(ctx context.Context, tx *sql.Tx, f *fused) (ranked, error) {
	r, err := s.readWords(ctx, tx, f)
	if err != nil {
		return r, err
	}
	if r.relevance > 0 {
		r.relevance = f.relevance
	}
	if f.near == nil || r.place.Quality >= 0.5 || s.plan.Strict() {
		return r, nil
	}
	if f.words == nil {
		documents, err := s.index.documents(ctx, tx, f.id)
		if err != nil {
			return r, err
		}
		r.document = documents[f.id]
	}
	p, err := s.index.piece(ctx, tx, f.near.row)
	if err != nil {
		return r, err
	}
	chunks, err := pieces.ParseChunks(p.chunks, len(p.text))
	if err != nil {
		return r, err
	}
	if f.near.chunk >= len(chunks) {
		return r, pieces.ErrChunks
	}
	c := chunks[f.near.chunk]
	r.relevance, r.place = f.relevance, s.plan.Rate(p.text[c.Start:c.End])
	r.place.Chunk = c
	return r, nil
}

// readWords returns the place and the relevance of f by its words; none if it has no place.
func (s *search) readWords(ctx context.Context, tx *sql.Tx, f *fused) (ranked, error) {
	if f.words == nil {
		return ranked{id: f.id}, nil
	}
	if f.read == nil {
		one, err := s.rerank(ctx, tx, []candidate{*f.words})
		if err != nil {
			return ranked{}, err
		}
		f.read = &one[0]
	}
	return *f.read, nil
}
