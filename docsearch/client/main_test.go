package client_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// This test's own program is a fake daemon or a client if its first argument says so.
const (
	daemonArg = "fake-daemon"
	clientArg = "fake-client"
)

// raceExit has a process under the race detector end without a pause of a second.
const raceExit = "GORACE=atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case daemonArg:
			runDaemon(os.Args[2], os.Args[3])
			return
		case clientArg:
			runClient(os.Args[2], os.Args[3])
			return
		}
	}
	goleak.VerifyTestMain(m)
}
