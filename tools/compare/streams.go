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

// streamKinds are the kinds of inprocess whose streams are compared; the last
// one is what the others are compared with.
var streamKinds = []string{"raw", "mcpgo-sse", "bare"}

// compareIdle measures the memory of idle streams, in a process of its own for each
// kind.
func (a *arguments) compareIdle(ctx context.Context, w io.Writer) error {
	fmt.Fprintf(w, "\nmemory of a server for each of %d idle streams\n", a.Streams)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "\tresident KiB\theap+stacks KiB\tgoroutines\tleft goroutines")
	for _, kind := range streamKinds {
		if err := a.holdStreams(ctx, t, kind); err != nil {
			return fmt.Errorf("no result: %s: %w", kind, err)
		}
	}
	return t.Flush()
}

// holdStreams opens the streams of one kind, and closes them. One stream is opened and
// closed before, so that what is made once does not count.
func (a *arguments) holdStreams(ctx context.Context, w io.Writer, kind string) (err error) {
	servers, err := a.startInProcess(kind)
	defer func() { err = errors.Join(err, stopAll(servers)) }()
	if err != nil {
		return err
	}
	p := servers[0]
	if _, err := a.hold(ctx, p, 1); err != nil {
		return err
	}
	before, err := a.atRest(ctx, p)
	if err != nil {
		return err
	}
	during, err := a.hold(ctx, p, a.Streams)
	if err != nil {
		return err
	}
	after, err := a.atRest(ctx, p)
	if err != nil {
		return err
	}
	each := func(bytes int64) float64 { return float64(bytes) / 1024 / float64(a.Streams) }
	fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.1f\t%d\n", kind, each(during.Resident-before.Resident),
		each(during.Heap+during.Stacks-before.Heap-before.Stacks),
		float64(during.Goroutines-before.Goroutines)/float64(a.Streams), after.Goroutines-before.Goroutines)
	return nil
}

// hold opens streams, reads the stats when they are at rest, and closes them.
func (a *arguments) hold(ctx context.Context, p *process, streams int) (stats, error) {
	release, err := load.Hold(ctx, p.url, load.Options{Clients: streams, Timeout: a.Timeout})
	if err != nil {
		return stats{}, err
	}
	s, err := a.atRest(ctx, p)
	return s, errors.Join(err, release())
}

// atRest returns the stats after a garbage collection, when the server has had time to
// come to rest.
func (a *arguments) atRest(ctx context.Context, p *process) (stats, error) {
	select {
	case <-time.After(a.Rest):
	case <-ctx.Done():
	}
	return p.stats(ctx, "?gc")
}

// stormClients are the streams that are open at a time in a storm, and stormCalls the
// calls of each.
const (
	stormClients = 32
	stormCalls   = 4
)

// compareStorm opens, uses and closes streams, by turns.
func (a *arguments) compareStorm(ctx context.Context, w io.Writer) error {
	servers, err := a.startInProcess(streamKinds...)
	if err != nil {
		return errors.Join(err, stopAll(servers))
	}
	var before []stats
	all, err := a.costs(ctx, servers,
		func(ctx context.Context, p *process, calls int, sample func()) (*load.Report, error) {
			s, err := p.stats(ctx, "?gc")
			if err != nil {
				return nil, err
			}
			before = append(before, s)
			return load.Storm(ctx, p.url, load.Options{
				Clients: stormClients, InFlight: stormCalls, Calls: calls, Timeout: a.Timeout, Sample: sample,
			})
		})
	if err != nil {
		return errors.Join(err, stopAll(servers))
	}
	fmt.Fprintf(w, "\na storm: %d clients open a stream, initialize, make %d calls and close it; %d rounds of %v, "+
		"alternated; medians\n",
		stormClients, stormCalls, a.Rounds, a.Round)
	last := len(servers) - 1
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "\tstreams/s\tbare\tratio\tCPU/stream\tbare\tratio\tallocs/stream\tbare\t"+
		"bytes/stream\tbare\tratio of each round")
	for i, p := range servers[:last] {
		fmt.Fprintf(t, "%s\t%s\n", p.name, costRow(all[i], all[last], stormCalls))
	}
	err = errors.Join(t.Flush(), a.reportLeft(ctx, w, servers, before))
	return errors.Join(err, stopAll(servers))
}

// reportLeft says what each server holds more than before its first counted round.
func (a *arguments) reportLeft(ctx context.Context, w io.Writer, servers []*process, before []stats) error {
	for i, p := range servers {
		after, err := a.atRest(ctx, p)
		if err != nil {
			return err
		}
		b := before[len(servers)+i] // the round before is not counted
		fmt.Fprintf(w, "%s is left with %d goroutines and %d KiB of heap more than before\n", p.name,
			after.Goroutines-b.Goroutines, (after.Heap-b.Heap)>>10)
	}
	return nil
}
