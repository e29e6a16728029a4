//go:build agents

package agents

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// installed returns the directory of the npm packages of package-lock.json. It is below the
// user's cache directory, and is filled when the lock file is another one than before.
var installed = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "sse-server-agents")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	lock, err := os.ReadFile("package-lock.json")
	if err != nil {
		return "", err
	}
	want := fmt.Sprintf("%x\n", sha256.Sum256(lock))
	stamp := filepath.Join(dir, "node_modules", ".installed-from")
	if have, err := os.ReadFile(stamp); err == nil && string(have) == want {
		return dir, nil
	}
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc"} {
		data, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o644)
		}
		if err != nil {
			return "", err
		}
	}
	// npm ci wants the packages of all platforms in the lock file, also those that some mirrors of
	// the registry do not have. This one keeps to the versions of the lock file too.
	install := exec.Command("npm", "install", "--no-save", "--loglevel", "error")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the agents cannot be installed: %s in %s: %w\n%s", install, dir, err, out)
	}
	return dir, os.WriteFile(stamp, []byte(want), 0o644)
})

// modules returns the path of a file of an npm package. A machine on which the packages cannot
// be installed fails the test.
func modules(t *testing.T, path ...string) string {
	t.Helper()
	dir, err := installed()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(append([]string{dir, "node_modules"}, path...)...)
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("an agent is not installed, remove %s and run again: %v", dir, err)
	}
	return file
}

// version returns that of an installed package.
func version(name string) (string, error) {
	dir, err := installed()
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(filepath.Join(dir, "node_modules", name, "package.json"))
	if err != nil {
		return "", err
	}
	var p struct {
		Version string `json:"version"`
	}
	err = json.Unmarshal(data, &p)
	return p.Version, err
}

// program is the folder of the built sse-server, and of the issuer of tools.
var program struct {
	once sync.Once
	dir  string
	err  error
}

// sseServer returns the path of the built sse-server.
func sseServer(t *testing.T) string {
	t.Helper()
	return built(t, "sse-server")
}

// built returns the path of a program. It is built without the race detector: the tests are about time too.
func built(t *testing.T, name string) string {
	t.Helper()
	program.once.Do(func() {
		if program.dir, program.err = os.MkdirTemp("", "sse-server-agents-"); program.err != nil {
			return
		}
		for dir, pkg := range map[string]string{"../..": "./cmd/sse-server", "../../tools": "./issuer"} {
			build := exec.Command("go", "build", "-C", dir, "-o", program.dir, pkg)
			if out, err := build.CombinedOutput(); err != nil {
				program.err = fmt.Errorf("build: %w\n%s", err, out)
			}
		}
	})
	if program.err != nil {
		t.Fatal(program.err)
	}
	return filepath.Join(program.dir, name)
}

// removeProgram removes what was built.
func removeProgram() error {
	if program.dir == "" {
		return nil
	}
	return os.RemoveAll(program.dir)
}

// write writes a file of an agent's configuration, with its directories.
func write(t *testing.T, file, content string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, []byte(content), fs.FileMode(0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}
