package e2e

import (
	"flag"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience bounds every wait for something that should come at once. It is long
// because two cores may have much else to do; no test waits it out when all is well.
const patience = 5 * time.Minute

// TestMain runs the tests, or, as the child of a gateway under test, the fake or the
// chaotic MCP server.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == fakeServerArg {
		os.Exit(fakeServer(os.Args[2:], os.Stdin, os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == chaosServerArg {
		os.Exit(chaosServer(os.Args[2:], os.Stdin, os.Stdout))
	}
	flag.Parse()
	cacheCompiled()
	keepState()
	// Most tests wait for a process or a timer, so more run at a time than there
	// are cores.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		programs.remove()
		_ = os.RemoveAll(os.Getenv("XDG_STATE_HOME")) // of keepState
		os.Exit(code)
	}))
}

// keepState gives the gateways of all tests one state directory: they share a key of ids.
func keepState() {
	dir, err := os.MkdirTemp("", "sse-server-state-")
	if err == nil {
		err = os.Setenv("XDG_STATE_HOME", dir)
	}
	if err != nil {
		panic(err)
	}
}
