package e2e

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// patience bounds every wait for something that should come at once. It is long
// because two cores may have much else to do; no test waits it out when all is well.
const patience = 5 * time.Minute

// TestMain runs the tests, or, as the child of a gateway under test, the fake or the
// chaotic MCP server, or, as the child of the conformance suite, its client.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == fakeServerArg {
		os.Exit(fakeServer(os.Args[2:], os.Stdin, os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == chaosServerArg {
		os.Exit(chaosServer(os.Args[2:], os.Stdin, os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == conformanceClientArg {
		if err := conformanceClient(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	setVariables()
	// Most tests wait for a process or a timer, so more run at a time than there
	// are cores.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		programs.remove()
		_ = os.RemoveAll(os.Getenv("XDG_STATE_HOME")) // of setVariables
		os.Exit(code)
	}))
}

// setVariables sets environment variables of all programs. The state directories
// of the gateways are in one, which is removed. Node.js keeps what it has compiled, a third of the time of
// a client that lists tools and ends. The race detector ends a process without waiting a second.
func setVariables() {
	state, err := ssetest.MakePrivateDir()
	compiled, bad := filepath.Abs(filepath.Join(clientsDir, "node_modules", ".compiled"))
	if err = errors.Join(err, bad, os.Setenv("XDG_STATE_HOME", state), os.Setenv("NODE_COMPILE_CACHE", compiled), os.Setenv("GORACE", "atexit_sleep_ms=0")); err != nil {
		panic(err)
	}
}
