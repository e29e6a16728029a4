package index

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/query"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/words"
)

const (
	queryTimeout = 2 * time.Second  // of Options
	downTime     = 30 * time.Second // without another attempt after one failed
	maxCached    = 256              // vectors of queries
	maxNeighbors = 200              // chunks that the vectors contribute to a search
)

// vectors is what an Index keeps in memory of its vectors.
type vectors struct {
	dimensions atomic.Int64 // of the table, 0: there is none

	mu     sync.Mutex // guards all below
	cache  map[string][]float32
	downTo time.Time // no query asks the Embedder before
}

func (v *vectors) ready() bool { return v.dimensions.Load() > 0 }

// prepareVectors reads which vectors the file has, and drops them if they are another
// model's.
func (x *Index) prepareVectors(ctx context.Context) error {
	var n int64
	err := x.db.Change(ctx, func(tx *sql.Tx) error {
		dimensions, err := setting(ctx, tx, "dimensions")
		if err != nil {
			return err
		}
		n, _ = strconv.ParseInt(dimensions, 10, 64) // there is none at first
		model, err := setting(ctx, tx, "model")
		if err != nil || x.opts.Embedder == nil || model == x.opts.Embedder.Model() {
			return err
		}
		if n > 0 {
			x.log.Info("vectors dropped", "model", model, "now", x.opts.Embedder.Model())
		}
		n = 0
		return x.resetVectors(ctx, tx, 0)
	})
	x.vectors.dimensions.Store(n)
	return err
}

func setting(ctx context.Context, tx *sql.Tx, name string) (value string, err error) {
	err = tx.QueryRowContext(ctx, "SELECT value FROM setting WHERE name = ?", name).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return value, err
}

// resetVectors drops all vectors, and makes the table for new ones if dimensions is not 0.
func (x *Index) resetVectors(ctx context.Context, tx *sql.Tx, dimensions int) error {
	statements := []string{
		"DROP TABLE IF EXISTS vectors", "DELETE FROM vector", "DELETE FROM chunk_vector",
		"UPDATE document SET embedded = 0 WHERE embedded = 1",
	}
	if dimensions > 0 {
		statements = append(statements, fmt.Sprintf(`CREATE VIRTUAL TABLE vectors USING vec0 (
			folder INTEGER PARTITION KEY, embedding FLOAT[%d] DISTANCE_METRIC=cosine)`, dimensions))
	}
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	for name, value := range map[string]any{"model": x.opts.Embedder.Model(), "dimensions": strconv.Itoa(dimensions)} {
		if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO setting (name, value) VALUES (?, ?)", name, value); err != nil {
			return err
		}
	}
	return nil
}

// countVectors returns the number of chunks that have a vector.
func (x *Index) countVectors(ctx context.Context, tx *sql.Tx) (n int, err error) {
	err = tx.QueryRowContext(ctx, "SELECT count(*) FROM chunk_vector").Scan(&n)
	return n, err
}

// clearVectors takes the vectors from the chunks of a document. The vectors stay for
// chunks with the same text, until EmbedMissing ends.
func (u *updater) clearVectors(ctx context.Context, id int64) error {
	return u.exec(ctx, "DELETE FROM chunk_vector WHERE piece BETWEEN ? AND ?", id<<pieceShift, (id+1)<<pieceShift-1)
}

// queryVector returns the vector of a query; nil, and perhaps a warning, if there is none.
func (x *Index) queryVector(ctx context.Context, q *Query) ([]float32, string) {
	if x.opts.Embedder == nil {
		return nil, ""
	}
	if !x.vectors.ready() {
		return nil, "no document has a vector yet: results are by words alone"
	}
	text := strings.ReplaceAll(strings.Join(append(append([]string{q.Text}, q.Concepts...), q.Terms...), " "), `"`, " ")
	text = strings.Join(strings.Fields(text[:words.CutBefore(text, query.MaxBytes)]), " ")
	const failed = "the embeddings endpoint fails: results are by words alone"
	v := &x.vectors
	v.mu.Lock()
	vector, down := v.cache[text], time.Now().Before(v.downTo)
	v.mu.Unlock()
	if vector == nil {
		if down {
			return nil, failed
		}
		var err error
		if vector, err = x.embedQuery(ctx, text); err != nil {
			if ctx.Err() != nil {
				return nil, "" // the search fails anyway
			}
			x.log.Warn("query not embedded", "err", err)
			return nil, failed
		}
	}
	if int64(len(vector)) != v.dimensions.Load() {
		return nil, "the vectors of the documents are of another model: results are by words alone until they are made anew"
	}
	return vector, ""
}

// embedQuery asks the Embedder. After a failure, queries leave it alone for a while.
func (x *Index) embedQuery(ctx context.Context, text string) ([]float32, error) {
	ctx, cancel := context.WithTimeout(ctx, x.opts.queryTimeout)
	defer cancel()
	vectors, err := x.opts.Embedder.Embed(ctx, []string{text})
	if err == nil && (len(vectors) != 1 || len(vectors[0]) == 0) {
		err = errors.New("the embedder returned no vector")
	}
	v := &x.vectors
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			v.downTo = time.Now().Add(downTime)
		}
		return nil, err
	}
	if v.cache == nil || len(v.cache) >= maxCached {
		v.cache = map[string][]float32{}
	}
	v.cache[text] = vectors[0]
	return vectors[0], nil
}

// neighbor is a document whose chunk is close to the query.
type neighbor struct {
	row      int64 // of the piece
	chunk    int
	distance float64
}

// nearest returns the documents with the chunks closest to a vector, each once, closest
// first. A chunk of no similarity, that is a cosine of 0 or less, is not close.
func (x *Index) nearest(ctx context.Context, tx *sql.Tx, vector []float32, s scope) ([]neighbor, error) {
	var all []neighbor
	if len(s.folders) == 0 {
		found, err := neighborsIn(ctx, tx, vector, "")
		if err != nil {
			return nil, err
		}
		all = found
	}
	for _, folder := range s.folders { // else the documents of others could take all places
		found, err := neighborsIn(ctx, tx, vector, "AND folder = ?", folder)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.SortStableFunc(all, func(a, b neighbor) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.row, b.row), cmp.Compare(a.chunk, b.chunk))
	})
	seen := map[int64]bool{}
	return slices.DeleteFunc(all, func(n neighbor) bool {
		id := n.row >> pieceShift
		again := seen[id] || s.without[id>>folderShift]
		seen[id] = true
		return again
	}), nil
}

// neighborsIn returns the chunks closest to a vector, of those that a condition admits.
func neighborsIn(ctx context.Context, tx *sql.Tx, vector []float32, where string, args ...any) ([]neighbor, error) {
	rows, err := tx.QueryContext(ctx, `WITH near AS (
			SELECT rowid AS id, distance FROM vectors WHERE embedding MATCH ? AND k = ? `+where+`)
		SELECT c.piece, c.chunk, distance FROM near JOIN chunk_vector c ON c.vector = near.id
		WHERE distance < 0.9999`, append([]any{encodeVector(vector), maxNeighbors}, args...)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []neighbor
	for rows.Next() {
		var n neighbor
		if err := rows.Scan(&n.row, &n.chunk, &n.distance); err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, rows.Err()
}

// encodeVector returns v in the form of vec0.
func encodeVector(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b
}
