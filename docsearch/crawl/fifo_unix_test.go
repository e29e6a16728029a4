//go:build unix

package crawl

import (
	"errors"
	"net"
	"path/filepath"
	"syscall"
	"testing"
)

var errorsOfProcess = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM}

func makeFIFO(path string) error { return syscall.Mkfifo(path, 0o644) }

// TestWalkWithoutDescriptors lets a walk run out of them: it must not take that for
// files that are gone.
func TestWalkWithoutDescriptors(t *testing.T) {
	f := openFolder(t, tree(t, "a", "b/c"), Options{})
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	lower := limit
	lower.Cur = 0
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &lower))
	err := f.Walk(t.Context(), ".", func(File, error) error { return nil })
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	if err == nil {
		t.Error("a walk that can open nothing succeeds")
	}
}

func TestReadDoesNotWaitForAFIFO(t *testing.T) {
	dir := tree(t, "sub/")
	must(t, makeFIFO(filepath.Join(dir, "fifo")))
	must(t, makeFIFO(filepath.Join(dir, ".gitignore")))
	t.Chdir(dir) // the path of a socket is short
	l, err := net.Listen("unix", "socket")
	must(t, err)
	defer l.Close()
	f := openFolder(t, dir, Options{})
	for _, path := range []string{"fifo", "socket"} {
		if _, _, err := f.Read(t.Context(), path); !errors.Is(err, ErrNotRegular) {
			t.Errorf("%s: got %v, want %v", path, err, ErrNotRegular)
		}
	}
	if got := walked(t, f, "."); len(got) != 0 {
		t.Errorf("visited %q, want nothing", got)
	}
	root, err := f.open()
	must(t, err)
	defer root.Close()
	if file, _, err := openFile(root, "fifo"); err == nil {
		file.Close()
		t.Error("a FIFO is opened")
	}
}
