// Package database makes and opens the SQLite file of an index, with its tables, and
// tells when it is damaged.
//
// One connection writes; some others read the state of the last transaction meanwhile
// (WAL).
package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	_ "modernc.org/sqlite/vec" // vec0 tables
)

const (
	readers     = 4
	busyTimeout = 10 * time.Second
	cacheKiB    = 16 << 10 // of each connection
)

// Database is an open file. Its methods are safe for concurrent use.
type Database struct {
	Write *sql.DB // one connection
	Read  *sql.DB // some connections, which cannot write

	path string
}

// Open opens the file at path, and makes it if there is none, which only its owner may
// read then. It returns no Database, but why, if the file cannot be used; MoveAside makes
// room for a new one. maxPages bounds the file; 0: the disk does.
func Open(ctx context.Context, path string, maxPages int) (d *Database, unusable string, err error) {
	if unusable = inspect(path); unusable != "" {
		return nil, unusable, nil
	}
	create(path)
	d = &Database{path: path}
	if d.Write, err = connect(path, maxPages, false); err != nil {
		return nil, "", err
	}
	if d.Read, err = connect(path, 0, true); err != nil {
		return nil, "", errors.Join(err, d.Write.Close())
	}
	if unusable, err = prepare(ctx, d.Write); err != nil || unusable != "" {
		return nil, unusable, errors.Join(err, d.Close())
	}
	return d, "", nil
}

// create makes the file. If it cannot, SQLite will tell why.
func create(path string) {
	if f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600); err == nil {
		f.Close()
	}
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

// Close closes the file. The caller must have closed its statements.
func (d *Database) Close() error { return errors.Join(d.Read.Close(), d.Write.Close()) }

// Bytes returns the size of the file with its log.
func (d *Database) Bytes() (n int64) {
	for _, suffix := range []string{"", "-wal"} {
		if fi, err := os.Stat(d.path + suffix); err == nil {
			n += fi.Size()
		}
	}
	return n
}

// Change runs f in a transaction that writes.
func (d *Database) Change(ctx context.Context, f func(tx *sql.Tx) error) error {
	return transact(ctx, d.Write, nil, f)
}

// View runs f in a transaction that reads one state.
func (d *Database) View(ctx context.Context, f func(tx *sql.Tx) error) error {
	return transact(ctx, d.Read, &sql.TxOptions{ReadOnly: true}, f)
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
