package index

import (
	"context"
	"database/sql"
)

// vectors is the state of the vectors of an index.
type vectors struct{}

func (v *vectors) ready() bool { return false }

func (x *Index) prepareVectors(ctx context.Context) error { return nil }

func (x *Index) countVectors(ctx context.Context, tx *sql.Tx) (int, error) { return 0, nil }

func (u *updater) clearVectors(ctx context.Context, id int64) error { return nil }

func (x *Index) queryVector(ctx context.Context, q *Query) ([]float32, string) { return nil, "" }

// near is a document found by its vector.
type neighbour struct {
	row   int64
	chunk int
}

func (x *Index) nearest(ctx context.Context, tx *sql.Tx, vector []float32, s scope) ([]neighbour, error) {
	return nil, nil
}

func (s *search) hybridPage(ctx context.Context, tx *sql.Tx, found []candidate, near []neighbour) error {
	return s.lexicalPage(ctx, tx, found)
}

// EmbedMissing embeds.
func (x *Index) EmbedMissing(ctx context.Context) error { return nil }
