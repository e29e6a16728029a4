package daemon_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/daemon"
	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
)

func TestOneDaemonForAStateDirectory(t *testing.T) {
	r := start(t, daemon.Options{})
	if _, err := daemon.New(daemon.Options{StateDir: r.state, Addr: "127.0.0.1:0"}); !errors.Is(err, discovery.ErrHeld) {
		t.Errorf("a second daemon: %v, want ErrHeld", err)
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if held, err := discovery.Held(r.state); held || err != nil {
		t.Errorf("after its end the daemon holds the lock: %v, %v", held, err)
	}
	if _, err := discovery.Read(r.state); err == nil {
		t.Error("after its end the daemon has a record")
	}
}

func TestTakenPortIsPassedOver(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	r := start(t, daemon.Options{Addr: taken.Addr().String()})
	first, now := taken.Addr().(*net.TCPAddr).Port, 0
	if _, err := fmt.Sscanf(r.base, "http://127.0.0.1:%d", &now); err != nil || now <= first {
		t.Errorf("with port %d taken the daemon is at %s", first, r.base)
	}
}

func TestOtherMachinesAreNotServed(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:3002", ":3002", "192.0.2.1:3002", "example.com:3002", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:70000"} {
		if _, err := daemon.New(daemon.Options{StateDir: t.TempDir(), Addr: addr}); err == nil {
			t.Errorf("address %q is accepted", addr)
		}
	}
}

// An idle daemon ends. Looks at its health do not keep it.
func TestIdleDaemonEnds(t *testing.T) {
	t.Parallel()
	r := start(t, daemon.Options{IdleTimeout: 200 * time.Millisecond})
	r.eventually("the daemon has ended", func() bool {
		response, err := r.client.Get(r.base + "/health")
		if err == nil {
			response.Body.Close()
		}
		held, _ := discovery.Held(r.state)
		return !held
	})
	if err := r.end(); err != nil {
		t.Error(err)
	}
}

// Folders, and what is indexed of them, outlive the daemon. A folder that was removed
// does not come back.
func TestFoldersOutliveTheDaemon(t *testing.T) {
	r := start(t, daemon.Options{})
	other := t.TempDir()
	r.get("POST", "/api/v1/folders", api.AddFolder{Path: other}, &api.Folder{})
	r.indexed()
	r.get("DELETE", folderPath(other, ""), nil, &struct{}{})
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	r.run(daemon.Options{StateDir: r.state, Addr: "127.0.0.1:0"})
	r.indexed()
	var folders api.Folders
	r.get("GET", "/api/v1/folders", nil, &folders)
	if len(folders.Folders) != 1 || folders.Folders[0].Path != r.docs {
		t.Errorf("folders = %+v", folders.Folders)
	}
	r.finds("goat", "hill.txt")
}

// An index that is garbage is made anew, with all folders and a warning.
func TestDamagedIndexIsMadeAnew(t *testing.T) {
	r := start(t, daemon.Options{})
	r.indexed()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(filepath.Join(r.state, "index"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && e.Name() != "path" {
			err = os.WriteFile(path, []byte(strings.Repeat("garbage ", 1000)), 0o600)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r.run(daemon.Options{StateDir: r.state, Addr: "127.0.0.1:0"})
	r.finds("goat", "hill.txt")
	var health api.Health
	r.get("GET", "/health", nil, &health)
	if !strings.Contains(fmt.Sprint(health.Warnings), "made anew") {
		t.Errorf("the health tells nothing of it: %+v", health)
	}
}

// A record that is removed or spoilt is written again, so that clients find the daemon.
func TestRecordIsWrittenAgain(t *testing.T) {
	t.Parallel()
	r := start(t, daemon.Options{})
	for _, spoil := range []func(file string) error{os.Remove, func(file string) error { return os.WriteFile(file, []byte("{"), 0o600) }} {
		if err := spoil(filepath.Join(r.state, "daemon.json")); err != nil {
			t.Fatal(err)
		}
		r.eventually("the record is there", func() bool {
			record, err := discovery.Read(r.state)
			return err == nil && "http://"+record.Address == r.base
		})
	}
}

// A daemon whose state directory is removed ends: the next one has a lock of its own.
func TestStateDirectoryIsRemoved(t *testing.T) {
	t.Parallel()
	r := start(t, daemon.Options{})
	r.eventually("the directory is removed", func() bool { return os.RemoveAll(r.state) == nil }) // the index still writes files
	r.eventually("the daemon has ended", func() bool {
		response, err := r.client.Get(r.base + "/health")
		if err == nil {
			response.Body.Close()
		}
		return err != nil
	})
	if err := r.end(); !errors.Is(err, discovery.ErrLost) {
		t.Errorf("Run = %v, want ErrLost", err)
	}
}

// A folder that is removed can be added again at once.
func TestFolderIsRemovedAndAdded(t *testing.T) {
	t.Parallel()
	r := start(t, daemon.Options{})
	const many = 50
	for n := range many {
		r.write(fmt.Sprintf("many/%d.txt", n), fmt.Sprintf("llama number %d\n", n))
	}
	r.eventually("all files are indexed", func() bool {
		var info api.ServerInfo
		r.get("GET", "/api/v1/server/info", nil, &info)
		return info.Documents == many+2
	})
	r.get("DELETE", folderPath(r.docs, ""), nil, &struct{}{})
	if got := r.search("goat"); len(got) > 0 {
		t.Errorf("found %v in a folder that was removed", got)
	}
	var added api.Folder
	r.get("POST", "/api/v1/folders", api.AddFolder{Path: r.docs}, &added)
	r.finds("goat", "hill.txt")
}

// Without its ignore file a folder cannot tell which files are ignored: it keeps its
// index, and says so.
func TestIgnoreFileThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	r := start(t, daemon.Options{})
	r.indexed()
	r.write(".gitignore", strings.Repeat("# padding\n", 1<<20)+"secret.txt\n")
	r.write("secret.txt", "the thylacine sleeps\n")
	warning := func() string {
		var folders api.Folders
		r.get("GET", "/api/v1/folders", nil, &folders)
		return folders.Folders[0].Warning
	}
	want := filepath.Base(r.docs) + " cannot be read: its .gitignore is larger than"
	r.eventually("the folder has a warning", func() bool { return strings.HasPrefix(warning(), want) })
	if got := r.search("thylacine"); len(got) > 0 {
		t.Errorf("an ignored file is found: %v", got)
	}
	if got := r.search("goat"); fmt.Sprint(got) != "[hill.txt]" {
		t.Errorf("what was indexed is lost: found %v", got)
	}
}

// A file that is changed without another size or time is found by what it says now.
func TestFileWithTheSameSizeAndTime(t *testing.T) {
	t.Parallel()
	r := start(t, daemon.Options{})
	file := filepath.Join(r.docs, "same.txt")
	old := time.Now().Add(-time.Hour)
	for _, word := range []string{"wombat", "numbat"} {
		r.write("same.txt", word)
		if err := os.Chtimes(file, old, old); err != nil {
			t.Fatal(err)
		}
		r.finds(word, "same.txt")
	}
}

// Many searches at once, while files change, each get an answer of their own.
func TestSearchesWhileFilesChange(t *testing.T) {
	r := start(t, daemon.Options{})
	r.indexed()
	var all sync.WaitGroup
	all.Go(func() {
		for n := range 200 {
			r.write(fmt.Sprintf("more/%d.txt", n%50), strings.Repeat(fmt.Sprintf("llama number %d. ", n), 100))
		}
	})
	for range 4 {
		all.Go(func() {
			for range 15 {
				if got := r.search("hippopotamus"); fmt.Sprint(got) != "[river.md]" {
					t.Errorf("found %v", got)
				}
				if got := r.search("goat"); fmt.Sprint(got) != "[hill.txt]" {
					t.Errorf("found %v", got)
				}
			}
		})
	}
	all.Wait()
}

// The daemon reads no file outside of a folder.
func TestNothingOutsideTheFolderIsRead(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret.txt"), []byte("the thylacine sleeps\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := start(t, daemon.Options{})
	for link, target := range map[string]string{
		"link.txt": filepath.Join(outside, "secret.txt"), "linked": outside, "passwd.txt": "/etc/passwd",
	} {
		if err := os.Symlink(target, filepath.Join(r.docs, link)); err != nil {
			t.Fatal(err)
		}
	}
	r.write("marker.txt", "the echidna digs\n")
	r.finds("echidna", "marker.txt")
	r.indexed()
	for _, secret := range []string{"thylacine", "root"} {
		if got := r.search(secret); len(got) > 0 {
			t.Errorf("%q is found in %v", secret, got)
		}
	}
	if response, _ := r.request("GET", "/health", nil); response.StatusCode != http.StatusOK {
		t.Errorf("health: %d", response.StatusCode)
	}
}

// Files that come, change, move and go are followed, in folders that come and go.
func TestFilesAreFollowed(t *testing.T) {
	t.Parallel()
	r := start(t, daemon.Options{})
	r.indexed()
	r.write("deep/er/new.md", "a wombat burrows\n")
	r.finds("wombat", "deep/er/new.md")
	r.write("deep/er/new.md", "a numbat burrows\n")
	r.finds("numbat", "deep/er/new.md")
	r.finds("wombat")
	if err := os.Rename(filepath.Join(r.docs, "deep"), filepath.Join(r.docs, "moved")); err != nil {
		t.Fatal(err)
	}
	r.finds("numbat", "moved/er/new.md")
	if err := os.RemoveAll(filepath.Join(r.docs, "moved")); err != nil {
		t.Fatal(err)
	}
	r.finds("numbat")
	r.write(".gitignore", "*.log\n")
	r.write("debug.log", "the log of a wallaby\n")
	r.write("kept.txt", "the tale of a wallaby\n")
	r.finds("wallaby", "kept.txt")
}
