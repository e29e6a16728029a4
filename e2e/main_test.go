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
const patience = time.Minute

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
	// Most tests wait for a process or a timer, so more run at a time than there
	// are cores.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		programs.remove()
		os.Exit(code)
	}))
}
