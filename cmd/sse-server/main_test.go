package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/demo"
)

// childVariable makes this test's own program the demo server on stdin and stdout.
const childVariable = "SSE_SERVER_TEST_CHILD"

const secret = "s3cret-0123456789"

// asProgram is the value of childVariable that makes this test's own program sse-server. With a file after a colon it
// removes that file first, and is killed if it was there.
const asProgram = "sse-server"

func TestMain(m *testing.M) {
	mode, file, _ := strings.Cut(os.Getenv(childVariable), ":")
	switch mode {
	case "":
	case asProgram:
		if os.Remove(file) == nil {
			_ = clitest.Must(os.FindProcess(os.Getpid())).Kill()
			select {}
		}
		main()
	default:
		if err := demo.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// mustLoad loads a configuration that must be right.
func mustLoad(t *testing.T, env map[string]string, args ...string) *config.Config {
	t.Helper()
	c, err := config.Load(args, clitest.Environment(env), new(config.Config))
	if err != nil {
		t.Fatalf("load %q: %v", args, err)
	}
	return c
}
