//go:build unix

package discovery_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
)

func TestDirectoryThatOthersCanWrite(t *testing.T) {
	for _, mode := range []os.FileMode{0o777, 0o770, 0o702} {
		dir := filepath.Join(t.TempDir(), "state")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		chmod(t, dir, mode)
		if err := discovery.MakeDir(dir); err != nil {
			t.Errorf("%v, empty: got %v", mode, err)
		}
		if info, _ := os.Stat(dir); info.Mode().Perm() != 0o700 {
			t.Errorf("%v, empty: got mode %v, want 0700", mode, info.Mode())
		}
		plant(t, filepath.Join(dir, "daemon.json"))
		chmod(t, dir, mode)
		if err := discovery.MakeDir(dir); !errors.Is(err, discovery.ErrShared) {
			t.Errorf("%v: got %v, want ErrShared", mode, err)
		}
		if info, _ := os.Stat(dir); info.Mode().Perm() != mode {
			t.Errorf("%v: got mode %v, want it unchanged", mode, info.Mode())
		}
		if _, err := discovery.Read(dir); !errors.Is(err, discovery.ErrShared) {
			t.Errorf("read: %v: got %v, want ErrShared", mode, err)
		}
		if _, err := discovery.Held(dir); !errors.Is(err, discovery.ErrShared) {
			t.Errorf("held: %v: got %v, want ErrShared", mode, err)
		}
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
}

func plant(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("victim"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, old, path string) {
	t.Helper()
	if err := os.Symlink(old, path); err != nil {
		t.Fatal(err)
	}
}

func TestLinksInTheDirectoryAreNotFollowed(t *testing.T) {
	dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
	symlink(t, victim, filepath.Join(dir, "daemon.lock"))
	if _, err := discovery.Acquire(dir); err == nil {
		t.Error("acquire: got nil")
	}
	if _, err := os.Lstat(victim); err == nil {
		t.Error("acquire made the file that the link names")
	}
	plant(t, victim)
	if _, err := discovery.Held(dir); err == nil {
		t.Error("held: got nil")
	}
	symlink(t, victim, filepath.Join(dir, "daemon.json"))
	if _, err := discovery.Read(dir); err == nil || errors.Is(err, discovery.ErrNoRecord) {
		t.Errorf("read: got %v", err)
	}
}

func TestLinkToTheDirectory(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own")
	symlink(t, t.TempDir(), own)
	if err := discovery.MakeDir(own); err != nil {
		t.Errorf("a link of this user: got %v", err)
	}
	if err := discovery.MakeDir(othersLink(t, own)); !errors.Is(err, discovery.ErrOwner) {
		t.Errorf("a link of another user: got %v, want ErrOwner", err)
	}
}

// othersLink returns a link to a directory that this process's user does not own: the
// link given if only its owner has to change, else one of the system's.
func othersLink(t *testing.T, link string) string {
	t.Helper()
	if os.Geteuid() == 0 {
		if err := os.Lchown(link, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		return link
	}
	if runtime.GOOS == "linux" {
		return "/proc/self"
	}
	return "/tmp" // of macOS
}

func TestWriteFile(t *testing.T) {
	dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
	plant(t, victim)
	path := filepath.Join(dir, "daemon.json")
	symlink(t, victim, path)
	for _, want := range []string{"one", "two"} {
		if err := discovery.WriteFile(path, []byte(want)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(path)
		if got, _ := os.ReadFile(path); err != nil || string(got) != want || info.Mode() != 0o600 {
			t.Errorf("got %q, %v, %v, want %q in a file of mode 0600", got, info, err, want)
		}
	}
	if got, _ := os.ReadFile(victim); string(got) != "victim" {
		t.Errorf("the target of the link is now %q", got)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("got files %v, want one", entries)
	}
}
