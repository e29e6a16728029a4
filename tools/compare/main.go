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
	Mode   string `enum:"call,connect,pairs,idle,storm,replicas,views,lists,peers,logins,windows" default:"call" help:"call: calls per second, against a proxy made of mcp-go's client and server, or the npm package mcp-proxy. connect: from GET to the result of initialize, with servers and clients of three kinds. pairs: calls to a server in the same process, against its own handler. idle: memory of idle streams. storm: streams that are opened, used and closed. replicas: calls to the replica of their session, to others, and to a gateway without NATS. views: calls through selections and views, against the gateway alone. lists: the list of tools of a view of 50 servers with 40 tools each, from memory, while they boot. peers: what happens with sse-server and with programs of npm in four situations; no speeds. logins: what happens with sse-server and mcp-remote in front of a server that wants a login; no speeds. windows: time and memory of ten clients of such a server, with sse-server and mcp-remote."`
	Bin    string `default:"bin" placeholder:"DIR" help:"Where sse-server, echo, proxy, inprocess and nats-server are."`
	Rounds int    `default:"5" help:"Rounds of each."`

	Transport string `enum:"sse,streamable" default:"sse" help:"call, pairs, replicas, views: HTTP+SSE, or Streamable HTTP."`

	Clients  int    `default:"64" help:"call: streams."`
	InFlight int    `default:"1" help:"call: calls that a client has in flight."`
	Calls    int    `default:"50000" help:"call: calls in a round, over all clients."`
	Proxy    string `placeholder:"FILE" help:"call, with --transport streamable: script of the npm package mcp-proxy, with which the gateway is compared."`

	Server string `placeholder:"FILE" help:"connect: script of a Node MCP server on stdio."`
	Node   string `default:"node" help:"call, connect, peers, logins, windows: Node."`
	Warm   int    `default:"2" help:"connect: servers that are kept started."`

	Over    []string      `default:"mcp-go,go-sdk,raw,child" enum:"mcp-go,go-sdk,raw,child" help:"pairs, views: over which servers. A child is for views alone, mcp-go and go-sdk for pairs."`
	Payload []int         `default:"32,16384" help:"pairs, views: bytes of text in a call."`
	Round   time.Duration `default:"2s" help:"pairs, storm, replicas, views: how long a round takes about."`
	Streams int           `default:"10000" help:"idle: streams."`

	Peers string        `placeholder:"DIR" help:"peers, logins, windows: where node_modules has supergateway, mcp-proxy and mcp-remote."`
	Boot  time.Duration `default:"8s" help:"lists, peers: how long servers boot."`

	Rest time.Duration `default:"2s" help:"idle, storm, windows: how long streams that opened, or closed, or programs, get to come to rest."`

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
	parser, err := kong.New(&a, kong.Name("compare"), kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { done = code }),
		kong.Description("Measures sse-server against others, in alternated rounds. "+
			"A round with an error does not count."))
	if err == nil {
		_, err = parser.Parse(args)
	}
	switch {
	case done >= 0:
		return done
	case err != nil:
	case a.Rounds < 1:
		err = fmt.Errorf("--rounds must be at least 1")
	default:
		err = a.inState(func() error { return a.compare(ctx, stdout) })
	}
	if err != nil {
		fmt.Fprintln(stderr, "compare:", err)
		return 1
	}
	return 0
}

// inState runs do with a state directory for the gateways that is empty, and removes it.
func (a *arguments) inState(do func() error) error {
	state, err := os.MkdirTemp("", "compare-state-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(state)
	if err := os.Setenv("XDG_STATE_HOME", state); err != nil {
		return err
	}
	return do()
}

// compare runs the comparison that Mode names.
func (a *arguments) compare(ctx context.Context, w io.Writer) error {
	switch a.Mode {
	case "connect":
		return a.compareOpenings(ctx, w)
	case "pairs":
		return a.comparePairs(ctx, w)
	case "idle":
		return a.compareIdle(ctx, w)
	case "storm":
		return a.compareStorm(ctx, w)
	case "views":
		return a.compareViews(ctx, w)
	case "lists":
		return a.compareLists(ctx, w)
	case "replicas":
		return a.compareReplicas(ctx, w)
	case "peers":
		return a.comparePeers(ctx, w)
	case "logins":
		return a.compareLogins(ctx, w)
	case "windows":
		return a.compareWindows(ctx, w)
	}
	return a.compareCalls(ctx, w)
}

// binary is the path of a program that is measured.
func (a *arguments) binary(name string) string { return filepath.Join(a.Bin, name) }

// gateway is the command line of sse-server on a free port.
func (a *arguments) gateway(more ...string) []string {
	return append([]string{a.binary("sse-server"), "--addr", "127.0.0.1:0", "--log-level", "error", "--no-start-check",
		"--shutdown-timeout", "5s"}, more...)
}
