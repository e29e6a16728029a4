package index

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/pieces"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/words"
)

const (
	defaultDocuments = 100
	maxDocuments     = 1000
	defaultText      = 64 << 10
	maxText          = 1 << 20
	maxPathBytes     = 8 << 10 // of a cursor of Documents
)

const summaryColumns = "d.key, d.title, f.path, d.path, d.type, d.size, d.modified, d.chunks"

func scanSummary(scan func(...any) error, more ...any) (s api.DocumentSummary, path, title string, err error) {
	var key, modified int64
	err = scan(append([]any{&key, &title, &s.Folder, &path, &s.Type, &s.Bytes, &modified, &s.Chunks}, more...)...)
	s.ID = idOf(key)
	s.Name = nameOf(title, path)
	s.Path = filepath.Join(s.Folder, filepath.FromSlash(path))
	s.Modified = time.Unix(0, modified).UTC()
	return s, path, title, err
}

// Documents returns the documents of a folder in the order of their paths: limit of
// them (1-1000; 0 is 100), from the cursor on.
func (x *Index) Documents(ctx context.Context, folder, cursor string, limit int) (*api.Documents, error) {
	if limit == 0 {
		limit = defaultDocuments
	}
	limit = min(max(limit, 1), maxDocuments)
	after, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(after) > maxPathBytes || !utf8.Valid(after) {
		return nil, ErrCursor
	}
	answer := &api.Documents{Documents: []api.DocumentSummary{}}
	err = x.view(ctx, "list documents", func(tx *sql.Tx) error {
		id, err := folderID(ctx, tx, folder)
		if err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, "SELECT "+summaryColumns+` FROM document d JOIN folder f ON f.id = d.folder
			WHERE d.folder = ? AND d.path > ? AND d.pieces > 0 ORDER BY d.path LIMIT ?`, id, string(after), limit+1)
		if err != nil {
			return err
		}
		defer rows.Close()
		var last string
		for rows.Next() {
			if len(answer.Documents) == limit {
				answer.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(last))
				break
			}
			s, path, _, err := scanSummary(rows.Scan)
			if err != nil {
				return err
			}
			last = path
			answer.Documents = append(answer.Documents, s)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// Document returns a document with limit bytes (0 is 65,536; at most 1 MiB) of its text
// from offset on. It moves both ends back to a border between characters; a part has
// at least one character. It fails with ErrNoDocument.
func (x *Index) Document(ctx context.Context, id string, offset, limit int) (*api.Document, error) {
	key, err := keyOf(id)
	if err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = defaultText
	}
	limit = min(max(limit, utf8.UTFMax), maxText)
	offset = max(offset, 0)
	d := &api.Document{}
	err = x.view(ctx, "read document", func(tx *sql.Tx) error {
		var row, count int64
		var err error
		d.DocumentSummary, _, d.Title, err = scanSummary(tx.QueryRowContext(ctx, "SELECT "+summaryColumns+`, d.id, d.pieces, d.bytes
			FROM document d JOIN folder f ON f.id = d.folder WHERE d.key = ? AND f.going = 0 AND d.pieces > 0`, key).Scan,
			&row, &count, &d.TextBytes)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%w: %s", ErrNoDocument, id)
		}
		if err != nil {
			return err
		}
		return readText(ctx, tx, d, row<<pieceShift, count, offset, limit)
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// readText sets the text of d from the pieces at row and after.
func readText(ctx context.Context, tx *sql.Tx, d *api.Document, row, count int64, offset, limit int) error {
	d.Offset = min(offset, d.TextBytes)
	rows, err := tx.QueryContext(ctx, `SELECT start, own, text FROM piece
		WHERE id BETWEEN ? AND ? AND start + own > ? AND start < ? ORDER BY id`,
		row, row+count-1, d.Offset, d.Offset+limit)
	if err != nil {
		return err
	}
	defer rows.Close()
	var b strings.Builder
	first := -1 // the offset of what is in b
	for rows.Next() {
		var start, own int
		var text string
		if err := rows.Scan(&start, &own, &text); err != nil {
			return err
		}
		if own > len(text) {
			return pieces.ErrChunks
		}
		if first < 0 {
			first = start
		}
		b.WriteString(text[:own])
	}
	if err := rows.Err(); err != nil || first < 0 {
		return err
	}
	text := b.String()
	from := words.CutBefore(text, d.Offset-first)
	to := words.CutBefore(text, min(len(text), from+limit))
	d.Offset = first + from
	d.Text = text[from:to]
	if first+to < d.TextBytes {
		d.NextOffset = first + to
	}
	return nil
}
