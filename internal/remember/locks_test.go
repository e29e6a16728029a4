package remember_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// awaitUse waits until other programs see that the command has a session, or has none.
func awaitUse(t *testing.T, locks *remember.Locks, want bool) {
	t.Helper()
	for {
		isUsed, err := locks.IsUsed()
		ssetest.Must(t, err)
		if isUsed == want {
			return
		}
		runtime.Gosched()
	}
}

// No server runs in an empty folder while a client may use one of its command, in whatever program, and whatever that remembers.
func TestNoEmptyFolderBesideAClient(t *testing.T) {
	dir := ssetest.PrivateDir(t)
	for range 2 { // windows
		release := locksOf(dir, "c").Use()
		awaitUse(t, locksOf(dir, "c"), true)
		_, _, err := emptyFolder(t.Context(), dir, dir, "c")
		ssetest.WantError(t, "EmptyFolder", err, remember.ErrInUse)
		_, remove, err := emptyFolder(t.Context(), dir, dir, "another command")
		ssetest.Must(t, err)
		remove()
		release()
		awaitUse(t, locksOf(dir, "c"), false)
	}
	_, remove, err := emptyFolder(t.Context(), dir, dir, "c")
	ssetest.Must(t, err)
	locksOf(dir, "c").Use()() // who comes meanwhile does not wait
	remove()
}

// A client that has come while another server was in an empty folder has its server for itself once that one has ended: the
// next one that waits does not start beside it.
func TestWhoWaitsForAnEmptyFolderSeesTheClientThatHasCome(t *testing.T) {
	dir := ssetest.PrivateDir(t)
	synctest.Test(t, func(t *testing.T) {
		_, remove, err := emptyFolder(t.Context(), dir, dir, "c")
		ssetest.Must(t, err)
		got := make(chan error)
		go func() {
			_, remove, err := emptyFolder(t.Context(), dir, dir, "c")
			if err == nil {
				defer remove()
			}
			got <- err
		}()
		time.Sleep(50 * time.Millisecond)
		release := locksOf(dir, "c").Use()
		time.Sleep(time.Minute + 20*time.Millisecond)
		remove()
		ssetest.WantError(t, "EmptyFolder", <-got, remember.ErrInUse)
		release()
	})
}

// A session is seen from its begin to its end also while others begin and end in its program.
func TestTheLastSessionUsesTheCommand(t *testing.T) {
	dir := ssetest.PrivateDir(t)
	synctest.Test(t, func(t *testing.T) {
		locks := locksOf(dir, "c")
		seen := func(want bool) {
			t.Helper()
			synctest.Wait()
			isUsed, err := locksOf(dir, "c").IsUsed()
			ssetest.Must(t, err)
			ssetest.Want(t, "used", isUsed, want)
		}
		first := locks.Use()
		second := locks.Use()
		first()
		first() // once more
		seen(true)
		second()
		seen(false)
		third := locks.Use()
		seen(true)
		third()
		seen(false)
	})
}

// Where there are no locks nobody knows who uses a server: none starts in an empty folder.
func TestNoEmptyFolderWithoutLocks(t *testing.T) {
	dir := ssetest.PrivateDir(t)
	ssetest.Must(t, os.WriteFile(filepath.Join(dir, "locks"), nil, 0o600)) // no directory
	_, _, err := emptyFolder(t.Context(), dir, dir, "c")
	if err == nil {
		t.Error("there is an empty folder")
	}
}

// One program at a time waits to run a server of one command in an empty folder.
func TestOneProgramWaitsForAnEmptyFolder(t *testing.T) {
	dir := ssetest.PrivateDir(t)
	release, ok := locksOf(dir, "c").Reserve()
	ssetest.Want(t, "the first", ok, true)
	_, ok = locksOf(dir, "c").Reserve() // with another variable
	ssetest.Want(t, "a second one", ok, false)
	release()
	release, ok = locksOf(dir, "c").Reserve()
	ssetest.Want(t, "a later one", ok, true)
	release()
}

// EmptyFolder waits no longer than its context lasts.
func TestWaitForAnEmptyFolderEnds(t *testing.T) {
	dir := ssetest.PrivateDir(t)
	synctest.Test(t, func(t *testing.T) {
		_, remove, err := emptyFolder(t.Context(), dir, dir, "c")
		ssetest.Must(t, err)
		defer remove()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, _, err = emptyFolder(ctx, dir, dir, "c")
		ssetest.WantError(t, "EmptyFolder", err, context.DeadlineExceeded)
	})
}

// The time without a session begins with the end of the last one.
func TestAwaitUnused(t *testing.T) {
	dir := ssetest.PrivateDir(t)
	synctest.Test(t, func(t *testing.T) {
		began, end := time.Now(), make(chan time.Time)
		go func() {
			_ = locksOf(dir, "c").AwaitUnused(t.Context(), time.Minute)
			end <- time.Now()
		}()
		time.Sleep(50 * time.Second)
		release := locksOf(dir, "c").Use()
		time.Sleep(time.Hour)
		release()
		if waited := (<-end).Sub(began); waited < time.Hour+105*time.Second || waited > time.Hour+2*time.Minute {
			t.Errorf("it waited %v, want a minute after the last session", waited)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ssetest.WantError(t, "AwaitUnused", locksOf(dir, "c").AwaitUnused(ctx, time.Minute), context.DeadlineExceeded)
	})
}

// A program whose lock fails for a moment when its first session begins still says later that the command is used.
func TestAUseThatCouldNotBeLockedAtFirstIsSeenLater(t *testing.T) {
	state := ssetest.PrivateDir(t)
	dir := filepath.Join(state, "locks")
	ssetest.Must(t, os.WriteFile(dir, nil, 0o600)) // as with a full disk, or a folder that is open to all
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		first, other := remember.NewLocks(dir, "c", log), remember.NewLocks(dir, "c", log)
		release := first.Use()
		synctest.Wait()
		ssetest.Must(t, os.Remove(dir)) // it is repaired
		second := first.Use()           // a second session of the same program, before the minute is over
		synctest.Wait()
		isUsed, err := other.IsUsed()
		ssetest.Must(t, err)
		ssetest.Want(t, "another program sees two sessions", isUsed, true)
		second()
		release()
		synctest.Wait()
	})
}

// A program whose lock fails tries it again by itself, and says so once as long as it fails.
func TestALockThatFailedIsTriedAgain(t *testing.T) {
	dir := filepath.Join(ssetest.PrivateDir(t), "locks")
	ssetest.Must(t, os.WriteFile(dir, nil, 0o600))
	synctest.Test(t, func(t *testing.T) {
		var lines strings.Builder
		log := slog.New(slog.NewTextHandler(&lines, nil))
		locks, other := remember.NewLocks(dir, "c", log), remember.NewLocks(dir, "c", log)
		release := locks.Use()
		time.Sleep(time.Hour)
		synctest.Wait()
		ssetest.Want(t, "lines in the log", strings.Count(lines.String(), "other programs do not see that the server is used"), 1)
		ssetest.Must(t, os.Remove(dir))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		isUsed, err := other.IsUsed()
		ssetest.Must(t, err)
		ssetest.Want(t, "another program sees the session", isUsed, true)
		release()
		synctest.Wait()
		isUsed, err = other.IsUsed()
		ssetest.Must(t, err)
		ssetest.Want(t, "another program sees it after its end", isUsed, false)
	})
}
