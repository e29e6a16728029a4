//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A directory is private if neither it nor one above it is another user's, or open to others.
func TestDirectoriesThatAreNotPrivate(t *testing.T) {
	base := t.TempDir()
	made := func(name string, mode os.FileMode) string {
		dir := filepath.Join(base, name)
		ssetest.Must(t, os.MkdirAll(dir, 0o700))
		ssetest.Must(t, os.Chmod(dir, mode))
		return dir
	}
	shared := made("shared", 0o777)
	ssetest.Must(t, os.Mkdir(filepath.Join(shared, "below"), 0o700))
	sticky := made("sticky", 0o777|os.ModeSticky)
	ssetest.Must(t, os.Mkdir(filepath.Join(sticky, "below"), 0o700))
	file := filepath.Join(base, "file")
	ssetest.Must(t, os.WriteFile(file, nil, 0o600))
	link := filepath.Join(base, "link")
	ssetest.Must(t, os.Symlink(filepath.Join(shared, "below"), link))
	for dir, want := range map[string]string{
		made("private", 0o700):         "<nil>",
		made("readable", 0o750):        "other users can open",
		filepath.Join(shared, "below"): "all users can write to " + shared,
		link:                           "all users can write to " + shared,
		filepath.Join(sticky, "below"): "<nil>",
		file:                           "is not a directory",
		filepath.Join(base, "none"):    "no such file or directory",
	} {
		ssetest.WantText(t, dir, fmt.Sprint(checkPrivate(dir)), want)
	}
	if os.Geteuid() != 0 { // only root can give a directory away; for others root's are foreign
		ssetest.WantText(t, "a directory of root", fmt.Sprint(checkPrivate("/etc")), "belongs to another user (0)")
		return
	}
	foreign := made("foreign", 0o700)
	ssetest.Must(t, os.Mkdir(filepath.Join(foreign, "below"), 0o700))
	ssetest.Must(t, os.Chown(foreign, 4711, 4711))
	ssetest.WantText(t, "a directory of another", fmt.Sprint(checkPrivate(foreign)), "belongs to another user (4711)")
	ssetest.WantText(t, "one below it", fmt.Sprint(checkPrivate(filepath.Join(foreign, "below"))), foreign+" belongs to another user (4711), who can replace")
}
