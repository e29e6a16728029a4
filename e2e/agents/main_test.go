//go:build agents

package agents

import (
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
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := removeProgram(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}))
}
