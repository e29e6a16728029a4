//go:build unix

package stdio_test

import (
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/upstream/stdio"
)

// TestMain runs the test binary as the child process that tests of Command
// start, when the environment says so.
func TestMain(m *testing.M) {
	stdio.SetExitGrace(50 * time.Millisecond) // of children that go on without a pipe
	if name := os.Getenv(behaviourEnv); name != "" {
		os.Exit(behave(name))
	}
	goleak.VerifyTestMain(m)
}
