package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/mcp-sse/mcp-sse/tools/internal/load"
)

// viewKinds are the kinds of inprocess that are compared over each server. The first is the gateway over it; the others
// are compared with that.
var viewKinds = map[string][]string{
	"raw":   {"raw", "raw-selected", "raw-view-1", "raw-view-3"},
	"child": {"child", "child-selected", "child-view-1", "child-view-3"},
}

// viewShapes are the shapes in which views are measured.
var viewShapes = []shape{{1, 1}, {64, 1}}

// compareViews measures calls through selections and views, over the servers that --over names.
func (a *arguments) compareViews(ctx context.Context, w io.Writer) error {
	for _, server := range []string{"raw", "child"} {
		if !slices.Contains(a.Over, server) {
			continue
		}
		if err := a.compareViewsOver(ctx, w, server); err != nil {
			return err
		}
	}
	return nil
}

func (a *arguments) compareViewsOver(ctx context.Context, w io.Writer, server string) error {
	servers, err := a.startInProcess(viewKinds[server]...)
	if err != nil {
		return errors.Join(err, stopAll(servers))
	}
	fmt.Fprintf(w, "\nover %s: through a selection or a view : through the gateway alone, "+
		"%d rounds of %v, alternated; medians\n",
		server, a.Rounds, a.Round)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "\t\tbytes\tcalls/s\t\tratio\tCPU/call\t\tratio\tallocs/call\t\tbytes/call\t\tratio of each round")
	for _, s := range viewShapes {
		for _, payload := range a.Payload {
			all, err := a.callCosts(ctx, servers, s, payload)
			if err != nil {
				return errors.Join(fmt.Errorf("%s, %v, %d bytes: %w", server, s, payload, err), stopAll(servers))
			}
			for i := 1; i < len(servers); i++ {
				fmt.Fprintf(t, "%s\t%v\t%d\t%s\n", servers[i].name, s, payload, costRow(all[i], all[0], 1))
			}
		}
	}
	return errors.Join(t.Flush(), stopAll(servers))
}

// callCosts loads the servers by turns with calls.
func (a *arguments) callCosts(ctx context.Context, servers []*process, s shape, payload int) ([][]cost, error) {
	return a.costs(ctx, servers, func(ctx context.Context, p *process, calls int, sample func()) (*load.Report, error) {
		return load.Run(ctx, p.endpoint(a.Transport), load.Options{
			Transport: load.Transport(a.Transport), Clients: s.clients, InFlight: s.inFlight,
			Calls: calls, Payload: payload, FreeRunning: true,
			Timeout: a.Timeout, Settle: 50 * time.Millisecond, Sample: sample,
		})
	})
}
