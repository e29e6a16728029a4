//go:build unix

package stdio_test

import (
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/internal/upstream/stdio"
)

// TestMain runs the test binary as the child process that tests of Command
// start, when the environment says so.
func TestMain(m *testing.M) {
	stdio.SetExitGrace(time.Minute) // a busy machine takes its time to end a process
	if name := os.Getenv(behaviourEnv); name != "" {
		os.Exit(behave(name))
	}
	goleak.VerifyTestMain(m)
}
