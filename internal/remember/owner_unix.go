//go:build unix

package remember

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// isOwn reports whether a file belongs to the user of this program.
func isOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// checkFolder returns an error if another user may put files into the folder. One that is not there is no error.
func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case !isOwn(info):
		return fmt.Errorf("%s belongs to another user: chown it to the user of this program", dir)
	case info.Mode().Perm()&0o002 != 0:
		return fmt.Errorf("all users of this machine can write to %s: chmod 700 it", dir)
	}
	return nil
}
