//go:build unix

package clientfile

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
