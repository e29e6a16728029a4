package index

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite/vec" // vec0 tables

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

const (
	readers     = 4
	busyTimeout = 10 * time.Second
	cacheKiB    = 16 << 10 // of each connection
)

// Index is an open index. Its methods are safe for concurrent use.
type Index struct {
	path    string
	opts    Options
	log     *slog.Logger
	rebuilt string

	write *sql.DB // one connection
	read  *sql.DB

	findWord, readPiece, describe *sql.Stmt // of searches

	writing sync.Mutex     // held by a call that writes, from its first statement to its last
	calls   sync.WaitGroup // running calls
	mu      sync.Mutex     // guards closed and Add of calls
	closed  bool
	stop    context.CancelFunc // ends the calls that Close would wait long for
	ended   context.Context

	damaged atomic.Bool
	vectors vectors
	common  postings.Cache
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
	why := inspect(path)
	if why == "" {
		x, unusable, err := open(ctx, path, o)
		if err != nil && classify(err) != ErrCorrupt {
			return nil, openError(path, err)
		}
		if err != nil {
			unusable = "it is damaged: " + err.Error()
		}
		if unusable == "" {
			if err := x.resume(ctx); err != nil {
				x.Close()
				return nil, err
			}
			return x, nil
		}
		why = unusable
	}
	if err := moveAside(path); err != nil {
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
	x.ended, x.stop = context.WithCancel(context.Background())
	defer func() {
		if err != nil || unusable != "" {
			x.shut()
			x = nil
		}
	}()
	create(path)
	if x.write, err = connect(path, o.maxPages, false); err != nil {
		return x, "", err
	}
	if x.read, err = connect(path, 0, true); err != nil {
		return x, "", err
	}
	if unusable, err = prepare(ctx, x.write); err != nil || unusable != "" {
		return x, unusable, err
	}
	if err := x.prepareVectors(ctx); err != nil {
		return x, "", err
	}
	return x, "", x.prepareSearch(ctx)
}

// create makes the file, which only its owner may read. If it cannot, SQLite will tell why.
func create(path string) {
	if f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600); err == nil {
		f.Close()
	}
}

func (x *Index) prepareSearch(ctx context.Context) error {
	for stmt, query := range map[**sql.Stmt]string{
		&x.findWord:  "SELECT group_concat(rowid) FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ?",
		&x.readPiece: "SELECT text, chunks FROM piece WHERE id = ?",
		// SQLite would prepare it again for each id, if it had to think of partial indexes.
		&x.describe: "SELECT folder, path, title, key FROM document NOT INDEXED WHERE id = ?",
	} {
		var err error
		if *stmt, err = x.read.PrepareContext(ctx, query); err != nil {
			return err
		}
	}
	return nil
}

func connect(path string, maxPages int, reader bool) (*sql.DB, error) {
	q := url.Values{}
	pragma := func(p string, v any) { q.Add("_pragma", fmt.Sprintf("%s(%v)", p, v)) }
	pragma("busy_timeout", busyTimeout.Milliseconds())
	pragma("cache_size", -cacheKiB)
	if reader {
		pragma("query_only", 1)
	} else {
		pragma("page_size", 8192)
		pragma("journal_mode", "WAL")
		pragma("synchronous", "NORMAL")
		pragma("journal_size_limit", 64<<20)
		q.Set("_txlock", "immediate")
		if maxPages > 0 {
			pragma("max_page_count", maxPages)
		}
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, err
	}
	n := 1
	if reader {
		n = readers
	}
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db, nil
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
	var errs []error
	for _, s := range []*sql.Stmt{x.findWord, x.readPiece, x.describe} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	for _, db := range []*sql.DB{x.read, x.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
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

// change runs f in a transaction that writes, alone.
func (x *Index) change(ctx context.Context, op string, f func(tx *sql.Tx) error) error {
	if err := x.enter(); err != nil {
		return err
	}
	defer x.calls.Done()
	x.writing.Lock()
	defer x.writing.Unlock()
	return x.wrap(op, transact(ctx, x.write, nil, func(tx *sql.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "UPDATE setting SET value = value + 1 WHERE name = 'generation'")
		return err
	}))
}

// view runs f in a transaction that reads one state of the index.
func (x *Index) view(ctx context.Context, op string, f func(tx *sql.Tx) error) error {
	if err := x.enter(); err != nil {
		return err
	}
	defer x.calls.Done()
	return x.wrap(op, transact(ctx, x.read, &sql.TxOptions{ReadOnly: true}, f))
}

func transact(ctx context.Context, db *sql.DB, o *sql.TxOptions, f func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, o)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after Commit
	if err = f(tx); err == nil {
		err = tx.Commit()
	}
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		return ctx.Err() // it ended the transaction
	}
	return err
}

const (
	header      = 100 // bytes, of a SQLite file
	damagedMark = ".damaged"
)

// inspect returns why the file at path cannot be an index, or "". It reads no more
// than the header.
func inspect(path string) string {
	fi, err := os.Stat(path)
	if err != nil {
		return "" // there is none, or SQLite gives the error
	}
	if !fi.Mode().IsRegular() {
		return "it is not a regular file"
	}
	if _, err := os.Stat(path + damagedMark); err == nil {
		return "it was found to be damaged"
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	var h [header]byte
	if n, _ := f.ReadAt(h[:], 0); n == 0 {
		return ""
	} else if n < header || string(h[:16]) != "SQLite format 3\x00" {
		return "it is not a SQLite file"
	}
	if wal, err := os.Stat(path + "-wal"); err == nil && wal.Size() > 0 {
		return "" // it may have the rest
	}
	pageSize := int64(binary.BigEndian.Uint16(h[16:]))
	if pageSize == 1 {
		pageSize = 1 << 16
	}
	if want := pageSize * int64(binary.BigEndian.Uint32(h[28:])); fi.Size() < want {
		return fmt.Sprintf("it is cut off at %d bytes of %d", fi.Size(), want)
	}
	return ""
}

// moveAside renames the file at path, and its log, and removes the mark.
func moveAside(path string) error {
	to := path + ".corrupt-" + time.Now().UTC().Format("20060102T150405.000")
	if err := os.Rename(path, to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Rename(path+suffix, to+suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := os.Remove(path + damagedMark); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// markDamaged has the next Open make a new file.
func (x *Index) markDamaged() {
	if x.damaged.Swap(true) {
		return
	}
	x.log.Error("index damaged", "path", x.path)
	if err := os.WriteFile(x.path+damagedMark, nil, 0o600); err != nil {
		x.log.Error("index not marked as damaged", "err", err)
	}
}
