package index

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/pieces"
)

// embedBatch is how many pieces EmbedMissing takes at a time.
const embedBatch = 16

// unembedded is a piece whose chunks have no vectors yet.
type unembedded struct {
	row      int64
	document int64
	hash     []byte // of the document's file: it must be the same when the vectors come
	last     bool   // of the document
	chunks   []pieces.Chunk
	text     string
}

func (m *unembedded) folder() int64 { return m.document >> folderShift }

// EmbedMissing gets vectors for the chunks that have none. Chunks of one folder with
// the same text have one vector, and a text that was there before keeps its vector. It
// returns nil when none is left, and an error when the Embedder fails; the vectors
// that it got until then stay. Without an Embedder it does nothing. One call at a
// time makes progress; Close interrupts it.
func (x *Index) EmbedMissing(ctx context.Context) error {
	if x.opts.Embedder == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(x.ended, cancel)()
	for after := int64(0); ; {
		missing, err := x.missing(ctx, after)
		if err != nil {
			return err
		}
		if len(missing) == 0 {
			return x.collect(ctx)
		}
		again, err := x.embed(ctx, missing)
		if err != nil {
			return err
		}
		if after = missing[len(missing)-1].row; again {
			after = 0
		}
	}
}

// missing returns some pieces after a row, in order.
func (x *Index) missing(ctx context.Context, after int64) (all []unembedded, err error) {
	err = x.view(ctx, "find chunks without vector", func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT p.id, d.id, d.hash, p.id = (d.id << 12) + d.pieces - 1, p.text, p.chunks
			FROM document d INDEXED BY document_missing
			CROSS JOIN piece p ON p.id BETWEEN d.id << 12 AND (d.id << 12) + d.pieces - 1
			JOIN folder f ON f.id = d.folder AND f.going = 0
			WHERE d.embedded = 0 AND d.pieces > 0 AND d.id >= ? AND p.id > ? ORDER BY p.id LIMIT ?`,
			after>>pieceShift, after, embedBatch)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var m unembedded
			var chunks sql.RawBytes
			if err := rows.Scan(&m.row, &m.document, &m.hash, &m.last, &m.text, &chunks); err != nil {
				return err
			}
			if m.chunks, err = pieces.ParseChunks(chunks, len(m.text)); err != nil {
				return err
			}
			all = append(all, m)
		}
		return rows.Err()
	})
	return all, err
}

// textKey names a chunk's text in a folder.
type textKey struct {
	folder int64
	hash   [sha256.Size]byte
}

// embed gets the vectors of pieces and writes them. It returns true if it dropped all
// vectors because these are of another length.
func (x *Index) embed(ctx context.Context, missing []unembedded) (again bool, err error) {
	texts := map[textKey]string{}
	for i := range missing {
		m := &missing[i]
		for _, c := range m.chunks {
			texts[m.key(c)] = m.text[c.Start:c.End]
		}
	}
	if err := x.dropKnown(ctx, texts); err != nil {
		return false, err
	}
	keys := make([]textKey, 0, len(texts))
	input := make([]string, 0, len(texts))
	for k, text := range texts {
		keys = append(keys, k)
		input = append(input, text)
	}
	var vectors [][]float32
	if len(input) > 0 {
		if vectors, err = x.opts.Embedder.Embed(ctx, input); err != nil {
			return false, fmt.Errorf("embed chunks: %w", err)
		}
		if len(vectors) != len(input) || len(vectors[0]) == 0 {
			return false, fmt.Errorf("embed chunks: %d vectors for %d texts", len(vectors), len(input))
		}
	}
	err = x.change(ctx, "write vectors", func(tx *sql.Tx) error {
		if len(vectors) > 0 && int64(len(vectors[0])) != x.vectors.dimensions.Load() {
			again = x.vectors.ready()
			if err := x.resetVectors(ctx, tx, len(vectors[0])); err != nil {
				return err
			}
		}
		u := &updater{tx: tx}
		for i, k := range keys {
			if err := u.putVector(ctx, k, vectors[i]); err != nil {
				return err
			}
		}
		return u.link(ctx, missing)
	})
	if err == nil && len(vectors) > 0 {
		x.vectors.dimensions.Store(int64(len(vectors[0])))
	}
	return again, err
}

func (m *unembedded) key(c pieces.Chunk) textKey {
	return textKey{m.folder(), sha256.Sum256([]byte(m.text[c.Start:c.End]))}
}

// dropKnown removes the texts that have a vector.
func (x *Index) dropKnown(ctx context.Context, texts map[textKey]string) error {
	return x.view(ctx, "find vectors", func(tx *sql.Tx) error {
		u := &updater{tx: tx}
		for k := range texts {
			id, err := u.vectorID(ctx, k)
			if err != nil {
				return err
			}
			if id != 0 {
				delete(texts, k)
			}
		}
		return nil
	})
}

// vectorID returns 0 if the text has no vector.
func (u *updater) vectorID(ctx context.Context, k textKey) (id int64, err error) {
	s, err := u.prepared(ctx, "SELECT id FROM vector WHERE folder = ? AND hash = ?")
	if err != nil {
		return 0, err
	}
	err = s.QueryRowContext(ctx, k.folder, k.hash[:]).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return id, err
}

func (u *updater) putVector(ctx context.Context, k textKey, v []float32) error {
	if id, err := u.vectorID(ctx, k); err != nil || id != 0 {
		return err
	}
	if err := u.exec(ctx, "INSERT INTO vector (folder, hash) VALUES (?, ?)", k.folder, k.hash[:]); err != nil {
		return err
	}
	id, err := u.vectorID(ctx, k)
	if err != nil {
		return err
	}
	return u.exec(ctx, "INSERT INTO vectors (rowid, folder, embedding) VALUES (?, ?, ?)", id, k.folder, encodeVector(v))
}

// link gives the chunks of pieces their vectors, unless the document has changed.
func (u *updater) link(ctx context.Context, missing []unembedded) error {
	same, err := u.prepared(ctx, "SELECT count(*) FROM document WHERE id = ? AND hash = ?")
	if err != nil {
		return err
	}
	for i := range missing {
		m := &missing[i]
		var n int
		if err := same.QueryRowContext(ctx, m.document, m.hash).Scan(&n); err != nil {
			return err
		}
		complete := n == 1
		for i, c := range m.chunks {
			if !complete {
				break
			}
			id, err := u.vectorID(ctx, m.key(c))
			if err != nil {
				return err
			}
			if complete = id != 0; !complete {
				break
			}
			if err := u.exec(ctx, "INSERT OR REPLACE INTO chunk_vector (piece, chunk, vector) VALUES (?, ?, ?)", m.row, i, id); err != nil {
				return err
			}
		}
		if complete && m.last {
			if err := u.exec(ctx, "UPDATE document SET embedded = 1 WHERE id = ?", m.document); err != nil {
				return err
			}
		}
	}
	return nil
}

// collectBatch is how many vectors one transaction removes.
const collectBatch = 500

// collect removes vectors that no chunk has any more.
func (x *Index) collect(ctx context.Context) error {
	for after, left := int64(0), x.vectors.ready(); left; {
		err := x.change(ctx, "remove vectors", func(tx *sql.Tx) error {
			ids, err := queryAll[int64](ctx, tx, `SELECT id FROM vector v WHERE id > ?
				AND NOT EXISTS (SELECT 1 FROM chunk_vector c WHERE c.vector = v.id) ORDER BY id LIMIT ?`, after, collectBatch)
			if err != nil {
				return err
			}
			u := &updater{tx: tx}
			if err := u.deleteVectors(ctx, ids); err != nil {
				return err
			}
			if len(ids) > 0 {
				after = ids[len(ids)-1]
			}
			left = len(ids) == collectBatch
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// removeVectors removes some vectors of the folder. It tells whether there may be more.
func (u *updater) removeVectors(ctx context.Context) (left bool, err error) {
	ids, err := queryAll[int64](ctx, u.tx, "SELECT id FROM vector WHERE folder = ? LIMIT ?", u.folder, collectBatch)
	if err != nil {
		return false, err
	}
	return len(ids) == collectBatch, u.deleteVectors(ctx, ids)
}

func (u *updater) deleteVectors(ctx context.Context, ids []int64) error {
	for _, id := range ids {
		for _, query := range []string{"DELETE FROM vectors WHERE rowid = ?", "DELETE FROM vector WHERE id = ?"} {
			if err := u.exec(ctx, query, id); err != nil {
				return err
			}
		}
	}
	return nil
}
