package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/pieces"
)

// piece is a piece as it is stored.
type piece struct {
	text   string
	chunks []byte
}

// document is what a result says of its document.
type document struct {
	folder, key int64
	path, title string
}

// readBatch is how many rows one statement reads. Each statement starts two goroutines,
// which cost more than the row and have to wait for a processor.
const readBatch = window

// The statements that read pieces and documents. SQLite would prepare the second one again
// for each search, if it had to think of partial indexes.
var (
	readPieces    = "SELECT id, text, chunks FROM piece WHERE id IN (?" + strings.Repeat(", ?", readBatch-1) + ")"
	readDocuments = "SELECT id, folder, key, path, title FROM document NOT INDEXED WHERE id IN (?" + strings.Repeat(", ?", readBatch-1) + ")"
)

// pieces reads pieces, which must be in the index.
func (x *Index) pieces(ctx context.Context, tx *sql.Tx, ids ...int64) (map[int64]piece, error) {
	all := make(map[int64]piece, len(ids))
	err := readRows(ctx, tx, x.readPieces, ids, func(scan func(...any) error) error {
		var id int64
		var p piece
		err := scan(&id, &p.text, &p.chunks)
		all[id] = p
		return err
	})
	if err == nil && len(all) < len(ids) {
		err = pieces.ErrChunks
	}
	return all, err
}

// piece reads a piece.
func (x *Index) piece(ctx context.Context, tx *sql.Tx, id int64) (piece, error) {
	all, err := x.pieces(ctx, tx, id)
	return all[id], err
}

// errNoRow means that a document of a piece is missing.
var errNoRow = errors.New("a document of the full-text table is missing")

// documents reads documents, which must be in the index.
func (x *Index) documents(ctx context.Context, tx *sql.Tx, ids ...int64) (map[int64]document, error) {
	all := make(map[int64]document, len(ids))
	err := readRows(ctx, tx, x.readDocuments, ids, func(scan func(...any) error) error {
		var id int64
		var d document
		err := scan(&id, &d.folder, &d.key, &d.path, &d.title)
		all[id] = d
		return err
	})
	if err == nil && len(all) < len(ids) {
		err = errNoRow
	}
	return all, err
}

// readRows calls row for each row with one of the ids, of which there are at most readBatch.
func readRows(ctx context.Context, tx *sql.Tx, stmt *sql.Stmt, ids []int64, row func(scan func(...any) error) error) error {
	if len(ids) > readBatch {
		return fmt.Errorf("%d rows in one statement", len(ids))
	}
	args := make([]any, readBatch) // nil is no id
	for i, id := range ids {
		args[i] = id
	}
	own := tx.StmtContext(ctx, stmt)
	defer own.Close()
	rows, err := own.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
