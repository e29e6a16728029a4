//go:build unix

package remember_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A file or a folder of another user, and a folder that all can write to, are not used: neither by root.
func TestFilesOfOtherUsers(t *testing.T) {
	for why, spoil := range map[string]func(dir, file string) error{
		"belongs to another user": func(_, file string) error { return os.Chown(file, 1, 1) },
		"chown it to the user":    func(dir, _ string) error { return os.Chown(dir, 1, 1) },
		"can write to":            func(dir, _ string) error { return os.Chmod(dir, 0o777) },
	} {
		t.Run(why, func(t *testing.T) {
			if os.Geteuid() != 0 && why != "can write to" {
				t.Skip("only root gives files to others")
			}
			dir := t.TempDir()
			log, lines := logger()
			remember.Open(dir, log).Server(remember.Identity{Server: "s"}).Learn(kind("a"), said("{}"))
			files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
			ssetest.Must(t, spoil(dir, files[0]))
			if remember.Open(dir, log).Server(remember.Identity{Server: "s"}).Answers(kind("a")) != nil {
				t.Error("it was used")
			}
			if !strings.Contains(lines.String(), why) {
				t.Errorf("the log says %q, want %q in it", lines, why)
			}
		})
	}
}

// A memory is not used where its folder is a link to another one. Below a folder that is open to all it is, as a volume of a
// container is such a one, but no server starts there: it would find what others have put above it.
func TestMemoryThatIsNotInAFolderOfItsOwn(t *testing.T) {
	for why, place := range map[string]func(base string) string{
		"can write to": func(base string) string { return made(t, 0o777, base, "shared") },
		"can write to ": func(base string) string {
			ssetest.Must(t, os.Symlink(filepath.Join(made(t, 0o777, base, "shared")), filepath.Join(base, "link")))
			return filepath.Join(base, "link")
		},
		"is a link": func(base string) string {
			ssetest.Must(t, os.Symlink(made(t, 0o700, base, "victim"), filepath.Join(base, "remembered")))
			return base
		},
	} {
		t.Run(why, func(t *testing.T) {
			dir := filepath.Join(place(t.TempDir()), "remembered")
			log, lines := logger()
			remember.Open(dir, log).Server(remember.Identity{Server: "s"}).Learn(kind("a"), said("{}"))
			files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
			if why == "is a link" {
				ssetest.Want(t, "files", len(files), 0)
				ssetest.WantText(t, "the log", lines.String(), why)
			} else {
				ssetest.Want(t, "files", len(files), 1)
			}
			_, err := remember.Open(dir, log).Server(remember.Identity{Server: "s"}).EmptyFolder(t.Context(), locksOf(t.TempDir(), "c"), 0)
			ssetest.WantText(t, "the error of an empty folder", fmt.Sprint(err), why)
		})
	}
}

// Only files of a memory give way to others.
func TestOtherFilesAreNotDropped(t *testing.T) {
	dir := t.TempDir()
	others := []string{"settings.json", strings.Repeat("a", 31) + ".json", strings.Repeat("A", 32) + ".json", strings.Repeat("a", 33) + ".json"}
	dropped := strings.Repeat("a1", 16) + ".json"
	for _, name := range append(others, dropped) {
		ssetest.Must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		ssetest.Must(t, os.Chtimes(filepath.Join(dir, name), time.Time{}, time.Now().Add(-2*remember.MaxAge)))
	}
	log, _ := logger()
	remember.Open(dir, log).Server(remember.Identity{Server: "s"}).Learn(kind("a"), said("{}"))
	for _, name := range others {
		ssetest.Want(t, name, isThere(filepath.Join(dir, name)), true)
	}
	ssetest.Want(t, dropped, isThere(filepath.Join(dir, dropped)), false)
}
