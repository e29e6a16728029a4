package e2e

import (
	"flag"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience bounds every wait for something that should come at once.
const patience = time.Minute

func TestMain(m *testing.M) {
	flag.Parse()
	// Most tests wait for processes, so more run at a time than there are cores.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		programs.remove()
		os.Exit(code)
	}))
}
