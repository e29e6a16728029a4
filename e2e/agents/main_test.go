//go:build agents

package agents

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests, or, as the child of a gateway, the MCP server.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == serverArg {
		serve(os.Args[2:], os.Stdin, os.Stdout)
		os.Exit(0)
	}
	flag.Parse()
	// Most tests wait for an agent that waits. More at a time would make the fast ones slow.
	if err := flag.Set("test.parallel", "3"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		err := removeProgram()
		if *page != "" {
			err = errors.Join(err, writeTable(*page))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}))
}
