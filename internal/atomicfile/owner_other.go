//go:build !unix && !windows

package atomicfile

import (
	"io/fs"
	"os"
)

// keepOwner does nothing: files have no owner.
func keepOwner(*os.File, fs.FileInfo) error { return nil }

// namesOf returns how many names, which are hard links, a file has.
func namesOf(*os.File) (uint64, error) { return 1, nil }
