package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

// turn is one of the starts that may run at a time, from begin to end. It belongs
// to one goroutine.
type turn struct {
	g    *Gateway
	held bool
	lent bool // others start meanwhile
}

// begin waits until fewer than StartConcurrency starts run. It fails with ctx,
// and does nothing for a turn that has begun.
func (t *turn) begin(ctx context.Context) error {
	if t.held {
		return nil
	}
	select {
	case t.g.starts <- struct{}{}:
		t.held = true
		return nil
	default:
	}
	t.g.metrics.StartQueued()
	defer t.g.metrics.StartUnqueued()
	select {
	case t.g.starts <- struct{}{}:
		t.held = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lend lets another start begin, until resume.
func (t *turn) lend() {
	t.lent = t.held
	t.end()
}

// resume begins a turn again that was lent. It fails with ctx.
func (t *turn) resume(ctx context.Context) error {
	if !t.lent {
		return nil
	}
	t.lent = false
	return t.begin(ctx)
}

// end lets another start begin. It is idempotent.
func (t *turn) end() {
	if t.held {
		t.held = false
		<-t.g.starts
	}
}

// startOne waits for its turn, within ctx, and starts the server for one session,
// which is not initialized. It returns what is left of the start timeout. The
// caller owns the session and ends the turn. The error is a *handshake.Failure.
func (g *Gateway) startOne(ctx context.Context, turn *turn) (s *session, left time.Duration, err error) {
	if err := turn.begin(ctx); err != nil {
		return nil, 0, notStarted(err)
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, g.opts.StartTimeout)
	defer cancel()
	conn, err := g.up.Dial(ctx)
	if err != nil {
		return nil, 0, &handshake.Failure{
			Phase: handshake.PhaseCreation, Reason: reasonOf(ctx.Err()), Details: "the server could not be started", Err: err,
		}
	}
	return g.newSession(conn), g.opts.StartTimeout - time.Since(began), nil
}

// The pauses between starts that fail.
const (
	firstPause = 500 * time.Millisecond
	maxPause   = 15 * time.Second
)

func newBackoff() *backoff.Backoff { return backoff.New(firstPause, maxPause) }

// notStarted is the failure of a start that ended before there was anything to
// fail.
func notStarted(err error) error {
	return &handshake.Failure{
		Phase: handshake.PhaseCreation, Reason: reasonOf(err), Details: "the server was not started", Err: err,
	}
}

// reasonOf is the reason of a start that err ended.
func reasonOf(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return metrics.ReasonTimeout
	}
	return metrics.ReasonStartFailed
}

// open starts one session with the synthetic handshake, which no client has a say
// in: a shared one, or one of a probe. The error is a *handshake.Failure.
func (g *Gateway) open(ctx context.Context) (*session, error) {
	turn := &turn{g: g}
	defer turn.end()
	s, left, err := g.startOne(ctx, turn)
	if err != nil || g.params == nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	if err := s.initialize(ctx, g.params); err != nil {
		g.endSession(s, err)
		return nil, err
	}
	return s, nil
}

// initialize runs the handshake.
func (s *session) initialize(ctx context.Context, params json.RawMessage) error {
	s.params.Store(&params)
	result, err := handshake.Run(ctx, s, params)
	if err != nil {
		return err
	}
	s.result = result
	s.since = time.Now()
	return nil
}

// abandoned reports whether a start ended because nobody wants it any more.
func abandoned(err error) bool { return errors.Is(err, context.Canceled) }

func (g *Gateway) sessionOptions() multiplex.Options {
	return multiplex.Options{
		RequestTimeout: g.opts.RequestTimeout, MaxRequestTimeout: g.opts.MaxRequestTimeout,
		MaxInFlight: g.opts.MaxInFlight, MaxWaiting: g.opts.MaxWaiting,
		HangTimeout: max(0, g.opts.HangTimeout),
		Shared:      g.shared != nil, Repeatable: &g.repeatable, Nameless: g.nameless,
		Logger: g.log, Metrics: g.metrics,
	}
}
