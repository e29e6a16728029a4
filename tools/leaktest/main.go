// Command leaktest tells whether an MCP server over HTTP mixes up its clients.
// It needs nothing but the URL. See README.md.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/mcp-sse/mcp-sse/tools/internal/load"
)

// Exit codes.
const (
	exitClean = iota
	exitFaulty
	exitUnproven // the test could not run, or not to its end
)

// arguments are the command line. The names and defaults are those of
// load.Options.
type arguments struct {
	URL       string `arg:"" help:"Such as http://127.0.0.1:8080/sse."`
	Transport string `default:"sse" enum:"sse,streamable,stateless" help:"HTTP+SSE, Streamable HTTP with sessions, or without them (MCP 2026-07-28): ${enum}."`

	Clients     int           `default:"64" help:"Clients, each with a stream."`
	Calls       int           `default:"100000" help:"Calls over all clients."`
	InFlight    int           `default:"4" help:"Calls that a client has in flight."`
	FreeRunning bool          `help:"Let no client wait for the others. Faster, but their ids drift apart."`
	Rate        float64       `placeholder:"N" help:"Most calls per second over all clients. 0: as many as there can be."`
	Timeout     time.Duration `default:"30s" help:"For opening a stream, each POST and each answer."`

	Header       []string `short:"H" sep:"none" placeholder:"NAME:VALUE" help:"Sent with each request. May be repeated."`
	Token        []string `sep:"none" placeholder:"TOKEN" help:"Bearer token. Several: clients use them in turn, so that they have different principals."`
	Capabilities string   `default:"{}" placeholder:"JSON" help:"What the clients declare: '{\"elicitation\":{}}' for a tool that asks."`
	NoInitialize bool     `help:"Leave the handshake to the server, for gateways that initialize by themselves."`

	Tool             string `placeholder:"NAME" help:"Tool that returns its argument. Default: echo."`
	Argument         string `placeholder:"NAME" help:"Its argument for the secret. Default: its only string argument."`
	ProgressTool     string `placeholder:"NAME" help:"Tool that reports progress, called every other time."`
	ProgressArgument string `placeholder:"NAME" help:"Its argument for the secret, if it returns it and reports it as the message of its progress."`

	JSON bool `name:"json" help:"Print the report as JSON."`
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
	parser, err := kong.New(&a, kong.Name("leaktest"), kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { done = code }),
		kong.Description("Tells whether an MCP server over HTTP mixes up its clients: many of them use the same ids "+
			"and progress tokens at the same time, and each call has a secret. Exit code 0: nothing crossed, "+
			"and nothing was lost; 1: something was; 2: the test could not run, or not to its end."))
	if err == nil {
		_, err = parser.Parse(args)
	}
	if done >= 0 {
		return done
	}
	header, headerErr := parseHeader(a.Header)
	err = errors.Join(err, headerErr)
	if err == nil {
		var report *load.Report
		report, err = load.Run(ctx, a.URL, a.options(header))
		if err == nil {
			return show(stdout, report, a.JSON)
		}
	}
	fmt.Fprintln(stderr, "leaktest:", err)
	return exitUnproven
}

func (a *arguments) options(header http.Header) load.Options {
	return load.Options{
		Transport: load.Transport(a.Transport), Tokens: a.Token, Capabilities: a.Capabilities,
		Clients: a.Clients, Calls: a.Calls, InFlight: a.InFlight, FreeRunning: a.FreeRunning,
		Rate: a.Rate, Timeout: a.Timeout, Header: header, NoInitialize: a.NoInitialize,
		Tool: a.Tool, Argument: a.Argument,
		ProgressTool: a.ProgressTool, ProgressArgument: a.ProgressArgument,
	}
}

// parseHeader reads NAME:VALUE pairs.
func parseHeader(pairs []string) (http.Header, error) {
	h := http.Header{}
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, ":")
		name = strings.TrimSpace(name)
		if !ok || name == "" || strings.ContainsAny(pair, "\r\n") {
			return nil, errors.New("--header takes NAME:VALUE") // the value may be a password: it is not shown
		}
		h.Add(name, strings.TrimSpace(value))
	}
	return h, nil
}

// show prints a report and returns the exit code.
func show(w io.Writer, r *load.Report, asJSON bool) int {
	verdict := verdicts[r.Verdict()]
	if asJSON {
		out := json.NewEncoder(w)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		err := out.Encode(struct {
			Verdict string `json:"verdict"`
			*load.Report
		}{verdict.name, r})
		if err != nil {
			return exitUnproven
		}
		return verdict.code
	}
	if _, err := io.WriteString(w, text(r)); err != nil {
		return exitUnproven
	}
	return verdict.code
}
