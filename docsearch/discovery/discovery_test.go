package discovery_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
)

func TestStateDir(t *testing.T) {
	for _, tt := range []struct{ name, xdg, home, want string }{
		{"XDG", "/x/state", "/home/u", "/x/state/docsearch"},
		{"home", "", "/home/u", "/home/u/.local/state/docsearch"},
		{"relative XDG is ignored", "state", "/home/u", "/home/u/.local/state/docsearch"},
		{"none", "", "", ""},
		{"relative home", "", "u", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := map[string]string{"XDG_STATE_HOME": tt.xdg, "HOME": tt.home}
			got, err := discovery.StateDir(func(k string) string { return env[k] })
			if got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestOneLockPerDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if held, err := discovery.Held(dir); held || err != nil {
		t.Errorf("without a directory: got held %v, %v", held, err)
	}
	lock, err := discovery.Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := discovery.Acquire(dir); !errors.Is(err, discovery.ErrHeld) {
		t.Errorf("second: got %v, want ErrHeld", err)
	}
	if held, err := discovery.Held(dir); !held || err != nil {
		t.Errorf("got held %v, %v, want true", held, err)
	}
	for range 2 {
		if err := lock.Release(); err != nil {
			t.Fatal(err)
		}
	}
	if held, err := discovery.Held(dir); held || err != nil {
		t.Errorf("after release: got held %v, %v", held, err)
	}
	if err := lock.Publish(discovery.Record{}); err == nil {
		t.Error("publish after release: got nil")
	}
	again, err := discovery.Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
}

func TestHeldDoesNotDisturbAcquire(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_, _ = discovery.Held(dir)
				}
			}
		})
	}
	for range 20 {
		lock, err := discovery.Acquire(dir)
		if err != nil {
			t.Error(err)
			break
		}
		_ = lock.Release()
	}
	close(stop)
	wg.Wait()
}

func TestPublishAndRead(t *testing.T) {
	dir := t.TempDir()
	if _, err := discovery.Read(dir); !errors.Is(err, discovery.ErrNoRecord) {
		t.Errorf("got %v, want ErrNoRecord", err)
	}
	if _, err := discovery.Read(filepath.Join(dir, "missing")); !errors.Is(err, discovery.ErrNoRecord) {
		t.Errorf("missing directory: got %v, want ErrNoRecord", err)
	}
	lock, err := discovery.Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := discovery.NewRecord("127.0.0.1:3002", "1.2.3")
	if err := lock.Publish(want); err != nil {
		t.Fatal(err)
	}
	got, err := discovery.Read(dir)
	if err != nil || !got.Same(want) || got.Version != "1.2.3" || got.APIVersion != api.Version {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, name := range []string{"daemon.json", "daemon.lock"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got %v, %v, want mode 0600", name, info.Mode(), err)
		}
	}
	if info, _ := os.Stat(dir); info.Mode().Perm() != 0o700 {
		t.Errorf("directory: got %v, want mode 0700", info.Mode())
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 1 {
		t.Errorf("after release: got %v, want daemon.lock alone", entries)
	}
}

func TestLockDiesWithItsProcess(t *testing.T) {
	dir := t.TempDir()
	cmd := startHolder(t, dir)
	if held, err := discovery.Held(dir); !held || err != nil {
		t.Fatalf("got held %v, %v, want true", held, err)
	}
	r, err := discovery.Read(dir)
	if err != nil || !r.Alive() || r.PID != cmd.Process.Pid {
		t.Fatalf("got %+v, %v, want a living daemon %d", r, err, cmd.Process.Pid)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if held, err := discovery.Held(dir); held || err != nil {
		t.Errorf("after kill: got held %v, %v", held, err)
	}
	if r.Alive() {
		t.Error("after kill: the record's process is alive")
	}
	if stale, err := discovery.Read(dir); err != nil || !stale.Same(r) {
		t.Errorf("after kill: got %+v, %v, want the stale record", stale, err)
	}
	lock, err := discovery.Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Release() }()
	if _, err := discovery.Read(dir); !errors.Is(err, discovery.ErrNoRecord) {
		t.Errorf("next daemon: got %v, want ErrNoRecord", err)
	}
}

func TestReusedPIDIsNotAlive(t *testing.T) {
	r := discovery.NewRecord("127.0.0.1:1", "")
	if !r.Alive() {
		t.Error("this process is not alive")
	}
	r.ProcessStart += "1"
	if r.Alive() {
		t.Error("another process with the same id counts as alive")
	}
	r.ProcessStart = ""
	if r.Alive() {
		t.Error("a process without a start counts as alive")
	}
}

func TestDirectoryOfAnotherUser(t *testing.T) {
	dir := othersDirectory(t)
	if _, err := discovery.Acquire(dir); err == nil {
		t.Error("acquire: got nil")
	}
	if _, err := discovery.Read(dir); !errors.Is(err, discovery.ErrOwner) {
		t.Errorf("read: got %v, want ErrOwner", err)
	}
	if _, err := discovery.Held(dir); !errors.Is(err, discovery.ErrOwner) {
		t.Errorf("held: got %v, want ErrOwner", err)
	}
}

// othersDirectory returns a directory that this process's user does not own.
func othersDirectory(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		return "/"
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestStateDirectoryIsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := discovery.Acquire(path); err == nil {
		t.Error("acquire: got nil")
	}
	if _, err := discovery.Held(path); err == nil {
		t.Error("held: got nil")
	}
}

func TestMakeDirClosesTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := discovery.MakeDir(dir); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(dir); info.Mode().Perm() != 0o700 {
		t.Errorf("got mode %v, want 0700", info.Mode())
	}
}

func TestParseRecordRefuses(t *testing.T) {
	for name, data := range map[string]string{
		"nothing":       ``,
		"part":          `{"address":"127.0.0.1:1`,
		"no port":       `{"address":"127.0.0.1","pid":1}`,
		"other machine": `{"address":"192.0.2.1:80","pid":1}`,
		"name":          `{"address":"example.com:80","pid":1}`,
		"no pid":        `{"address":"127.0.0.1:1"}`,
		"process group": `{"address":"127.0.0.1:1","pid":-1}`,
	} {
		if r, err := discovery.ParseRecord([]byte(data)); err == nil {
			t.Errorf("%s: got %+v", name, r)
		}
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add([]byte(`{"address":"127.0.0.1:3002","pid":7,"processStart":"1"}`))
	f.Add([]byte(`{"address":"[::1]:3002","pid":7}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := discovery.ParseRecord(data)
		if err == nil && (r.PID <= 0 || !strings.Contains(r.Address, ":")) {
			t.Errorf("got %+v", r)
		}
	})
}
