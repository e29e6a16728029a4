//go:build unix

package crawl

import (
	"errors"
	"syscall"
)

// nonBlocking opens a FIFO without waiting for a writer.
const nonBlocking = syscall.O_NONBLOCK

func isNotDirectory(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

// isTransient reports an error that says nothing of the file.
func isTransient(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.EIO)
}
