//go:build unix && !linux

package stdio

import (
	"fmt"
	"os"
	"syscall"
)

// folderID returns which folder is at a path: its device, and its number there.
func folderID(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	system, _ := info.Sys().(*syscall.Stat_t)
	return fmt.Sprint(system.Dev, system.Ino)
}
