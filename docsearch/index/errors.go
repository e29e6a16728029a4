package index

import (
	"errors"
	"fmt"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/database"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/pieces"
)

var (
	// ErrNoFolder means that the index does not have the folder.
	ErrNoFolder = errors.New("no such folder")
	// ErrNoDocument means that the index does not have the document.
	ErrNoDocument = errors.New("no such document")
	// ErrCursor means that a cursor is not one that this query returned.
	ErrCursor = errors.New("the cursor does not belong to this query; repeat the query without a cursor")
	// ErrCursorMode means that a cursor continues results by words and meaning, and there
	// are only words now. It is an ErrCursor too.
	ErrCursorMode = fmt.Errorf("%w: results by meaning cannot go on", ErrCursor)
	// ErrQuery means that a query has nothing to search for.
	ErrQuery = errors.New("the query has no word to search for")
	// ErrCorrupt means that the file is damaged. The next Open makes a new one.
	ErrCorrupt = database.ErrCorrupt
	// ErrDiskFull means that the index cannot grow. What it has stays readable.
	ErrDiskFull = database.ErrFull
	// ErrReadOnly means that the index cannot be written.
	ErrReadOnly = database.ErrReadOnly
	// ErrClosed means that Close was called.
	ErrClosed = errors.New("the index is closed")
)

// wrap adds the operation to an error of SQLite, and the error of this package that it
// amounts to.
func (x *Index) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	kind := classify(err)
	if kind == nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	if kind == ErrCorrupt {
		x.markDamaged()
	}
	return fmt.Errorf("%s: %w (%w)", op, kind, err)
}

// classify returns the error of this package that an error of SQLite amounts to, or nil.
func classify(err error) error {
	if errors.Is(err, pieces.ErrChunks) {
		return ErrCorrupt
	}
	return database.Classify(err)
}
