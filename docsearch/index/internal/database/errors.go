package database

import (
	"errors"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// What the errors of SQLite amount to.
var (
	// ErrCorrupt means that the file is damaged.
	ErrCorrupt = errors.New("the index is damaged; restart the daemon, which makes a new one")
	// ErrFull means that the file cannot grow. What it has stays readable.
	ErrFull = errors.New("the disk is full; free some space")
	// ErrReadOnly means that the file cannot be written.
	ErrReadOnly = errors.New("the index cannot be written; check the permissions of its file and folder")
)

// Classify returns the error of this package that an error of SQLite amounts to, or nil.
func Classify(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return ErrFull
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return nil
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return ErrCorrupt
	case sqlite3.SQLITE_FULL:
		return ErrFull
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return ErrReadOnly
	}
	return nil
}
