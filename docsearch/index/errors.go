package index

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	bolt "go.etcd.io/bbolt/errors"
)

var (
	// ErrNoFolder means that the index does not have the folder.
	ErrNoFolder = errors.New("no such folder")
	// ErrNoDocument means that the index does not have the document.
	ErrNoDocument = errors.New("no such document")
	// ErrCursor means that a cursor is not one that this query returned.
	ErrCursor = errors.New("the cursor does not belong to this query; repeat the query without a cursor")
	// ErrQuery means that a query has nothing to search for.
	ErrQuery = errors.New("the query has no word to search for")
	// ErrCorrupt means that files of the index are damaged, or cannot be read. The next
	// Open checks them, and makes those anew that are damaged.
	ErrCorrupt = errors.New("the index is damaged")
	// ErrDiskFull means that the index cannot grow. What it has stays readable.
	ErrDiskFull = errors.New("the disk is full")
	// ErrReadOnly means that the index cannot be written.
	ErrReadOnly = errors.New("the index cannot be written")
	// ErrClosed means that Close was called.
	ErrClosed = errors.New("the index is closed")
)

// classify returns err with the error of this package that it amounts to. What is neither
// a refusal of the system nor one of ours is damage.
func classify(err error) error {
	is := func(targets ...error) bool {
		for _, target := range targets {
			if errors.Is(err, target) {
				return true
			}
		}
		return false
	}
	system := func(all ...syscall.Errno) bool {
		for _, errno := range all {
			if is(errno) || strings.Contains(err.Error(), errno.Error()) { // bleve does not wrap all errors
				return true
			}
		}
		return false
	}
	switch {
	case err == nil, is(ErrNoFolder, ErrNoDocument, ErrCursor, ErrQuery, ErrCorrupt, ErrDiskFull, ErrReadOnly, ErrClosed),
		is(context.Canceled, context.DeadlineExceeded, bolt.ErrTimeout),
		system(syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EINTR):
		return err
	case system(syscall.ENOSPC, syscall.EDQUOT):
		return fmt.Errorf("%w (%w)", ErrDiskFull, err)
	case system(syscall.EROFS, syscall.EACCES, syscall.EPERM):
		return fmt.Errorf("%w (%w)", ErrReadOnly, err)
	}
	return fmt.Errorf("%w (%w)", ErrCorrupt, err)
}
