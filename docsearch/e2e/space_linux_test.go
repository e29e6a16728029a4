package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// startIn starts a daemon in a mount namespace of its own, after a shell command there
// that prepares $STATE.
func (w *world) startIn(prepare string) {
	w.Helper()
	if err := os.MkdirAll(w.state, 0o700); err != nil {
		w.Fatal(err)
	}
	script := prepare + ` && exec "$0" daemon --addr 127.0.0.1:0 --state-dir "$STATE" --folder "$DOCS"`
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", script, binary(w.TB, "docsearch"))
	cmd.Env = append(w.command().Env, "STATE="+w.state, "DOCS="+w.docs)
	cmd.Stdout, cmd.Stderr = &w.log, &w.log
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // some of these daemons fail
	})
}

// The disk is full: the daemon says so, serves what it has, and loses nothing.
func TestDiskIsFull(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 40 {
		w.write("large-"+string(rune('a'+n%26))+string(rune('a'+n/26))+".txt", strings.Repeat("many different words fill the disk. ", 4000))
	}
	w.startIn(`mount -t tmpfs -o size=2m tmpfs "$STATE"`)
	w.eventually("the daemon says that the disk is full", func() bool { return strings.Contains(w.log.String(), "disk is full") })
}

// The index cannot be written: the daemon says which file.
func TestIndexCannotBeWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startIn(`mount --bind "$STATE" "$STATE" && mount -o remount,bind,ro "$STATE"`)
	w.eventually("the daemon names the state directory", func() bool {
		return strings.Contains(w.log.String(), "docsearch: ") && strings.Contains(w.log.String(), filepath.Base(w.state))
	})
}
