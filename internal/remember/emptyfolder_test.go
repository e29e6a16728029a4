package remember_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofrs/flock"

	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// inEmptyFolder returns what a server with files in a directory says in an empty folder.
func inEmptyFolder(dir string) *remember.Server {
	return remember.Open(dir, slog.New(slog.DiscardHandler)).Server(remember.Identity{Server: "s", AnyFolder: "any"}).InAnyFolder()
}

// locksOf returns the locks of a program for a command, with files in a directory.
func locksOf(dir, command string) *remember.Locks {
	return remember.NewLocks(filepath.Join(dir, "locks"), command, slog.New(slog.DiscardHandler))
}

// emptyFolder makes an empty folder in a directory for a server of a command that is known, and not tried; locks says where
// the locks are.
func emptyFolder(ctx context.Context, dir, locks, command string) (string, func(), error) {
	server := remember.Open(dir, slog.New(slog.DiscardHandler)).
		Server(remember.Identity{Server: fmt.Sprint("s", servers.Add(1)), AnyFolder: "any"}).InAnyFolder()
	server.Learn(kind("a"), said("{}"))
	folder, err := server.EmptyFolder(ctx, locksOf(locks, command), time.Hour)
	if err != nil {
		return "", nil, err
	}
	return folder.Dir, func() { folder.Remove(context.Background()) }, nil
}

var servers atomic.Int64 // of emptyFolder

// made makes a directory and returns its path.
func made(t *testing.T, mode os.FileMode, elements ...string) string {
	t.Helper()
	dir := filepath.Join(elements...)
	ssetest.Must(t, os.MkdirAll(dir, 0o700))
	ssetest.Must(t, os.Chmod(dir, mode))
	return dir
}

// An empty folder is made only where neither another user nor a project can have a file in a folder above it.
func TestEmptyFolderIsBelowFoldersOfTheUserAlone(t *testing.T) {
	base := ssetest.PrivateDir(t)
	at := func(name string) string { return filepath.Join(base, name, "state", "remembered") }
	for _, project := range []string{"node_modules", "package.json", ".git"} {
		made(t, 0o700, base, "clone with "+project, project)
	}
	made(t, 0o777, base, "open")
	made(t, 0o777|os.ModeSticky, base, "sticky")
	made(t, 0o777, at("open itself"))
	for name, want := range map[string]string{
		"own":                     "",
		"clone with node_modules": "is a project: it has node_modules",
		"clone with package.json": "is a project: it has package.json",
		"clone with .git":         "is a project: it has .git",
		"open":                    "all users can write to " + filepath.Join(base, "open"),
		"sticky":                  "all users can write to " + filepath.Join(base, "sticky"),
		"open itself":             "can write to " + at("open itself"),
	} {
		t.Run(name, func(t *testing.T) {
			dir, remove, err := emptyFolder(t.Context(), at(name), base, "c")
			if want != "" {
				ssetest.WantText(t, "the error", fmt.Sprint(err), want)
				return
			}
			ssetest.Must(t, err)
			defer remove()
			ssetest.Want(t, "it is below", filepath.Dir(dir), at(name))
			files, err := os.ReadDir(dir)
			ssetest.Want(t, "it is empty", fmt.Sprint(files, err), "[] <nil>")
		})
	}
}

// A program in the empty folder finds what is really in the folders above it, whatever links lead there.
func TestEmptyFolderIsWhereLinksLead(t *testing.T) {
	base := ssetest.PrivateDir(t)
	made(t, 0o700, base, "real", "remembered")
	ssetest.Must(t, os.Symlink(filepath.Join(base, "real"), filepath.Join(base, "link")))
	dir, remove, err := emptyFolder(t.Context(), filepath.Join(base, "link", "remembered"), base, "c")
	ssetest.Must(t, err)
	remove()
	ssetest.Want(t, "it is below", filepath.Dir(dir), filepath.Join(base, "real", "remembered"))
}

// One server at a time is in an empty folder, in all programs that share a memory.
func TestOneEmptyFolderAtATime(t *testing.T) {
	state := ssetest.PrivateDir(t)
	synctest.Test(t, func(t *testing.T) {
		_, remove, err := emptyFolder(t.Context(), state, state, "c")
		ssetest.Must(t, err)
		got := make(chan error)
		go func() {
			_, remove, err := emptyFolder(t.Context(), state, state, "c")
			if err == nil {
				remove()
			}
			got <- err
		}()
		select {
		case err := <-got:
			t.Errorf("a second one is there: %v", err)
		case <-time.After(time.Minute):
			remove()
			ssetest.Must(t, <-got)
		}
	})
}

// Folders that a server has left without the right to write to them are removed, too.
func TestReadOnlyFoldersAreRemoved(t *testing.T) {
	state := ssetest.PrivateDir(t)
	left := func(dir string) {
		made(t, 0o700, dir, "module", "deep")
		ssetest.Must(t, os.WriteFile(filepath.Join(dir, "module", "deep", "file"), nil, 0o400))
		made(t, 0o500, dir, "module", "deep")
		made(t, 0o000, dir, "module")
	}
	dir, remove, err := emptyFolder(t.Context(), state, state, "c")
	ssetest.Must(t, err)
	left(dir)
	remove()
	ssetest.Want(t, "it is there", isThere(dir), false)

	killed := made(t, 0o700, state, ".empty-qzx-1")
	left(killed)
	ssetest.Must(t, os.Chtimes(killed, time.Time{}, time.Now().Add(-2*time.Hour)))
	inEmptyFolder(state).Learn(kind("a"), said("{}"))
	ssetest.Want(t, "that of one that was killed is there", isThere(killed), false)
}

// A server that has been started in an empty folder is left alone for a while by all programs, whatever came of that.
func TestTriesAreKept(t *testing.T) {
	dir := ssetest.PrivateDir(t)
	at := func(place string) *remember.Server { // in a program of its own
		return remember.Open(dir, slog.New(slog.DiscardHandler)).Server(remember.Identity{Server: "s", Place: "p", AnyFolder: place}).InAnyFolder()
	}
	try := func(t *testing.T, place string) {
		t.Helper()
		folder, err := at(place).EmptyFolder(t.Context(), locksOf(dir, "c"), time.Hour)
		ssetest.Must(t, err)
		folder.Remove(t.Context())
	}
	wants := func(place string, want bool) {
		t.Helper()
		ssetest.Want(t, place+" is wanted", at(place).WantsEmptyFolder(time.Hour), want)
	}
	synctest.Test(t, func(t *testing.T) {
		wants("a", false) // nothing is known of it
		at("a").Learn(kind("another kind"), said("{}"))
		wants("a", true)
		try(t, "a")
		wants("a", false)
		_, err := at("a").EmptyFolder(t.Context(), locksOf(dir, "c"), time.Hour)
		ssetest.WantError(t, "EmptyFolder", err, remember.ErrNotWanted)
		wants("b", true)
		time.Sleep(23 * time.Hour)
		wants("a", false)
		time.Sleep(2 * time.Hour)
		wants("a", true)
		try(t, "a")
		time.Sleep(time.Second)
		own, _ := remember.ClientOf(json.RawMessage(`{"protocolVersion":"2025-11-25"}`), remember.Own)
		at("a").Learn(own, said("{}"))
		wants("a", false)
		time.Sleep(2 * time.Hour)
		wants("a", true)
	})
}

// A server that has other variables at each start is not tried at each.
func TestTriesFromManyPlacesAreBounded(t *testing.T) {
	dir := ssetest.PrivateDir(t)
	synctest.Test(t, func(t *testing.T) {
		inEmptyFolder(dir).Learn(kind("a"), said("{}"))
		tries := 0
		for i := range 48 { // half hours
			server := remember.Open(dir, slog.New(slog.DiscardHandler)).
				Server(remember.Identity{Server: "s", Place: "p", AnyFolder: fmt.Sprint(i)}).InAnyFolder()
			if folder, err := server.EmptyFolder(t.Context(), locksOf(dir, "c"), time.Hour); err == nil {
				tries++
				folder.Remove(t.Context())
			}
			time.Sleep(30 * time.Minute)
		}
		ssetest.Want(t, "tries in a day", tries, 8)
	})
}

// A time in the future, from a clock that was wrong, does not stop a server from being tried for ever.
func TestATryInTheFutureDoesNotCount(t *testing.T) {
	dir := ssetest.PrivateDir(t)
	inEmptyFolder(dir).Learn(kind("a"), said("{}"))
	folder, err := inEmptyFolder(dir).EmptyFolder(t.Context(), locksOf(dir, "c"), time.Hour)
	ssetest.Must(t, err)
	folder.Remove(t.Context())
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	ssetest.Must(t, err)
	data, err := os.ReadFile(files[0])
	ssetest.Must(t, err)
	var content map[string]any
	ssetest.Must(t, json.Unmarshal(data, &content))
	for place := range content["tries"].(map[string]any) {
		content["tries"].(map[string]any)[place] = time.Now().Add(10 * 365 * 24 * time.Hour)
	}
	data, err = json.Marshal(content)
	ssetest.Must(t, err)
	ssetest.Must(t, os.WriteFile(files[0], data, 0o600))
	ssetest.Want(t, "it is wanted", inEmptyFolder(dir).WantsEmptyFolder(time.Hour), true)
}

// Where no other program would know of the start, there is none.
func TestNoEmptyFolderThatNobodyKnowsOf(t *testing.T) {
	dir := ssetest.PrivateDir(t)
	inEmptyFolder(dir).Learn(kind("a"), said("{}"))
	synctest.Test(t, func(t *testing.T) {
		server := inEmptyFolder(dir) // here, because its job may go on after it has answered
		ssetest.Want(t, "it is wanted", server.WantsEmptyFolder(time.Hour), true)
		lock := flock.New(filepath.Join(dir, ".lock")) // a program that hangs while it writes
		locked, err := lock.TryLock()
		ssetest.Must(t, err)
		ssetest.Want(t, "locked", locked, true)
		_, err = server.EmptyFolder(t.Context(), locksOf(dir, "c"), time.Hour)
		ssetest.WantText(t, "the error", fmt.Sprint(err), "another program holds")
		ssetest.Must(t, lock.Close())
		time.Sleep(time.Minute) // a job that was asked meanwhile tries again, and ends
	})
}
