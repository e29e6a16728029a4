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
	// Few run at a time all the same: see turns.
	if err := flag.Set("test.parallel", "16"); err != nil {
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
