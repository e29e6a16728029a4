package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mcp-sse/mcp-sse/tools/internal/load"
)

// forwardedCounter is the metric of requests that another replica has answered.
const forwardedCounter = `mcp_cluster_forwarded_total{result="ok"}`

// offset says how many gateways after that of its session a call goes to.
type offset func(call int64) int64

// The offsets. A third of the spread calls meets its session, as behind a balancer of three
// replicas that knows no sessions.
func local(int64) int64        { return 0 }
func foreign(call int64) int64 { return 1 + call%2 }
func spread(call int64) int64  { return call % 3 }

// replicaShapes are the shapes that are measured, and where the calls of the last way go.
var replicaShapes = []struct {
	shape
	away offset
}{{shape{1, 1}, foreign}, {shape{64, 1}, spread}}

// replicaValues are what is measured of each shape.
var replicaValues = []struct {
	name string
	of   func(*load.Report) float64
}{
	{"p50 in µs", func(r *load.Report) float64 { return float64(r.P50) / float64(time.Microsecond) }},
	{"calls/s", func(r *load.Report) float64 { return r.PerSecond }},
}

// way is a way to call three gateways. Sessions are opened at each in turn.
type way struct {
	name     string
	gateways []*process
	offset   offset
}

// host returns where a client sends a call.
func (w *way) host(client int, call int64) string {
	at := int64(client)
	if call > 0 {
		at += w.offset(call)
	}
	return host(w.gateways[at%int64(len(w.gateways))])
}

func host(p *process) string { return strings.TrimSuffix(strings.TrimPrefix(p.url, "http://"), "/sse") }

// compareReplicas calls three gateways without NATS, three replicas that hold the sessions,
// and replicas that do not, by turns. Each gateway has a shared child.
func (a *arguments) compareReplicas(ctx context.Context, w io.Writer) error {
	dir, err := os.MkdirTemp("", "compare")
	if err != nil {
		return err
	}
	all, err := a.startReplicas(dir)
	if err == nil {
		err = a.measureReplicas(ctx, w, all[1:4], all[4:])
	}
	slices.Reverse(all) // NATS ends last
	return errors.Join(err, stopAll(all), os.RemoveAll(dir))
}

// startReplicas starts NATS, three gateways without it and three replicas, and returns what
// it could start also when it fails.
func (a *arguments) startReplicas(dir string) (all []*process, err error) {
	key := filepath.Join(dir, "id-key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 32)), 0o600); err != nil {
		return nil, err
	}
	nats, err := startAt("nats-server", func(port string) []string {
		return []string{a.binary("nats-server"), "--addr", "127.0.0.1", "--port", port}
	}, a.Timeout)
	if err != nil {
		return nil, err
	}
	all = append(all, nats)
	for i := range 6 {
		name, options := fmt.Sprintf("gateway-%d", i), []string{"--sessions", "shared", "--id-key-file", key}
		if i >= 3 {
			options = append(options, "--nats", "nats://"+host(nats), "--replica", name)
		}
		p, err := start(name, a.gateway(join(options, []string{"--", a.binary("echo")})...), a.Timeout)
		if err != nil {
			return all, err
		}
		all = append(all, p)
	}
	return all, nil
}

// measureReplicas prints medians and ratios of all shapes.
func (a *arguments) measureReplicas(ctx context.Context, w io.Writer, alone, replicas []*process) error {
	fmt.Fprintf(w, "\nthree replicas, %s, %d rounds of %v, alternated; medians\n", a.Transport, a.Rounds, a.Round)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t,
		"\t\twithout NATS\tlocal\tforeign\tforwarded\tlocal : without\tof each round\tforeign : local\tof each round")
	for _, s := range replicaShapes {
		ways := []*way{{"without NATS", alone, local}, {"local", replicas, local}, {"foreign", replicas, s.away}}
		reports, share, err := a.replicaRounds(ctx, s.shape, ways, replicas)
		if err != nil {
			return fmt.Errorf("no result: %v: %w", s, err)
		}
		for _, v := range replicaValues {
			values := make([][]float64, len(ways))
			for i, all := range reports {
				for _, r := range all {
					values[i] = append(values[i], v.of(r))
				}
			}
			fmt.Fprintf(t, "%v\t%s\t%.0f\t%.0f\t%.0f\t%.2f\t%s\t%s\n", s, v.name, median(values[0]),
				median(values[1]), median(values[2]),
				share, ratios(values[1], values[0]), ratios(values[2], values[1]))
		}
	}
	return t.Flush()
}

// replicaRounds calls in all ways by turns, after one round of each that is not counted. All
// others have the same number of calls, which takes the slowest about --round. It also
// returns the share of the last round's calls that were forwarded.
func (a *arguments) replicaRounds(ctx context.Context, s shape, ways []*way,
	replicas []*process) (reports [][]*load.Report, share float64, err error) {
	reports = make([][]*load.Report, len(ways))
	calls := trialCalls
	for round := range a.Rounds + 1 {
		var slowest float64
		for i, w := range ways {
			before, err := forwarded(ctx, replicas)
			if err != nil {
				return nil, 0, err
			}
			r, err := load.Run(ctx, w.gateways[0].endpoint(a.Transport), load.Options{
				Transport: load.Transport(a.Transport), Clients: s.clients, InFlight: s.inFlight, Calls: calls,
				FreeRunning: true,
				Timeout:     a.Timeout, Settle: 50 * time.Millisecond, Host: w.host,
			})
			err = checkClean(r, err)
			if err != nil {
				return nil, 0, fmt.Errorf("round %d, %s: %w", round, w.name, err)
			}
			after, err := forwarded(ctx, replicas)
			if err != nil {
				return nil, 0, err
			}
			share = (after - before) / float64(r.Calls)
			if i == 0 || r.PerSecond < slowest {
				slowest = r.PerSecond
			}
			if round > 0 {
				reports[i] = append(reports[i], r)
			}
		}
		if round == 0 {
			calls = max(trialCalls, int(slowest*a.Round.Seconds()))
		}
	}
	return reports, share, nil
}

// forwarded returns how many requests the replicas have had served by others.
func forwarded(ctx context.Context, replicas []*process) (sum float64, err error) {
	for _, p := range replicas {
		n, err := gauge(ctx, "http://"+host(p)+"/metrics", forwardedCounter)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// ratios returns the ratio of the medians, and that of each round.
func ratios(of, to []float64) string {
	var each []string
	for i := range of {
		each = append(each, fmt.Sprintf("%.2f", of[i]/to[i]))
	}
	return fmt.Sprintf("%.3f\t%s", median(of)/median(to), strings.Join(each, " "))
}
