package load

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Storm makes opts.Calls calls on streams that live short: each is opened,
// initialized, used for opts.InFlight calls, one after the other, and closed.
// opts.Clients streams are open at a time. It fails as Run does.
func Storm(ctx context.Context, target string, opts Options) (*Report, error) {
	r, err := prepare(ctx, target, opts)
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	r.sample()
	r.started = time.Now()
	for range r.opts.Clients {
		wg.Go(func() { // ends with the calls, the first stream that does not open, or ctx
			timer := time.NewTimer(0)
			defer timer.Stop()
			for r.blow(ctx, timer) {
			}
		})
	}
	wg.Wait()
	took := time.Since(r.started)
	r.sample()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return r.report(took), nil
}

// blow is the life of one stream. It reports whether there may be another one.
func (r *run) blow(ctx context.Context, timer *time.Timer) bool {
	first := r.taken.Add(int64(r.opts.InFlight))
	if first > int64(r.opts.Calls) || ctx.Err() != nil {
		return false
	}
	number := int(first) / r.opts.InFlight
	c, err := r.openClient(ctx, number)
	if err != nil {
		r.tally.countFault(Cut, "stream %d: %v", number, err)
		return false
	}
	defer c.close()
	w := newWorker(c, 1)
	defer w.close()
	for id := range int64(r.opts.InFlight) {
		w.calls++
		w.call(ctx, id+1, timer)
	}
	r.tally.add(w.calls, w.latencies)
	return true
}

// maxPings bounds how many held streams are pinged.
const maxPings = 100

// Hold opens opts.Clients streams and initializes them. They stay open until the
// caller calls release, which fails if one of the first 100 does not answer a ping, or
// one has ended or has got what is not its own.
func Hold(ctx context.Context, target string, opts Options) (release func() error, err error) {
	opts.Calls = 1
	opts = opts.withDefaults()
	if err := opts.check(); err != nil {
		return nil, err
	}
	u, err := parseTarget(target)
	if err != nil {
		return nil, err
	}
	r := &run{opts: opts, site: &site{u, opts.Header, opts.Timeout}}
	clients, err := r.connect(ctx)
	if err != nil {
		closeAll(clients)
		return nil, err
	}
	return func() error {
		defer closeAll(clients)
		for _, c := range clients[:min(len(clients), maxPings)] {
			if err := c.ping(ctx); err != nil {
				return fmt.Errorf("ping of client %d: %w", c.number, err)
			}
		}
		if report := r.report(0); report.Faults.Total() > 0 {
			return fmt.Errorf("%d faults: %q", report.Faults.Total(), report.Evidence)
		}
		return nil
	}, nil
}

// ping sends a ping of an initialized client and waits for the answer.
func (c *client) ping(ctx context.Context) error {
	p := c.poster()
	defer p.close()
	_, err := c.ask(ctx, p, 1, "ping", "{}")
	return err
}
