package crawl

import (
	"errors"

	"golang.org/x/sys/windows"
)

const nonBlocking = 0

// isOfProcess reports an error that says nothing of the path.
func isOfProcess(err error) bool {
	return errors.Is(err, windows.ERROR_TOO_MANY_OPEN_FILES) || errors.Is(err, windows.ERROR_NOT_ENOUGH_MEMORY) ||
		errors.Is(err, windows.ERROR_OUTOFMEMORY) || errors.Is(err, windows.ERROR_NO_SYSTEM_RESOURCES)
}
