package acceptance

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// TestMain builds the programs and runs the tests. As the child of a gateway under test, it is
// the scripted MCP server.
func TestMain(m *testing.M) {
	if script := os.Getenv(scriptVariable); script != "" {
		os.Exit(serveScript(script, os.Stdin, os.Stdout))
	}
	flag.Parse()
	must(flag.Set("test.parallel", "8")) // most tests wait for a process
	dir, err := os.MkdirTemp("", "acceptance-")
	must(err)
	state, err := ssetest.MakePrivateDir()
	must(err)
	must(os.Setenv("XDG_STATE_HOME", state))
	must(os.Setenv("GORACE", "atexit_sleep_ms=0")) // a process ends at once
	must(build(dir))
	sseServer, docsearch = filepath.Join(dir, "sse-server"), filepath.Join(dir, "docsearch")
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir) // it is in the temporary directory
		_ = os.RemoveAll(state)
		os.Exit(code)
	}))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// sseServer and docsearch are the paths of the programs.
var sseServer, docsearch string

// build builds the programs, with the flags of the end-to-end tests of their modules, so that
// nothing is compiled twice.
func build(dir string) error {
	var all sync.WaitGroup
	var gateway, search error
	all.Go(func() { gateway = goBuild(dir, "../..", "-race", "./cmd/sse-server") })
	all.Go(func() { search = goBuild(dir, "../../docsearch", "-race=false", "./cmd/docsearch") })
	all.Wait()
	return errors.Join(gateway, search)
}

func goBuild(dir, module, race, program string) error {
	out, err := exec.Command("go", "build", "-C", module, race, "-ldflags=-s -w", "-o", dir, program).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build %s: %w\n%s", program, err, out)
	}
	return nil
}

// await waits until the condition holds. It waits long, because other work may keep the machine
// busy; no test that passes waits it out.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(ssetest.Patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not in %v: %s", ssetest.Patience, what)
		}
	}
}

// isClosed reports whether a channel that is only closed is.
func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
