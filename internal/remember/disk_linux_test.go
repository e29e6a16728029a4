package remember_test

import (
	"context"
	"path/filepath"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// Sessions with a disk that hangs do not each leave something behind that waits for it: each would be a thread, of which Go
// allows 10,000.
func TestSessionsOnADiskThatHangsLeaveOneGoroutine(t *testing.T) {
	locks := locksOf(ssetest.HangingDisk(t), "c")
	before := pprof.Lookup("goroutine").Count()
	for range 20 { // sessions, one after the other
		locks.Use()()
	}
	if left := pprof.Lookup("goroutine").Count() - before; left > 1 {
		t.Errorf("%d goroutines are left of 20 sessions that have ended", left)
	}
}

// Whether a server is to be asked in an empty folder is not known while the disk hangs: the end of sse-server stdio does not wait
// for that.
func TestWhatIsWantedOnADiskThatHangs(t *testing.T) {
	server := inEmptyFolder(filepath.Join(ssetest.HangingDisk(t), "remembered"))
	done := make(chan bool)
	go func() { done <- server.WantsEmptyFolder(0) }() // ends with the disk
	select {
	case wants := <-done:
		if wants {
			t.Error("it is wanted")
		}
	case <-time.After(5 * time.Second):
		t.Error("it waits for the disk")
	}
}

// EmptyFolder waits for a disk that hangs no longer than its context lasts, so the end of a gateway does not wait for the disk.
func TestEmptyFolderOnADiskThatHangs(t *testing.T) {
	dir := ssetest.HangingDisk(t)
	for name, do := range map[string]func(ctx context.Context) error{
		"the files": func(ctx context.Context) error {
			_, err := inEmptyFolder(dir).EmptyFolder(ctx, locksOf(ssetest.PrivateDir(t), "c"), time.Hour)
			return err
		},
		"the locks": func(ctx context.Context) error {
			_, _, err := emptyFolder(ctx, ssetest.PrivateDir(t), dir, "c")
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		done := make(chan error)
		go func() { done <- do(ctx) }() // ends with the disk
		select {
		case err := <-done:
			ssetest.WantError(t, name, err, context.DeadlineExceeded)
		case <-time.After(5 * time.Second):
			t.Errorf("%s: it waits for the disk", name)
		}
	}
}
