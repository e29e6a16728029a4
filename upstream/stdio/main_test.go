//go:build unix

package stdio_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the test binary as the child process that tests of Command
// start, when the environment says so.
func TestMain(m *testing.M) {
	if name := os.Getenv(behaviourEnv); name != "" {
		os.Exit(behave(name))
	}
	goleak.VerifyTestMain(m)
}
