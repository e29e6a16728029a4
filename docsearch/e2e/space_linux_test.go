package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
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

// address waits until the daemon has logged where it serves. Its record may be in a
// mount that only it sees.
func (w *world) address() (addr string) {
	w.Helper()
	w.eventually("the daemon serves", func() bool {
		_, rest, found := strings.Cut(w.log.String(), "msg=serving addr=")
		addr, _, _ = strings.Cut(rest, " ")
		return found
	})
	return addr
}

// paths asks the daemon at addr which files it finds.
func (w *world) paths(addr, query string) string {
	w.Helper()
	body := strings.NewReader(fmt.Sprintf(`{"query":%q}`, query))
	response, err := http.Post("http://"+addr+"/api/v1/search", "application/json", body)
	if err != nil {
		w.Fatal(err)
	}
	defer response.Body.Close()
	var got answer
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil || response.StatusCode != http.StatusOK {
		w.Fatalf("search: %s, %v", response.Status, err)
	}
	var found []string
	for _, r := range got.Results {
		found = append(found, filepath.Base(r.Path))
	}
	return strings.Join(found, " ")
}

// The disk fills up: the daemon says so, serves what it has, and indexes the rest once
// there is space.
func TestDiskIsFull(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	filler := filepath.Join(t.TempDir(), "filler")
	if err := os.Mkdir(filler, 0o700); err != nil {
		t.Fatal(err)
	}
	// The command that fills the disk, and the one that makes space, run in the daemon's
	// mount namespace, when a file asks for them.
	w.startIn(`mount -t tmpfs -o size=4m tmpfs "$STATE" && {
		while [ ! -e "` + filler + `/fill" ]; do sleep 0.1; done
		head -c 4m /dev/zero > "$STATE/zero" 2>"` + filler + `/full" || true
		while [ ! -e "` + filler + `/free" ]; do sleep 0.1; done
		rm "$STATE/zero"
	} &
	sleep 0`)
	ask := func(name string) {
		if err := os.WriteFile(filepath.Join(filler, name), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { // the commands end, also if the test fails
		ask("fill")
		ask("free")
	})
	addr := w.address()
	w.eventually("what fits is found", func() bool { return w.paths(addr, word(3)) == "doc-3.md" })
	ask("fill")
	w.eventually("the disk is full", func() bool {
		_, err := os.Stat(filepath.Join(filler, "full"))
		return err == nil
	})
	w.write("late.txt", "the axolotl comes late "+strings.Repeat("and many different words follow. ", 10_000))
	w.eventually("the daemon says that the disk is full", func() bool { return strings.Contains(w.log.String(), "disk is full") })
	if got := w.paths(addr, word(3)); got != "doc-3.md" {
		t.Errorf("with the disk full the search finds %q", got)
	}
	ask("free")
	w.eventually("what did not fit is found", func() bool { return w.paths(addr, "axolotl") == "late.txt" })
	http.DefaultClient.CloseIdleConnections()
}

// The index cannot be written: the daemon says which directory.
func TestIndexCannotBeWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startIn(`mount --bind "$STATE" "$STATE" && mount -o remount,bind,ro "$STATE"`)
	w.eventually("the daemon names the state directory", func() bool {
		return strings.Contains(w.log.String(), "docsearch: ") && strings.Contains(w.log.String(), w.state) &&
			strings.Contains(w.log.String(), "read-only")
	})
}
