//go:build unix

package crawl

import (
	"errors"
	"syscall"
)

// nonBlocking opens a FIFO without waiting for a writer.
const nonBlocking = syscall.O_NONBLOCK

func isNotDirectory(err error) bool { return errors.Is(err, syscall.ENOTDIR) }
