package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mcp-sse/mcp-sse/tools/internal/load"
)

// A pair is the gateway over a server, and the handler that serves the same server
// without the gateway. Both are kinds of inprocess.
type pair struct{ server, ours, theirs, title string }

// pairs are all pairs, by the transport.
var pairs = map[string][]pair{"sse": ssePairs, streamable: streamablePairs}

// streamable is the transport Streamable HTTP.
const streamable = "streamable"

var streamablePairs = []pair{
	{"mcp-go", "mcpgo-gateway", "mcpgo-stream", "over mcp-go's server: gateway : mcp-go's StreamableHTTPServer"},
	{"go-sdk", "gosdk-gateway", "gosdk-stream", "over go-sdk's server: gateway : go-sdk's StreamableHTTPHandler"},
	{"raw", "raw", "bare", "over a raw function: gateway : a bare net/http echo of JSON"},
}

var ssePairs = []pair{
	{"mcp-go", "mcpgo", "mcpgo-sse", "over mcp-go's server: gateway : mcp-go's SSEServer"},
	{"go-sdk", "gosdk", "gosdk-sse", "over go-sdk's server: gateway : go-sdk's SSEHandler"},
	{"raw", "raw", "bare", "over a raw function: gateway : a bare net/http echo"},
}

// shape says how many clients there are, and how many calls each has in flight.
type shape struct{ clients, inFlight int }

func (s shape) String() string { return fmt.Sprintf("%dx%d", s.clients, s.inFlight) }

// shapes are the shapes that are measured.
var shapes = []shape{{1, 1}, {64, 1}, {1, 64}}

// trialCalls are the calls of the round that is not counted. It tells how many calls
// the others need.
const trialCalls = 2000

// cost is what one round has given of one server.
type cost struct {
	rate   float64       // calls, or streams, per second
	cpu    time.Duration // of the server, for each of them
	allocs float64       // of the server, for each of them
	bytes  float64       // that it has allocated, for each of them
}

// comparePairs measures calls over the servers that --over names.
func (a *arguments) comparePairs(ctx context.Context, w io.Writer) error {
	for _, p := range pairs[a.Transport] {
		if !slices.Contains(a.Over, p.server) {
			continue
		}
		if err := a.comparePair(ctx, w, p); err != nil {
			return err
		}
	}
	return nil
}

func (a *arguments) comparePair(ctx context.Context, w io.Writer, p pair) error {
	servers, err := a.startInProcess(p.ours, p.theirs)
	if err != nil {
		return errors.Join(err, stopAll(servers))
	}
	fmt.Fprintf(w, "\n%s, %d rounds of %v, alternated; medians\n", p.title, a.Rounds, a.Round)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "\tbytes\tcalls/s\t\tratio\tCPU/call\t\tratio\tallocs/call\t\tbytes/call\t\tratio of each round")
	for _, s := range shapes {
		for _, payload := range a.Payload {
			all, err := a.callCosts(ctx, servers, s, payload)
			if err != nil {
				return errors.Join(fmt.Errorf("%s, %v, %d bytes: %w", p.title, s, payload, err), stopAll(servers))
			}
			fmt.Fprintf(t, "%v\t%d\t%s\n", s, payload, costRow(all[0], all[1], 1))
		}
	}
	return errors.Join(t.Flush(), stopAll(servers))
}

// startInProcess starts inprocess once for each kind, and returns what it could
// start also when it fails.
func (a *arguments) startInProcess(kinds ...string) (servers []*process, err error) {
	for _, kind := range kinds {
		p, err := start(kind, []string{a.binary("inprocess"), "--kind", kind}, a.Timeout)
		if err != nil {
			return servers, err
		}
		servers = append(servers, p)
	}
	return servers, nil
}

// costs loads the servers by turns, after one round of each that is not counted. The
// rounds of all have the same number of calls, which takes the slowest about --round.
func (a *arguments) costs(ctx context.Context, servers []*process,
	run func(ctx context.Context, p *process, calls int, sample func()) (*load.Report, error)) ([][]cost, error) {
	all := make([][]cost, len(servers))
	calls := trialCalls
	for round := range a.Rounds + 1 {
		slowest := 0.0
		for i, p := range servers {
			c, err := measure(ctx, p, func(sample func()) (*load.Report, error) { return run(ctx, p, calls, sample) })
			if err != nil {
				return nil, fmt.Errorf("no result: round %d of %s: %w", round, p.name, err)
			}
			if slowest == 0 || c.rate < slowest {
				slowest = c.rate
			}
			if round > 0 {
				all[i] = append(all[i], c)
			}
		}
		if round == 0 {
			calls = max(trialCalls, int(slowest*a.Round.Seconds()))
		}
	}
	return all, nil
}

// measure runs one round, and reads what it has cost the server. A round that is not
// clean is an error.
func measure(ctx context.Context, p *process, run func(sample func()) (*load.Report, error)) (cost, error) {
	var samples []stats
	var fault error
	r, err := run(func() {
		s, err := p.stats(ctx, "")
		samples, fault = append(samples, s), errors.Join(fault, err)
	})
	err = checkClean(r, errors.Join(err, fault))
	if err != nil {
		return cost{}, err
	}
	before, after := samples[0], samples[1]
	return cost{
		rate:   r.PerSecond,
		cpu:    (after.CPU - before.CPU) / time.Duration(r.Answered),
		allocs: float64(after.Allocs-before.Allocs) / float64(r.Answered),
		bytes:  float64(after.Allocated-before.Allocated) / float64(r.Answered),
	}, nil
}

// costRow returns the columns that compare ours with theirs, each for a number of
// calls that count as one.
func costRow(ours, theirs []cost, calls int) string {
	mid := func(all []cost, of func(cost) float64) float64 {
		values := make([]float64, len(all))
		for i, c := range all {
			values[i] = of(c)
		}
		return median(values)
	}
	each := float64(calls)
	rate := func(c cost) float64 { return c.rate / each }
	cpu := func(c cost) float64 { return float64(c.cpu) * each }
	allocs := func(c cost) float64 { return c.allocs * each }
	size := func(c cost) float64 { return c.bytes * each }
	var ratios []string
	for i := range ours {
		ratios = append(ratios, fmt.Sprintf("%.2f", ours[i].rate/theirs[i].rate))
	}
	return fmt.Sprintf("%.0f\t%.0f\t%.2f\t%.1fµs\t%.1fµs\t%.2f\t%.0f\t%.0f\t%.0f\t%.0f\t%s",
		mid(ours, rate), mid(theirs, rate), mid(ours, rate)/mid(theirs, rate),
		mid(ours, cpu)/1e3, mid(theirs, cpu)/1e3, mid(ours, cpu)/mid(theirs, cpu),
		mid(ours, allocs), mid(theirs, allocs), mid(ours, size), mid(theirs, size), strings.Join(ratios, " "))
}

// stats is what inprocess tells of itself.
type stats struct {
	CPU        time.Duration `json:"cpu"`
	Resident   int64         `json:"resident"`
	Heap       int64         `json:"heap"`
	Stacks     int64         `json:"stacks"`
	Allocated  int64         `json:"allocated"`
	Allocs     int64         `json:"allocs"`
	Goroutines int           `json:"goroutines"`
}

// stats reads the stats of a inprocess; with the query "?gc", after a garbage
// collection.
func (p *process) stats(ctx context.Context, query string) (s stats, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(p.url, "/sse")+"/stats"+query, nil)
	if err != nil {
		return s, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return s, fmt.Errorf("stats of %s: %s", p.name, resp.Status)
	}
	err = json.NewDecoder(resp.Body).Decode(&s)
	return s, err
}
