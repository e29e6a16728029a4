package extract

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// scratch is a directory for the programs of these tests, and for what they keep.
var scratch string

// TestMain makes this program its own worker.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		if worker := workers[os.Args[1]]; worker != nil {
			if err := worker(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	var err error
	if scratch, err = os.MkdirTemp("", "docsearch-extract-"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(scratch) // it is in the temporary directory
		os.Exit(code)
	}))
}

// workers are what the program does when it is started as a worker of that name.
var workers = map[string]func() error{
	"worker":  func() error { return Worker(os.Stdin, os.Stdout) },
	"silent":  func() error { return nil },
	"fails":   func() error { return fmt.Errorf("some complaint\nand more") },
	"babbles": func() error { return babble() },
	"lies":    func() error { fmt.Println(`{"document":{"sections":[{"offset":7}]}}` + "\nx"); return nil },
	"wanders": func() error {
		fmt.Println(`{"document":{"sections":[{"offset":2},{"offset":1}]}}` + "\nxyz")
		return nil
	},
	"overflows": func() error { debug.SetMaxStack(1 << 20); return fmt.Errorf("%d", overflow(0)) },
	"stays":     stay,
	"parent":    waitAsParent,
	"ready":     sayReady,
	"deafens":   func() error { os.Stdin.Close(); return Worker(bytes.NewReader(nil), os.Stdout) },
}

func babble() error {
	for {
		if _, err := os.Stdout.Write(make([]byte, 1<<20)); err != nil {
			return nil
		}
	}
}

// overflow calls itself until the stack ends.
func overflow(n int) int {
	if n < 0 {
		return 0
	}
	return overflow(n+1) + 1
}

// stay starts a child of its own that holds the pipes open, and never ends.
func stay() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	_, err = os.StartProcess(self, []string{self, "sleeps"}, &os.ProcAttr{Files: []*os.File{nil, os.Stdout, os.Stderr}})
	if err != nil {
		return err
	}
	time.Sleep(time.Hour)
	return nil
}

func init() { workers["sleeps"] = func() error { time.Sleep(time.Hour); return nil } }

// plainProgram builds these tests as users build programs, once: with the race detector,
// workers take much memory and time.
var plainProgram = sync.OnceValues(func() (string, error) {
	program := filepath.Join(scratch, "extract.test")
	out, err := exec.Command("go", "test", "-c", "-o", program, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go test -c: %w\n%s", err, out)
	}
	return program, nil
})

// cacheDir is where all tests of all runs keep the compiled reader of PDFs, as Go keeps
// its own: to compile it takes seconds.
var cacheDir = sync.OnceValue(func() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return filepath.Join(scratch, "cache")
	}
	return filepath.Join(dir, "docsearch-test")
})

// withWorker returns an extractor whose worker is the one of that name.
func withWorker(t testing.TB, name string, o Options) *Extractor {
	t.Helper()
	program, err := plainProgram()
	if err != nil {
		t.Fatal(err)
	}
	o.Worker = []string{program, name}
	if o.CacheDir == "" {
		o.CacheDir = cacheDir()
	}
	return New(o)
}

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
