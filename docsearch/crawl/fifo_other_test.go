//go:build !unix

package crawl

import (
	"os"
	"syscall"
)

// errorsOfProcess are ERROR_TOO_MANY_OPEN_FILES and ERROR_NOT_ENOUGH_MEMORY of Windows.
var errorsOfProcess = []error{syscall.Errno(4), syscall.Errno(8)}

// makeFIFO makes a file where there are no FIFOs.
func makeFIFO(path string) error { return os.WriteFile(path, nil, 0o644) }
