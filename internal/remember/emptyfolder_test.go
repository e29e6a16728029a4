package remember_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// inEmptyFolder returns what a server with files in a directory says in an empty folder.
func inEmptyFolder(dir string) *remember.Server {
	return remember.Open(dir, slog.New(slog.DiscardHandler)).Server(remember.Identity{Server: "s", AnyFolder: "any"}).InAnyFolder()
}

// locksOf returns the locks of a program for a command, with files in a directory.
func locksOf(dir, command string) *remember.Locks {
	return remember.NewLocks(filepath.Join(dir, "locks"), command)
}

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
			dir, remove, err := inEmptyFolder(at(name)).EmptyFolder(t.Context(), locksOf(base, "c"))
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

// What a program finds in the folders above it is what is really there, whatever links lead to it.
func TestEmptyFolderIsWhereLinksLead(t *testing.T) {
	base := ssetest.PrivateDir(t)
	made(t, 0o700, base, "real", "remembered")
	ssetest.Must(t, os.Symlink(filepath.Join(base, "real"), filepath.Join(base, "link")))
	dir, remove, err := inEmptyFolder(filepath.Join(base, "link", "remembered")).EmptyFolder(t.Context(), locksOf(base, "c"))
	ssetest.Must(t, err)
	remove()
	ssetest.Want(t, "it is below", filepath.Dir(dir), filepath.Join(base, "real", "remembered"))
}

// One server at a time is in an empty folder, in all programs that share a memory.
func TestOneEmptyFolderAtATime(t *testing.T) {
	state := ssetest.PrivateDir(t)
	synctest.Test(t, func(t *testing.T) {
		_, remove, err := inEmptyFolder(state).EmptyFolder(t.Context(), locksOf(state, "c"))
		ssetest.Must(t, err)
		got := make(chan error)
		go func() {
			_, remove, err := inEmptyFolder(state).EmptyFolder(t.Context(), locksOf(state, "c"))
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
	server := inEmptyFolder(state)
	left := func(dir string) {
		made(t, 0o700, dir, "module", "deep")
		ssetest.Must(t, os.WriteFile(filepath.Join(dir, "module", "deep", "file"), nil, 0o400))
		made(t, 0o500, dir, "module", "deep")
		made(t, 0o000, dir, "module")
	}
	dir, remove, err := server.EmptyFolder(t.Context(), locksOf(state, "c"))
	ssetest.Must(t, err)
	left(dir)
	remove()
	ssetest.Want(t, "it is there", isThere(dir), false)

	killed := made(t, 0o700, state, ".empty-1")
	left(killed)
	ssetest.Must(t, os.Chtimes(killed, time.Time{}, time.Now().Add(-2*time.Hour)))
	server.Learn(kind("a"), said("{}"))
	ssetest.Want(t, "that of one that was killed is there", isThere(killed), false)
}

// What has not started in an empty folder is not tried again for a while, by any program.
func TestTriesAreKept(t *testing.T) {
	dir := ssetest.PrivateDir(t)
	of := func(place string) *remember.Server {
		return remember.Open(dir, slog.New(slog.DiscardHandler)).Server(remember.Identity{Server: "s", AnyFolder: place}).InAnyFolder()
	}
	ssetest.Want(t, "tried", of("a").Tried().IsZero(), true)
	of("a").NoteTried()
	ssetest.Want(t, "tried later", time.Since(of("a").Tried()) < time.Hour, true)
	ssetest.Want(t, "tried elsewhere", of("b").Tried().IsZero(), true)
}
