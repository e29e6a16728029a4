// Command compare measures sse-server against others on the same machine, in
// alternated rounds. See ../README.md.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

// arguments are the command line.
type arguments struct {
	Mode   string `enum:"call,connect" default:"call" help:"call: calls per second, against a proxy made of mcp-go's client and server. connect: from GET to the result of initialize, with servers and clients of three kinds."`
	Bin    string `default:"bin" placeholder:"DIR" help:"Where sse-server, echo and proxy are."`
	Rounds int    `default:"5" help:"Rounds of each."`

	Clients  int `default:"64" help:"call: streams."`
	InFlight int `default:"1" help:"call: calls that a client has in flight."`
	Calls    int `default:"50000" help:"call: calls in a round, over all clients."`

	Server string `placeholder:"FILE" help:"connect: script of a Node MCP server on stdio."`
	Node   string `default:"node" help:"connect: Node."`
	Warm   int    `default:"2" help:"connect: servers that are kept started."`

	Timeout time.Duration `default:"30s" help:"For each start, connection and answer."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var a arguments
	done := -1 // the exit code that kong wants, as after --help
	parser, err := kong.New(&a, kong.Name("compare"), kong.Writers(stdout, stderr), kong.Exit(func(code int) { done = code }),
		kong.Description("Measures sse-server against others, in alternated rounds. A round with an error is no result."))
	if err == nil {
		_, err = parser.Parse(args)
	}
	switch {
	case done >= 0:
		return done
	case err != nil:
	case a.Rounds < 1:
		err = fmt.Errorf("--rounds must be at least 1")
	case a.Mode == "connect":
		err = a.compareOpenings(ctx, stdout)
	default:
		err = a.compareCalls(ctx, stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "compare:", err)
		return 1
	}
	return 0
}

// binary is the path of a program that is measured.
func (a *arguments) binary(name string) string { return filepath.Join(a.Bin, name) }

// gateway is the command line of sse-server on a free port.
func (a *arguments) gateway(more ...string) []string {
	return append([]string{a.binary("sse-server"), "--addr", "127.0.0.1:0", "--log-level", "error", "--shutdown-timeout", "5s"}, more...)
}
