package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// maxLost is how many lost calls end a run early: each costs a Timeout.
const maxLost = 100

// connectAtOnce bounds how many streams are opened at a time.
const connectAtOnce = 16

// run is one run against one server.
type run struct {
	opts     Options
	site     *site
	register register
	tally    tally
	padding  string // follows the secret in the argument of a call

	// taken counts the calls that workers have taken on, of opts.Calls.
	taken   atomic.Int64
	started time.Time // when the first call could be sent
	steps   *barrier  // nil: workers do not wait for each other
}

// Run opens the streams, makes the calls and returns a report. It fails if the
// server cannot be tested: a stream cannot be opened, the tool does not exist, or it
// does not return its argument. When ctx ends, Run returns after Timeout at the
// latest.
func Run(ctx context.Context, target string, opts Options) (*Report, error) {
	r, err := prepare(ctx, target, opts)
	if err != nil {
		return nil, err
	}
	clients, err := r.connect(ctx)
	defer closeAll(clients)
	if err != nil {
		return nil, err
	}
	r.sample()
	took := r.work(ctx, clients)
	r.sample()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	pause(ctx, r.opts.Settle)
	r.countUnpaired(ctx, clients)
	return r.report(took), nil
}

// prepare checks the options, and finds out what to call.
func prepare(ctx context.Context, target string, opts Options) (*run, error) {
	opts = opts.withDefaults()
	if err := opts.check(); err != nil {
		return nil, err
	}
	u, err := parseTarget(target)
	if err != nil {
		return nil, err
	}
	r := &run{opts: opts, site: &site{u, opts.Header, opts.Timeout}, padding: newPadding(opts.Payload)}
	r.opts, err = r.scout(ctx)
	if err != nil {
		return nil, err
	}
	r.register.callers = make(map[string]*call, opts.Calls)
	return r, nil
}

// sample calls Options.Sample.
func (r *run) sample() {
	if r.opts.Sample != nil {
		r.opts.Sample()
	}
}

// host returns the host and port to which a client sends a call.
func (r *run) host(client int, call int64) string {
	if r.opts.Host == nil {
		return r.site.target.Host
	}
	return r.opts.Host(client, call)
}

// report returns the report of a run that took that long.
func (r *run) report(took time.Duration) *Report {
	report := r.tally.finish(took)
	report.URL, report.Tool, report.Clients, report.InFlight = r.site.target.String(), r.opts.Tool, r.opts.Clients,
		r.opts.InFlight
	return report
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// connect opens all clients. If it fails, it returns those that it could open.
func (r *run) connect(ctx context.Context) ([]*client, error) {
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		clients []*client
		fault   error // the first
	)
	opening := make(chan struct{}, connectAtOnce)
	for number := 1; number <= r.opts.Clients; number++ {
		opening <- struct{}{}
		wg.Go(func() { // ends within a few Timeouts
			defer func() { <-opening }()
			c, err := r.openClient(ctx, number)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				clients = append(clients, c)
			} else if fault == nil {
				fault = fmt.Errorf("client %d: %w", number, err)
			}
		})
	}
	wg.Wait()
	return clients, fault
}

func closeAll(clients []*client) {
	for _, c := range clients {
		c.close()
	}
}

// work makes all calls and returns how long that took.
func (r *run) work(ctx context.Context, clients []*client) time.Duration {
	if !r.opts.FreeRunning {
		r.steps = newBarrier(len(clients) * r.opts.InFlight)
	}
	r.started = time.Now()
	var wg sync.WaitGroup
	for _, c := range clients {
		for i := range r.opts.InFlight {
			w := newWorker(c, int64(i)+1)
			wg.Go(func() { w.work(ctx) }) // ends with the calls, the stream or ctx
		}
	}
	wg.Wait()
	return time.Since(r.started)
}

// next waits until the next call is due, and reports whether there is one.
func (r *run) next(ctx context.Context) bool {
	n := r.taken.Add(1)
	if n > int64(r.opts.Calls) || ctx.Err() != nil || r.tally.lostCalls() >= maxLost {
		return false
	}
	if r.opts.Rate > 0 {
		due := r.started.Add(time.Duration(float64(n-1) / r.opts.Rate * float64(time.Second)))
		pause(ctx, time.Until(due))
	}
	return ctx.Err() == nil
}

// countUnpaired counts as lost the calls that were answered under one event name
// only, if others of the client were answered under both. It waits at most Timeout for the
// other name.
func (r *run) countUnpaired(ctx context.Context, clients []*client) {
	if !r.opts.NoInitialize {
		return // one name is enough; noteAnswer has counted a second
	}
	deadline := time.Now().Add(r.opts.Timeout)
	for _, c := range clients {
		lost := c.unpaired()
		for ; len(lost) > 0 && ctx.Err() == nil && time.Now().Before(deadline); lost = c.unpaired() {
			pause(ctx, 10*time.Millisecond)
		}
		for _, k := range lost {
			r.tally.countFault(Lost, "client %d got the answer to id %d under one name, others under two", c.number,
				k.id)
		}
	}
}

// unpaired returns the calls that were answered under one event name, if others were
// answered under both.
func (c *client) unpaired() (lost []*call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var seen uint8
	for _, k := range c.calls {
		seen |= k.names
	}
	for _, k := range c.calls {
		if seen == asMessage|asResponse && k.state == answered && k.names != seen {
			lost = append(lost, k)
		}
	}
	return lost
}

// worker makes calls of one client, one after the other.
type worker struct {
	run     *run
	client  *client
	first   int64              // id
	posters map[string]*poster // by host

	calls     int64
	latencies []time.Duration // of the calls with a correct result
}

func (w *worker) work(ctx context.Context) {
	defer w.close()
	defer func() { w.run.tally.add(w.calls, w.latencies) }()
	if w.run.steps != nil {
		defer w.run.steps.leave()
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for id := w.first; ; id += int64(w.run.opts.InFlight) {
		if w.run.steps != nil {
			w.run.steps.wait()
		}
		select {
		case <-w.client.ended:
			return
		default:
		}
		if !w.run.next(ctx) {
			return
		}
		w.calls++
		w.call(ctx, id, timer)
	}
}

func newWorker(c *client, first int64) *worker {
	return &worker{run: c.run, client: c, first: first, posters: make(map[string]*poster)}
}

func (w *worker) close() {
	for _, p := range w.posters {
		p.close()
	}
}

// poster returns the poster for a call.
func (w *worker) poster(id int64) *poster {
	host := w.run.host(w.client.number, id)
	p := w.posters[host]
	if p == nil {
		p = w.client.poster().at(host)
		w.posters[host] = p
	}
	return p
}

// call makes one call.
func (w *worker) call(ctx context.Context, id int64, timer *time.Timer) {
	k, message := w.run.newCall(w.client, id)
	p := w.poster(id)
	w.run.register.add(k)
	w.client.begin(k)
	sent := time.Now()
	if err := w.client.post(ctx, p, k, message); err != nil && w.client.abandon(k) {
		w.countFailed(id, err)
		return
	}
	timer.Reset(w.run.opts.Timeout)
	a, err := w.client.await(ctx, k, timer)
	switch {
	case err != nil:
		w.run.tally.countFault(Lost, "client %d, id %d: %v", w.client.number, id, err)
	case a.result == nil:
		w.run.tally.countRefusal(a.refusal)
	case !a.wrong:
		w.latencies = append(w.latencies, a.at.Sub(sent))
	}
}

// countFailed counts a call whose POST failed and that has no answer.
func (w *worker) countFailed(id int64, err error) {
	if _, ok := errors.AsType[*refusedError](err); ok {
		w.run.tally.countRefusal(err.Error())
		return
	}
	w.run.tally.countFault(Lost, "client %d, id %d: %v", w.client.number, id, err)
}
