package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/mcp-sse/mcp-sse/tools/internal/load"
)

// series is what the rounds of one server have given.
type series struct {
	name     string
	rates    []float64 // calls per second
	p50, p99 []time.Duration
	// cpu is that of the server and its child for a call, over all rounds.
	cpu time.Duration
}

// compareCalls loads the gateway and the proxy by turns, with one child process
// behind each. The first round of each is not counted.
func (a *arguments) compareCalls(ctx context.Context, w io.Writer) error {
	if a.Transport == streamable && a.Proxy == "" {
		return errors.New("--transport streamable needs --proxy")
	}
	servers, err := a.startServers()
	if err != nil {
		return errors.Join(err, stopAll(servers))
	}
	all, err := a.callRounds(ctx, servers)
	err = errors.Join(err, stopAll(servers))
	if err != nil {
		return err
	}
	for i, p := range servers {
		all[i].cpu = p.cpu() / time.Duration(a.Calls*(a.Rounds+1))
	}
	fmt.Fprintf(w, "%d clients, %d call(s) in flight each, %d rounds of %d calls, alternated; medians\n\n", a.Clients,
		a.InFlight, a.Rounds, a.Calls)
	return printCalls(w, all)
}

// startServers starts what is compared, and returns what it could start also when
// it fails.
func (a *arguments) startServers() (servers []*process, err error) {
	p, err := start("sse-server --sessions shared", a.gateway("--sessions", "shared", "--", a.binary("echo")),
		a.Timeout)
	if err != nil {
		return nil, err
	}
	servers = append(servers, p)
	if a.Transport == streamable {
		p, err = startAt("npm mcp-proxy", func(port string) []string {
			return []string{a.Node, a.Proxy, "--host", "127.0.0.1", "--port", port, "--", a.binary("echo")}
		}, a.Timeout)
	} else {
		p, err = start("mcp-go client + SSEServer", []string{a.binary("proxy"), a.binary("echo")}, a.Timeout)
	}
	if err != nil {
		return servers, err
	}
	return append(servers, p), nil
}

func (a *arguments) callRounds(ctx context.Context, servers []*process) ([]series, error) {
	all := make([]series, len(servers))
	for round := range a.Rounds + 1 {
		for i, p := range servers {
			r, err := a.callRound(ctx, p)
			if err != nil {
				return nil, fmt.Errorf("no result: round %d of %s: %w", round, p.name, err)
			}
			all[i].name = p.name
			if round > 0 {
				all[i].rates = append(all[i].rates, r.PerSecond)
				all[i].p50, all[i].p99 = append(all[i].p50, r.P50), append(all[i].p99, r.P99)
			}
		}
	}
	return all, nil
}

// callRound loads one server. A round that is not clean is an error.
func (a *arguments) callRound(ctx context.Context, p *process) (*load.Report, error) {
	r, err := load.Run(ctx, p.endpoint(a.Transport), load.Options{
		Transport: load.Transport(a.Transport), Clients: a.Clients, Calls: a.Calls, InFlight: a.InFlight,
		FreeRunning: true,
		Timeout:     a.Timeout, Settle: 200 * time.Millisecond,
	})
	return r, checkClean(r, err)
}

// checkClean returns err, or an error if the report of a round is not clean.
func checkClean(r *load.Report, err error) error {
	if err == nil && r.Verdict() != load.Clean {
		err = fmt.Errorf("%d faults %q, %d calls refused %.300s", r.Faults.Total(), r.Evidence, r.Refused, r.Refusal)
	}
	return err
}

func printCalls(w io.Writer, all []series) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "\tcalls/s\tp50\tp99\tCPU/call\trounds")
	for _, s := range all {
		fmt.Fprintf(t, "%s\t%.0f\t%v\t%v\t%v\t%.0f\n", s.name, median(s.rates), micros(median(s.p50)),
			micros(median(s.p99)), micros(s.cpu), s.rates)
	}
	fmt.Fprintf(t, "ratio\t%.2f\t\t\t%.2f\n", median(all[0].rates)/median(all[1].rates),
		float64(all[0].cpu)/float64(all[1].cpu))
	return t.Flush()
}
