package e2e

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// builder builds the binaries once, into a directory that remove takes away.
type builder struct {
	once sync.Once
	dir  string
	err  error
}

var programs builder

// build builds the gateway and the programs of ../tools with the race detector, as the
// tests of all packages are: nothing is compiled twice. A race in the gateway ends it
// with exit code 66, which gateway.stop reports.
func (b *builder) build() {
	if b.dir, b.err = os.MkdirTemp("", "sse-server-e2e-"); b.err != nil {
		return
	}
	for dir, packages := range map[string][]string{
		"..":       {"./cmd/sse-server"},
		"../tools": {"./conformance", "./echo", "./everything", "./leaktest"},
	} {
		args := append([]string{"build", "-C", dir, "-race", "-ldflags=-s -w", "-o", b.dir}, packages...)
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			b.err = fmt.Errorf("build in %s: %w\n%s", dir, err, out)
			return
		}
	}
}

// built returns the path of a program: sse-server, or one of ../tools.
func built(t *testing.T, name string) string {
	t.Helper()
	programs.once.Do(programs.build)
	if programs.err != nil {
		t.Fatal(programs.err)
	}
	return filepath.Join(programs.dir, name)
}

func (b *builder) remove() {
	if b.dir != "" {
		_ = os.RemoveAll(b.dir) // it is in the temporary directory
	}
}

// clientsDir is where the npm packages are.
const clientsDir = "clients"

// npmOnce installs the pinned npm packages unless they are those of the lock
// file already.
var npmOnce = sync.OnceValue(func() error {
	lock, err := os.ReadFile(filepath.Join(clientsDir, "package-lock.json"))
	if err != nil {
		return fmt.Errorf("read the lock file: %w", err)
	}
	want := fmt.Appendf(nil, "%x\n", sha256.Sum256(lock))
	stamp := filepath.Join(clientsDir, "node_modules", ".installed-from")
	have, err := os.ReadFile(stamp)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the stamp: %w", err)
	}
	if bytes.Equal(have, want) {
		return nil
	}
	ci := exec.Command("npm", "ci")
	ci.Dir = clientsDir
	if out, err := ci.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	if err := os.WriteFile(stamp, want, 0o644); err != nil {
		return fmt.Errorf("write the stamp: %w", err)
	}
	return nil
})

// npm returns the absolute path of a file of an installed npm package. A machine
// that cannot install them fails the test.
func npm(t *testing.T, path string) string {
	t.Helper()
	if err := npmOnce(); err != nil {
		t.Fatal(err)
	}
	abs, err := filepath.Abs(filepath.Join(clientsDir, "node_modules", path))
	if err != nil {
		t.Fatalf("path of %s: %v", path, err)
	}
	if _, err := os.Stat(abs); err != nil {
		t.Fatalf("an npm package is incomplete, remove clients/node_modules and run again: %v", err)
	}
	return abs
}

// node returns the Node.js that the npm package "node" brings: the Inspector
// needs a newer one than many machines have.
func node(t *testing.T) string {
	t.Helper()
	return npm(t, "node/bin/node")
}
