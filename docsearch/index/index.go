package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/database"
	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/postings"
)

// Embedder makes vectors of texts. Embed returns one vector for each text; all have the
// same length. It is safe for concurrent use.
type Embedder interface {
	Model() string
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Options are the options of Open.
type Options struct {
	Embedder Embedder     // nil: searches are lexical
	Logger   *slog.Logger // nil: logs nothing

	maxPages     int           // of the file, in tests
	queryTimeout time.Duration // for the vector of a query; 0: queryTimeout
}

// Index is an open index. Its methods are safe for concurrent use.
type Index struct {
	path    string
	opts    Options
	log     *slog.Logger
	rebuilt string
	db      *database.Database // nil if Open fails

	statements

	writing sync.Mutex     // held by a call that writes, from its first statement to its last
	calls   sync.WaitGroup // running calls
	mu      sync.Mutex     // guards closed and Add of calls
	closed  bool
	stop    context.CancelFunc // ends the calls that Close would wait long for
	ended   context.Context

	damaged atomic.Bool
	vectors vectors
	common  postings.Cache
	rooms   sync.Pool  // of *room
	loading sync.Mutex // held while lists are loaded ahead
}

// Open opens the index in the file at path, and creates it if there is none. It moves
// a file that is damaged or that it does not understand aside, to path.corrupt-TIME,
// and makes a new one; Rebuilt tells why. No other process may have the file open.
func Open(ctx context.Context, path string, o Options) (*Index, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.queryTimeout = cmp.Or(o.queryTimeout, queryTimeout)
	x, why, err := open(ctx, path, o)
	if err != nil && classify(err) != ErrCorrupt {
		return nil, openError(path, err)
	}
	if err != nil {
		why = "it is damaged: " + err.Error()
	}
	if why == "" {
		if err := x.resume(ctx); err != nil {
			x.Close()
			return nil, err
		}
		x.loadAhead()
		return x, nil
	}
	if err := database.MoveAside(path); err != nil {
		return nil, fmt.Errorf("open index %s: %s, and it cannot be moved aside: %w", path, why, err)
	}
	x, unusable, err := open(ctx, path, o)
	if err != nil {
		return nil, openError(path, err)
	}
	if unusable != "" {
		return nil, fmt.Errorf("open index %s: %s", path, unusable)
	}
	x.rebuilt = why
	o.Logger.Warn("index rebuilt", "path", path, "reason", why)
	return x, nil
}

func openError(path string, err error) error {
	if kind := classify(err); kind != nil {
		return fmt.Errorf("open index %s: %w (%w)", path, kind, err)
	}
	return fmt.Errorf("open index %s: %w", path, err)
}

// open opens the file. It returns no Index if the file is unusable.
func open(ctx context.Context, path string, o Options) (x *Index, unusable string, err error) {
	x = &Index{path: path, opts: o, log: o.Logger}
	x.rooms.New = func() any { return new(room) }
	x.ended, x.stop = context.WithCancel(context.Background())
	defer func() {
		if err != nil || unusable != "" {
			x.shut()
			x = nil
		}
	}()
	if x.db, unusable, err = database.Open(ctx, path, o.maxPages); err != nil || unusable != "" {
		return x, unusable, err
	}
	if err := x.prepareVectors(ctx); err != nil {
		return x, "", err
	}
	return x, "", x.prepareSearch(ctx)
}

// statements are those of searches.
type statements struct {
	readGeneration, readFolders, findWord, readPieces, readDocuments *sql.Stmt
}

func (x *Index) prepareSearch(ctx context.Context) error {
	for stmt, query := range map[**sql.Stmt]string{
		&x.readGeneration: "SELECT value FROM setting WHERE name = 'generation'",
		&x.readFolders:    "SELECT id, path, pieces, going FROM folder",
		&x.findWord:       findWord(),
		&x.readPieces:     readPieces,
		&x.readDocuments:  readDocuments,
	} {
		var err error
		if *stmt, err = x.db.Read.PrepareContext(ctx, query); err != nil {
			return err
		}
	}
	return nil
}

func (s *statements) close() error {
	var errs []error
	for _, stmt := range []*sql.Stmt{s.readGeneration, s.readFolders, s.findWord, s.readPieces, s.readDocuments} {
		if stmt != nil {
			errs = append(errs, stmt.Close())
		}
	}
	return errors.Join(errs...)
}

// Rebuilt returns why Open made a new file, or "".
func (x *Index) Rebuilt() string { return x.rebuilt }

// Close interrupts EmbedMissing, waits for the other running calls, and closes the
// file. Later calls fail with ErrClosed.
func (x *Index) Close() error {
	x.mu.Lock()
	closed := x.closed
	x.closed = true
	x.mu.Unlock()
	x.stop()
	x.calls.Wait()
	if closed {
		return nil
	}
	return x.shut()
}

func (x *Index) shut() error {
	x.stop()
	errs := []error{x.statements.close()}
	if x.db != nil {
		errs = append(errs, x.db.Close())
	}
	return errors.Join(errs...)
}

// enter begins a call, which ends with x.calls.Done.
func (x *Index) enter() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return ErrClosed
	}
	x.calls.Add(1)
	return nil
}

// change runs f, which changes no piece, in a transaction that writes, alone.
func (x *Index) change(ctx context.Context, op string, f func(tx *sql.Tx) error) error {
	return x.changePieces(ctx, op, func(tx *sql.Tx, _ *postings.Change) error { return f(tx) })
}

// changePieces is change for an f that changes pieces and tells which.
func (x *Index) changePieces(ctx context.Context, op string, f func(tx *sql.Tx, c *postings.Change) error) error {
	if err := x.enter(); err != nil {
		return err
	}
	defer x.calls.Done()
	x.writing.Lock()
	defer x.writing.Unlock()
	var generation int64
	err := x.db.Change(ctx, func(tx *sql.Tx) error {
		var c postings.Change
		if err := f(tx, &c); err != nil {
			return err
		}
		err := tx.QueryRowContext(ctx, "UPDATE setting SET value = value + 1 WHERE name = 'generation' RETURNING value").Scan(&generation)
		x.common.Stage(generation, &c)
		return err
	})
	if err == nil {
		x.common.Advance(generation)
	}
	return x.wrap(op, caused(ctx, err))
}

// view runs f in a transaction that reads one state of the index.
func (x *Index) view(ctx context.Context, op string, f func(tx *sql.Tx) error) error {
	if err := x.enter(); err != nil {
		return err
	}
	defer x.calls.Done()
	return x.wrap(op, caused(ctx, x.db.View(ctx, f)))
}

// caused returns err, with which a transaction under ctx failed, or why ctx has ended: its
// end closes statements and rolls back, of which others than that may be told first.
func caused(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// markDamaged has the next Open make a new file.
func (x *Index) markDamaged() {
	if x.damaged.Swap(true) {
		return
	}
	x.log.Error("index damaged", "path", x.path)
	if err := x.db.MarkDamaged(); err != nil {
		x.log.Error("index not marked as damaged", "err", err)
	}
}
