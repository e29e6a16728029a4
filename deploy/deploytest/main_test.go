//go:build deploy

package deploytest

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// patience bounds every wait for something that should come soon.
const patience = 5 * time.Minute

// root is the root of the repository.
const root = "../.."

// binDir has what the tests build.
var binDir string

func TestMain(m *testing.M) {
	flag.Parse()
	// Most tests wait for programs, so more run at a time than there are cores.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	var err error
	if binDir, err = os.MkdirTemp("", "deploytest-"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(binDir) // it is in the temporary directory
		os.Exit(code)
	}))
}

var buildOnce = sync.OnceValues(func() (printed []byte, err error) {
	return exec.Command("go", "build", "-C", root, "-trimpath", "-buildvcs=auto", "-o", binDir, "./cmd/sse-server").CombinedOutput()
})

// sseServer returns the path of sse-server, which is built once, as make build does.
func sseServer(t *testing.T) string {
	t.Helper()
	if printed, err := buildOnce(); err != nil {
		t.Fatalf("build sse-server: %v\n%s", err, printed)
	}
	return filepath.Join(binDir, "sse-server")
}

// installed returns the path of a program of the system. It is an error that it is
// missing: a test that is skipped shows nothing.
func installed(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if path, err = exec.LookPath(filepath.Join("/usr/sbin", name)); err != nil {
			t.Fatalf("%s is not installed: make check-deploy says which package has it", name)
		}
	}
	return path
}

// readFile returns a file of the repository.
func readFile(t *testing.T, name string) string {
	t.Helper()
	return readAll(t, filepath.Join(root, name))
}

// readAll returns a file.
func readAll(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	ssetest.Must(t, err)
	return string(data)
}

// writeFile writes a file, which only its owner can read.
func writeFile(t *testing.T, path, content string) {
	t.Helper()
	ssetest.Must(t, os.WriteFile(path, []byte(content), 0o600))
}
