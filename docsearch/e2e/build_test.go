package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// builder builds the programs once, into a directory that remove takes away.
type builder struct {
	once sync.Once
	dir  string
	err  error
}

var programs builder

func (b *builder) build() {
	if b.dir, b.err = os.MkdirTemp("", "docsearch-e2e-"); b.err != nil {
		return
	}
	b.run("..", "build", race, "-o", b.dir, "./cmd/docsearch")
	b.run("../..", "build", "-race", "-o", b.dir, "./cmd/sse-server") // as its own tests build it: it is compiled once
}

func (b *builder) run(dir string, args ...string) {
	if b.err != nil {
		return
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		b.err = fmt.Errorf("go %v: %w\n%s", args, err, out)
	}
}

func (b *builder) remove() {
	if b.dir != "" {
		_ = os.RemoveAll(b.dir) // it is in the temporary directory
	}
}

// binary returns the path of a built program.
func binary(t testing.TB, name string) string {
	t.Helper()
	programs.once.Do(programs.build)
	if programs.err != nil {
		t.Fatal(programs.err)
	}
	return filepath.Join(programs.dir, name)
}
