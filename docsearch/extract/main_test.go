package extract

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	"go.uber.org/goleak"
)

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
	goleak.VerifyTestMain(m)
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

// withWorker returns an extractor whose worker is the one of that name.
func withWorker(t testing.TB, name string, o Options) *Extractor {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The race detector waits for a second at the end of a program.
	o.Worker = []string{"env", "GORACE=atexit_sleep_ms=0", self, name}
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
