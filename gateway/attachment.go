package gateway

import (
	"context"

	"github.com/mcp-sse/mcp-sse/gateway/internal/sessions"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// attachment is a connection on a session.
type attachment struct {
	*sessions.Session
	client *client
	caller *multiplex.Caller
	member *sessions.Member // of a shared session; nil: the session is the connection's own
}

// attach puts the connection on a session.
func (b *bridge) attach(a *attachment, s *sessions.Session) {
	a.Session = s
	a.client = &client{bridge: b, on: a}
	a.caller = s.Attach(a.client, b.c.ShortID(), b.c.Client().Principal)
}

// leave takes the connection off a session, and ends that if it is its own.
func (a *attachment) leave(why error) {
	if a.member == nil {
		a.End(why)
		return
	}
	a.member.Leave()
	a.caller.Detach()
}

// discard ends what is left of a start whose session is not taken into use.
func discard(a *attachment) {
	if a != nil {
		a.leave(errGone)
	}
}

// session gets the connection a session that is initialized: a shared one, or one of
// its own. from names where it comes from. With an error nothing is left of it.
func (b *bridge) session(ctx context.Context) (a *attachment, from string, err error) {
	if b.g.supplier.Shares() {
		a, err = b.join(ctx)
		return a, metrics.FromShared, err
	}
	attempt := b.g.supplier.NewAttempt()
	defer attempt.End()
	s, from, err := attempt.Take(ctx, b.takesAnyServer())
	if err != nil {
		return nil, from, err
	}
	a = b.own(s)
	if b.start.plain() {
		return a, from, nil
	}
	params, err := b.start.hold(ctx, attempt)
	if err != nil {
		b.giveBack(a)
		return nil, from, sessions.NotStarted(err)
	}
	if err := attempt.Initialize(ctx, s, params); err != nil {
		return nil, from, err
	}
	return a, from, nil
}

// join makes the connection a member of a shared session.
func (b *bridge) join(ctx context.Context) (*attachment, error) {
	a := &attachment{} // lose does nothing for it until it is in use
	m, err := b.g.supplier.Join(ctx, func(err error) { b.start.lose(a, err) })
	if err != nil {
		return nil, err
	}
	a.member = m
	b.attach(a, m.Session)
	return a, nil
}

// own makes the connection the owner of a session.
func (b *bridge) own(s *sessions.Session) *attachment {
	a := &attachment{}
	b.attach(a, s)
	s.Own(func(err error) { b.start.lose(a, err) }) // if it is over already, the handshake or settle finds out
	return a
}

// giveBack returns a server that has heard nothing of the client: another
// connection may have it.
func (b *bridge) giveBack(a *attachment) {
	a.caller.Detach()
	if !b.takesAnyServer() || !b.g.supplier.GiveBack(a.Session) {
		a.End(errGone)
	}
}

// takesAnyServer reports whether a server that is started for this client would be
// the same for any other: nothing of the client's request is handed on to it.
func (b *bridge) takesAnyServer() bool { return len(b.c.Client().Header) == 0 }

// forwarded adds to ctx what is handed on of the client's request.
func (b *bridge) forwarded(ctx context.Context) context.Context {
	if header := b.c.Client().Header; len(header) > 0 {
		return upstream.WithHeader(ctx, header)
	}
	return ctx
}
