package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mcp-sse/mcp-sse/tools/internal/load"
)

// The metrics that are read, and pollEvery how often the pool is asked for.
const (
	poolGauge     = "mcp_sse_pool_idle"
	startsCounter = `mcp_sse_child_starts_total{result="ok"}`
	pollEvery     = 50 * time.Millisecond
)

// caller is what a client does when its stream is open.
type caller struct {
	name         string
	capabilities string   // of its own initialize; empty: it sends none
	options      []string // of the gateway
}

// callers are the clients that are measured. For the silent one the gateway waits 100 ms
// before it sends its own initialize.
func callers() []caller {
	return []caller{
		{"silent", "", nil},
		{"own initialize", "{}", nil},
		{"own initialize with roots, sampling, elicitation",
			`{"roots":{"listChanged":true},"sampling":{},"elicitation":{}}`, nil},
	}
}

// opener is a server whose streams are opened one after another.
type opener struct {
	*process
	warm, child   bool
	ready, listed []time.Duration
	starts        float64 // of children, for each stream
}

// compareOpenings opens a stream of each server by turns, when all that was
// started for the one before has come to rest; first as one client, then as the
// next. The first round is not counted.
func (a *arguments) compareOpenings(ctx context.Context, w io.Writer) error {
	if a.Server == "" {
		return errors.New("--mode connect needs --server")
	}
	var text strings.Builder
	fmt.Fprintf(&text,
		"from GET to the result of initialize, and to the list of tools, %d streams of each, alternated\n", a.Rounds)
	for _, c := range callers() {
		openers, err := a.measure(ctx, c)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "\n%s\n", c.name)
		if err := printOpenings(&text, openers); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// measure starts the servers, opens the streams of one client, and stops them.
func (a *arguments) measure(ctx context.Context, c caller) ([]*opener, error) {
	openers, err := a.startOpeners(c)
	var servers []*process
	for _, o := range openers {
		servers = append(servers, o.process)
	}
	if err == nil {
		err = a.openRounds(ctx, c, openers)
	}
	return openers, errors.Join(err, stopAll(servers))
}

// startOpeners starts what is compared, and returns what it could start also when
// it fails.
func (a *arguments) startOpeners(c caller) (openers []*opener, err error) {
	plain := a.gateway(c.options...)
	child := []string{"--", a.Node, a.Server}
	for _, s := range []struct {
		opener
		name    string
		command []string
	}{
		{opener{}, "in process", plain},
		{opener{warm: true, child: true}, fmt.Sprintf("Node, --warm %d", a.Warm),
			join(plain, []string{"--no-remember", "--warm", strconv.Itoa(a.Warm)}, child)},
		{opener{child: true}, "Node, --warm 0", join(plain, []string{"--no-remember", "--warm", "0"}, child)},
		{opener{child: true}, "Node, remembered", join(plain, []string{"--warm", "0"}, child)},
	} {
		p, err := start(s.name, s.command, a.Timeout)
		if err != nil {
			return openers, err
		}
		o := s.opener
		o.process = p
		openers = append(openers, &o)
	}
	return openers, nil
}

func (a *arguments) openRounds(ctx context.Context, c caller, openers []*opener) error {
	for round := range a.Rounds + 1 {
		for _, o := range openers {
			if err := a.awaitPools(ctx, openers); err != nil {
				return err
			}
			opening, err := load.Connect(ctx, o.url, c.capabilities, load.Options{Timeout: a.Timeout})
			if err != nil {
				return fmt.Errorf("no result: round %d of %s, %s: %w", round, o.name, c.name, err)
			}
			if round > 0 {
				o.ready, o.listed = append(o.ready, opening.Ready), append(o.listed, opening.Listed)
			}
		}
	}
	if err := a.awaitPools(ctx, openers); err != nil {
		return err
	}
	return a.countStarts(ctx, openers)
}

// countStarts reads how many children were started for each stream. Children that
// wait in a pool were started for none.
func (a *arguments) countStarts(ctx context.Context, openers []*opener) error {
	for _, o := range openers {
		if !o.child {
			continue
		}
		n, err := gauge(ctx, o.metrics(), startsCounter)
		if err != nil {
			return err
		}
		if o.warm {
			n -= float64(a.Warm)
		}
		o.starts = n / float64(a.Rounds+1)
	}
	return nil
}

func (o *opener) metrics() string { return strings.TrimSuffix(o.url, "/sse") + "/metrics" }

func join(parts ...[]string) (all []string) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// awaitPools returns when the pools of the gateways are full.
func (a *arguments) awaitPools(ctx context.Context, openers []*opener) error {
	for _, o := range openers {
		if o.warm {
			if err := a.awaitPool(ctx, o.metrics()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *arguments) awaitPool(ctx context.Context, metrics string) error {
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		idle, err := gauge(ctx, metrics, poolGauge)
		if err == nil && idle == float64(a.Warm) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the pool of %d sessions is not full in %v: %v are ready, %w", a.Warm, a.Timeout, idle,
				errors.Join(err, ctx.Err()))
		case <-tick.C:
		}
	}
}

// gauge reads one metric, named with its labels.
func gauge(ctx context.Context, url, name string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("%s has no metric %s", url, name)
}

func printOpenings(w io.Writer, openers []*opener) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "\tinitialize p50\tp99\ttools/list p50\tp99\tstarts of each")
	for _, o := range openers {
		p50 := load.Percentile(o.ready, 0.5)
		starts := "-"
		if o.child {
			starts = fmt.Sprintf("%.2f", o.starts)
		}
		fmt.Fprintf(t, "%s\t%v\t%v\t%v\t%v\t%s\n", o.name, micros(p50), micros(load.Percentile(o.ready, 0.99)),
			micros(load.Percentile(o.listed, 0.5)), micros(load.Percentile(o.listed, 0.99)), starts)
	}
	return t.Flush()
}
