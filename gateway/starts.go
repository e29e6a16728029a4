package gateway

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

// open starts one session: dial and handshake, bounded by the start timeout. It
// waits before that until fewer than StartConcurrency starts run: ctx, which is
// the end of who wants the session, ends that wait and the start. attach, if not
// nil, is given the session before the handshake. The caller owns the session.
// The error is a *handshake.Failure.
func (g *Gateway) open(ctx context.Context, params json.RawMessage, attach func(*session)) (*session, error) {
	if err := g.takeTurn(ctx); err != nil {
		return nil, &handshake.Failure{Phase: handshake.PhaseCreation, Details: "the server was not started", Err: err}
	}
	defer func() { <-g.starts }()
	ctx, cancel := context.WithTimeout(ctx, g.opts.StartTimeout)
	defer cancel()
	conn, err := g.up.Dial(ctx)
	if err != nil {
		return nil, &handshake.Failure{Phase: handshake.PhaseCreation, Details: "the server could not be started", Err: err}
	}
	s := g.newSession(conn, params)
	if attach != nil {
		attach(s)
	}
	if params == nil {
		return s, nil
	}
	if s.result, err = handshake.Run(ctx, s, params); err != nil {
		g.endSession(s, err)
		return nil, err
	}
	return s, nil
}

// takeTurn waits for a place among the starts that may run at a time.
func (g *Gateway) takeTurn(ctx context.Context) error {
	select {
	case g.starts <- struct{}{}:
		return nil
	default:
	}
	g.metrics.StartQueued()
	defer g.metrics.StartUnqueued()
	select {
	case g.starts <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// abandoned reports whether a start ended because nobody wants it any more.
func abandoned(err error) bool { return errors.Is(err, context.Canceled) }

func (g *Gateway) sessionOptions() multiplex.Options {
	return multiplex.Options{
		RequestTimeout: g.opts.RequestTimeout, MaxRequestTimeout: g.opts.MaxRequestTimeout,
		MaxInFlight: g.opts.MaxInFlight, MaxWaiting: g.opts.MaxWaiting,
		SlowRequest: max(0, g.opts.SlowRequest), HangTimeout: max(0, g.opts.HangTimeout),
		Shared: g.shared != nil, Repeatable: &g.repeatable,
		Logger: g.log, Metrics: g.metrics,
	}
}
