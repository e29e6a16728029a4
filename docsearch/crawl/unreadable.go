package crawl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// UnreadableError reports a walk that visited everything but some paths. What is at and
// below them is unknown: it may be as it was, changed or gone.
type UnreadableError struct {
	// Paths are the relative paths of the files and directories that could not be
	// looked at. None is below another one.
	Paths []string
	// Err is why the first of Paths could not be looked at.
	Err error
}

// Error says in plain words what cannot be read.
func (e *UnreadableError) Error() string {
	switch {
	case len(e.Paths) > 1:
		return fmt.Sprintf("%d files or directories cannot be read, the first is %s: %v", len(e.Paths), e.Paths[0], e.Err)
	case len(e.Paths) == 1 && e.Paths[0] != ".":
		return fmt.Sprintf("%s cannot be read: %v", e.Paths[0], e.Err)
	}
	return fmt.Sprintf("the folder cannot be read: %v", e.Err)
}

// Unwrap returns Err.
func (e *UnreadableError) Unwrap() error { return e.Err }

// add adds a path, unless the error says that it is gone. It returns the errors that
// are not of the path alone: they end the walk.
func (e *UnreadableError) add(rel string, err error) error {
	switch {
	case isGone(err):
		return nil
	case !isOfPath(err):
		return fmt.Errorf("look at %s: %w", rel, reason(err))
	}
	if len(e.Paths) == 0 {
		e.Err = reason(err)
	}
	e.Paths = append(e.Paths, rel)
	return nil
}

// err returns e, or nil if all could be read.
func (e *UnreadableError) err() error {
	if len(e.Paths) == 0 {
		return nil
	}
	return e
}

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
