package crawl

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
)

// isGone reports an error that says that nothing is at the path: there is no such name,
// or a directory above it is something else by now.
func isGone(err error) bool {
	return errors.Is(err, ErrGone) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// isOfPath reports an error that another path need not meet.
func isOfPath(err error) bool {
	return !isOfProcess(err) && !errors.Is(err, ErrGone) && !errors.Is(err, ErrChanged) &&
		!errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// reason returns the error without the operation and the path.
func reason(err error) error {
	if e, ok := err.(*fs.PathError); ok {
		return e.Err
	}
	return err
}
