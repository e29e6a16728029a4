//go:build unix

package atomicfile

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a new file the owner and the group of an old one.
func keepOwner(file *os.File, old fs.FileInfo) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	is, _ := info.Sys().(*syscall.Stat_t)
	was, _ := old.Sys().(*syscall.Stat_t)
	if is == nil || was == nil || is.Uid == was.Uid && is.Gid == was.Gid {
		return nil
	}
	return file.Chown(int(was.Uid), int(was.Gid))
}

// namesOf returns how many names, which are hard links, a file has.
func namesOf(file *os.File) (uint64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	if is, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(is.Nlink), nil //nolint:unconvert // its type is another one on each system
	}
	return 1, nil
}
