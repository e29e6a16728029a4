package client

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
)

// APIError is an error that the daemon answered: it works, and says no.
type APIError struct {
	Status  int    // of HTTP, 400 or more
	Code    string // one of the codes of package api
	Message string
}

func (e *APIError) Error() string { return fmt.Sprintf("%s (%s)", e.Message, e.Code) }

// DownError says that no daemon answers and that the client could not bring it back.
type DownError struct {
	Reason string // why, for a person
	Advice string // what to do about it, for a person
	Err    error  // the cause, if there is one
}

func (e *DownError) Error() string {
	return fmt.Sprintf("the document daemon is down: %s; %s", e.Reason, e.Advice)
}

func (e *DownError) Unwrap() error { return e.Err }

// lostError says that a daemon gave no answer that is one: a recovery may help.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

var (
	errHangs = errors.New("the daemon does not answer, not even to GET /health")
	errSlow  = errors.New("the daemon is healthy, but gives no answer to this request")
)

var errClosed = &DownError{Reason: "the client is closed", Advice: "restart this server"}

const adviceStateDir = "name another with --state-dir or DOCSEARCH_STATE_DIR, which you own and can write"

// stateError explains why the state directory cannot be used.
func stateError(dir string, err error) *DownError {
	down := &DownError{Reason: err.Error(), Advice: adviceStateDir, Err: err}
	switch {
	case errors.Is(err, discovery.ErrOwner):
		down.Reason = fmt.Sprintf("the state directory %s belongs to another user", dir)
	case errors.Is(err, discovery.ErrShared):
		down.Advice = "then try again, or " + adviceStateDir
	case errors.Is(err, syscall.ELOOP):
		down.Advice = "remove that symbolic link"
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		down.Reason = fmt.Sprintf("the state directory %s is read-only: %v", dir, err)
		down.Advice = "make it writable, or " + adviceStateDir
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		down.Reason = fmt.Sprintf("the disk of the state directory %s is full: %v", dir, err)
		down.Advice = "free some space and try again"
	}
	return down
}

// commandError explains why the daemon's program cannot be run.
func commandError(program string, err error) *DownError {
	down := &DownError{Reason: fmt.Sprintf("cannot run %s: %v", program, err),
		Advice: "check the file and its permissions", Err: err}
	if errors.Is(err, fs.ErrNotExist) {
		down.Reason = fmt.Sprintf("the program %s is missing", program)
		down.Advice = "install docsearch again, then restart this server"
	}
	return down
}
