//go:build unix

package discovery

import (
	"os"
	"syscall"
)

// owned reports whether the file belongs to the user of this process.
func owned(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
