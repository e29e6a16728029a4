package ssetest

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

// HangingDisk returns a directory of a disk that answers nothing until the end of the test. It needs root.
func HangingDisk(t *testing.T) string {
	t.Helper()
	dev, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	dir, err := os.MkdirTemp("", "hangs-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // who has waited may still write
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", dev.Fd())
	if err := syscall.Mount("hangs", dir, "fuse.hangs", 0, options); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		_ = dev.Close() // who waits gets an error
		_ = syscall.Unmount(dir, syscall.MNT_DETACH)
	})
	return dir
}
