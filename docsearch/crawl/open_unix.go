//go:build unix

package crawl

import (
	"errors"
	"syscall"
)

// nonBlocking opens a FIFO without waiting for a writer.
const nonBlocking = syscall.O_NONBLOCK

// isOfProcess reports an error that says nothing of the path.
func isOfProcess(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}
