//go:build unix

package discovery

import (
	"os"
	"syscall"
)

// NoFollow is the flag that has os.OpenFile fail if the file is a symbolic link. It is 0
// where the system has none.
const NoFollow = syscall.O_NOFOLLOW

// othersWrite reports whether other users may write to the file.
func othersWrite(info os.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }

// owned reports whether the file belongs to the user of this process.
func owned(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
