package gateway

import (
	"context"
	"time"

	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// Where sessions come from, for log and metrics.
const (
	fromStart  = metrics.FromStart
	fromPool   = metrics.FromPool
	fromShared = metrics.FromShared
)

// session gets the connection a session that is initialized: a shared one, or
// one of its own on a server from the pool or one that it starts. With an error
// nothing is left of it.
func (b *bridge) session(ctx context.Context) (l *link, from string, err error) {
	if b.g.shared != nil {
		l, err = b.g.shared.join(ctx, b)
		return l, fromShared, err
	}
	turn := &turn{g: b.g}
	defer turn.end()
	var s *session
	from, left := fromPool, b.g.opts.StartTimeout
	if b.anyone() {
		s = b.g.pool.take(ctx)
	}
	if s == nil {
		from = fromStart
		if s, left, err = b.g.startOne(ctx, turn); err != nil {
			return nil, from, err
		}
	}
	l = b.link(s)
	if b.start.plain() {
		return l, from, nil
	}
	if err := b.initialize(ctx, l, turn, left); err != nil {
		return nil, from, err
	}
	return l, from, nil
}

// initialize runs the handshake on a session of the connection's own, once it is
// known whose initialize goes out, in the time that is left of the start.
func (b *bridge) initialize(ctx context.Context, l *link, turn *turn, left time.Duration) error {
	params, err := b.start.hold(ctx, turn)
	if err != nil {
		b.giveBack(l)
		return notStarted(err)
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	if err := l.initialize(ctx, params); err != nil {
		b.g.endSession(l.session, err)
		return err
	}
	return nil
}

// giveBack returns a server that has heard nothing of the client: another
// connection may have it.
func (b *bridge) giveBack(l *link) {
	l.caller.Detach()
	if !b.anyone() || !b.g.pool.adopt(l.session) {
		b.g.endSession(l.session, errGone)
	}
}

// anyone reports whether a server that is started for this client would be the
// same for any other: nothing of the client's request is handed on to it.
func (b *bridge) anyone() bool { return len(b.c.Client().Header) == 0 }

// forwarded adds to ctx what is handed on of the client's request.
func (b *bridge) forwarded(ctx context.Context) context.Context {
	if header := b.c.Client().Header; len(header) > 0 {
		return upstream.WithHeader(ctx, header)
	}
	return ctx
}

// link makes the bridge the owner of a session.
func (b *bridge) link(s *session) *link {
	s.since = time.Now()
	l := newLink(b, s)
	s.own(func(err error) { b.start.lose(l, err) }) // if it is over already, the handshake or settle finds out
	return l
}
