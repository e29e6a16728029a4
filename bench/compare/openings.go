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

	"github.com/mcp-sse/mcp-sse/internal/load"
)

// poolGauge is the metric with the number of sessions that are ready, and
// pollEvery how often it is asked for.
const (
	poolGauge = "mcp_sse_pool_idle"
	pollEvery = 50 * time.Millisecond
)

// opener is a server whose streams are opened one after another.
type opener struct {
	*process
	ready []time.Duration
}

// compareOpenings opens a stream of each server by turns, when all that was
// started for the one before has come to rest. The first round is not counted.
func (a *arguments) compareOpenings(ctx context.Context, w io.Writer) error {
	if a.Server == "" {
		return errors.New("--mode connect needs --server")
	}
	openers, err := a.startOpeners()
	var servers []*process
	for _, o := range openers {
		servers = append(servers, o.process)
	}
	if err == nil {
		err = a.openRounds(ctx, openers)
	}
	if err = errors.Join(err, stopAll(servers)); err != nil {
		return err
	}
	fmt.Fprintf(w, "from GET to the mcp-response event, %d streams of each, alternated\n\n", a.Rounds)
	return printOpenings(w, openers)
}

// startOpeners starts what is compared, and returns what it could start also when
// it fails. The second has the pool.
func (a *arguments) startOpeners() (openers []*opener, err error) {
	// Without the delay that is there for clients which lose what shares a
	// packet with the endpoint event.
	plain := a.gateway("--announce-delay", "0")
	child := []string{"--", a.Node, a.Server}
	for _, s := range []struct {
		name    string
		command []string
	}{
		{"in process", plain},
		{fmt.Sprintf("Node, --warm %d", a.Warm), join(plain, []string{"--warm", strconv.Itoa(a.Warm)}, child)},
		{"Node, cold", join(plain, child)},
	} {
		p, err := start(s.name, s.command, a.Timeout)
		if err != nil {
			return openers, err
		}
		openers = append(openers, &opener{process: p})
	}
	return openers, nil
}

func (a *arguments) openRounds(ctx context.Context, openers []*opener) error {
	for round := range a.Rounds + 1 {
		for _, o := range openers {
			if err := a.awaitPool(ctx, openers[1].url); err != nil {
				return err
			}
			opening, err := load.Connect(ctx, o.url, load.Options{Timeout: a.Timeout})
			if err != nil {
				return fmt.Errorf("no result: round %d of %s: %w", round, o.name, err)
			}
			if round > 0 {
				o.ready = append(o.ready, opening.Ready)
			}
		}
	}
	return nil
}

func join(parts ...[]string) (all []string) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// awaitPool returns when the pool of the gateway is full.
func (a *arguments) awaitPool(ctx context.Context, stream string) error {
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		idle, err := gauge(ctx, strings.TrimSuffix(stream, "/sse")+"/metrics", poolGauge)
		if err == nil && idle == float64(a.Warm) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the pool of %d sessions is not full in %v: %v are ready, %w", a.Warm, a.Timeout, idle, errors.Join(err, ctx.Err()))
		case <-tick.C:
		}
	}
}

// gauge reads one metric without labels.
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
	fmt.Fprintln(t, "\tp50\tp99\tp50 over in process")
	for _, o := range openers {
		p50 := load.Percentile(o.ready, 0.5)
		fmt.Fprintf(t, "%s\t%v\t%v\t%v\n", o.name, micros(p50), micros(load.Percentile(o.ready, 0.99)),
			micros(p50-load.Percentile(openers[0].ready, 0.5)))
	}
	return t.Flush()
}
