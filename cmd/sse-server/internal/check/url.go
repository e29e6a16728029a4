package check

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/diagnosis"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/plaintext"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
)

// URL prints what a client meets at the URL, step by step, and returns the exit code. A signal ends it
// at once.
func (k *Check) URL(c *config.Config, signals <-chan os.Signal) int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { // ends with ctx
		select {
		case <-signals:
			stop()
		case <-ctx.Done():
		}
	}()
	server := c.Remote()
	command, _ := server.LoginNeeded()
	if named, ok := server.Credentials.(interface{ KeepName() }); ok && command != "" {
		named.KeepName() // the command may have a hash in the place of a query
	}
	header, problem := loginAt(ctx, server)
	var steps []diagnosis.Step
	var shown func()
	works := diagnosis.Run(ctx, diagnosis.Options{
		URL: server.Address, Header: server.Header, Login: header, LoginCommand: command, LoginProblem: problem,
		Origin: c.Check.Origin, Connector: c.Connector(), Wait: time.Duration(c.Check.Wait), Patience: k.Silence,
		Begin: func(name string, limit time.Duration) { shown = k.showWaiting(name, limit) },
	}, func(s diagnosis.Step) {
		shown()
		steps = append(steps, s)
		if !c.Check.JSON {
			k.tellStep(s)
		}
	})
	last := steps[len(steps)-1]
	switch {
	case c.Check.JSON:
		report := map[string]any{"url": server.Place(), "works": works, "steps": steps}
		data, _ := json.MarshalIndent(report, "", "  ") // never fails
		fmt.Fprintf(k.Stdout, "%s\n", data)
	case works:
		fmt.Fprintf(k.Stdout, "A client can use %s.\n", server.Place())
	case last.Result == diagnosis.Stopped:
		fmt.Fprintf(k.Stdout, "Interrupted at %s: what comes after it was not tried.\n", last.Name)
	default:
		first := steps[slices.IndexFunc(steps, func(s diagnosis.Step) bool { return s.Result == diagnosis.Failed })]
		if first != last { // else its remedy is the last line
			fmt.Fprintf(k.Stdout, "Not all of %s works: begin with the first ✗, %s.\n", server.Place(), first.Name)
		}
	}
	if works {
		return exit.OK
	}
	return exit.Failure
}

// loginAt returns the Authorization of this user's login at a server; empty if there is none. The server says
// what is wrong with it. problem says that the issuer cannot renew the login now.
func loginAt(ctx context.Context, server remote.URL) (header, problem string) {
	login, ok := server.Credentials.(interface {
		LoggedIn() bool
		Hindered() (text string, is bool)
	})
	if !ok || !login.LoggedIn() {
		return "", ""
	}
	header, _ = server.Credentials.Authorizer(nil, slog.New(slog.DiscardHandler))(ctx, "")
	problem, _ = login.Hindered()
	return header, problem
}

// marks are those of the results of a step.
var marks = map[diagnosis.Result]string{
	diagnosis.OK: "✓", diagnosis.Failed: "✗", diagnosis.Missing: "–", diagnosis.Untried: "–", diagnosis.Stopped: "!",
}

// tellStep prints one step.
func (k *Check) tellStep(s diagnosis.Step) {
	detail, took := s.Detail, ""
	if s.Result == diagnosis.Missing || s.Result == diagnosis.Untried {
		detail = string(s.Result) + ": " + detail
	}
	if s.Milliseconds > 0 {
		took = fmt.Sprintf("%.1f ms", s.Milliseconds)
	}
	fmt.Fprintf(k.Stdout, "%s %-35s %11s  %s\n", marks[s.Result], plaintext.Visible(s.Name), took,
		plaintext.Visible(detail))
	if s.Remedy != "" {
		fmt.Fprintf(k.Stdout, "  what to do: %s\n", plaintext.Visible(s.Remedy))
	}
}
