package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/internal/signedid"
)

// The first start makes the file, in the first directory that there is; later ones read it,
// and so do those at the same time.
func TestIDKeyIsMadeOnce(t *testing.T) {
	for place, env := range map[string]func(dir string) map[string]string{
		"id-key": func(dir string) map[string]string {
			return map[string]string{"STATE_DIRECTORY": dir + ":/other", "XDG_STATE_HOME": "/no", "HOME": "/no"}
		},
		"sse-server/id-key": func(dir string) map[string]string { return map[string]string{"XDG_STATE_HOME": dir, "HOME": "/no"} },
		".local/state/sse-server/id-key": func(dir string) map[string]string {
			return map[string]string{"XDG_STATE_HOME": "relative", "HOME": dir}
		},
		"given": func(dir string) map[string]string {
			return map[string]string{"STATE_DIRECTORY": "/no", "SSE_SERVER_ID_KEY_FILE": dir + "/given"}
		},
	} {
		dir := filepath.Join(t.TempDir(), "new")
		vars, path := env(dir), filepath.Join(dir, place)
		if c := mustLoad(t, vars, "check"); c.IDKey != nil || c.NoIDKey != nil {
			t.Errorf("check: got the key %q, %v", c.IDKey, c.NoIDKey)
		}
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Fatalf("check has made %s", path)
		}
		keys := make([]string, 32)
		var wg sync.WaitGroup
		for i := range keys {
			wg.Go(func() {
				c, err := Load(nil, clitest.Environment(vars), new(Config))
				if err != nil {
					t.Errorf("load: %v", err)
					return
				}
				keys[i] = string(c.IDKey)
			})
		}
		wg.Wait()
		data := clitest.Must(os.ReadFile(path))
		for _, key := range keys {
			if len(key) < signedid.MinKey || key != strings.TrimSpace(string(data)) {
				t.Fatalf("%s: got the keys %q, and the file %q", place, keys, data)
			}
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: mode %v, %v", path, info.Mode(), err)
		}
		if files, err := os.ReadDir(filepath.Dir(path)); len(files) != 1 {
			t.Errorf("%s: %v, %v", place, files, err)
		}
		if c := mustLoad(t, vars, "check"); string(c.IDKey) != keys[0] {
			t.Errorf("check: got the key %q", c.IDKey)
		}
	}
}

// A key that is there but no secret is refused wherever it is.
func TestIDKeyFaults(t *testing.T) {
	for content, want := range map[string]string{
		"":                             "must hold 32 to 4096 random characters",
		"\n":                           "must hold 32 to 4096",
		strings.Repeat("x", 31) + "\n": "must hold 32 to 4096",
		strings.Repeat("x", 1<<20):     "must hold 32 to 4096",
	} {
		path := clitest.WriteFile(t, "id-key", content)
		wantRefusal(t, nil, "--id-key-file: no key of ids: "+path+" "+want, "--id-key-file", path)
		wantRefusal(t, map[string]string{"STATE_DIRECTORY": filepath.Dir(path)}, path+" "+want)
	}
	for _, mode := range []os.FileMode{0o604, 0o602, 0o620, 0o644} {
		path := clitest.WriteFile(t, "id-key", strings.Repeat("x", 32))
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, nil, path+" can be read or changed by other users of this machine", "--id-key-file", path)
		wantRefusal(t, map[string]string{"STATE_DIRECTORY": filepath.Dir(path)}, path+" can be read or changed", "check")
	}
	if os.Geteuid() == 0 { // only root gives files to others
		path := clitest.WriteFile(t, "id-key", strings.Repeat("x", 32))
		for _, mode := range []os.FileMode{0o600, 0o640} {
			if err := errors.Join(os.Chmod(path, mode), os.Chown(path, 4711, -1)); err != nil {
				t.Fatal(err)
			}
			wantRefusal(t, nil, path+" belongs to another user, who could sign ids: chown it to the user of this program", "--id-key-file", path)
		}
	}
	file := clitest.WriteFile(t, "file", "")
	wantRefusal(t, nil, "--id-key-file: ", "--id-key-file", file+"/id-key")
	wantRefusal(t, nil, ": is a directory", "--id-key-file", t.TempDir())
	wantRefusal(t, nil, os.DevNull+" must hold 32 to 4096", "--id-key-file", os.DevNull)
}

// Without a place by default there is no key, and the program goes on.
func TestNoPlaceForAnIDKey(t *testing.T) {
	file := clitest.WriteFile(t, "file", "")
	for _, env := range []map[string]string{nil, {"STATE_DIRECTORY": file}, {"HOME": file + "/home"}} {
		if c := mustLoad(t, env); c.IDKey != nil || c.NoIDKey == nil {
			t.Errorf("%v: got the key %q, %v", env, c.IDKey, c.NoIDKey)
		}
	}
	if c := mustLoad(t, nil, "stdio"); c.NoIDKey != nil {
		t.Errorf("stdio: %v", c.NoIDKey)
	}
}
