package bridge

import (
	"context"

	"github.com/mcp-sse/mcp-sse/gateway/internal/sessions"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

// attachment is a connection on a session.
type attachment struct {
	*sessions.Session
	client *client
	caller *multiplex.Caller
	member *sessions.Member // of a shared session; nil: the session is the connection's own
}

// attach puts the connection on a session.
func (b *Bridge) attach(a *attachment, s *sessions.Session) {
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

// discard leaves a session that is not taken into use. a may be nil.
func discard(a *attachment) {
	if a != nil {
		a.leave(errGone)
	}
}

// join makes the connection a member of a shared session.
func (b *Bridge) join(ctx context.Context) (*attachment, error) {
	a := &attachment{} // lose does nothing for it until it is in use
	m, err := b.opts.Supplier.Join(ctx, func(err error) { b.start.lose(a, err) })
	if err != nil {
		return nil, err
	}
	a.member = m
	b.attach(a, m.Session)
	return a, nil
}

// own makes the connection the owner of a session.
func (b *Bridge) own(s *sessions.Session) *attachment {
	a := &attachment{}
	b.attach(a, s)
	s.Own(func(err error) { b.start.lose(a, err) }) // if it is over already, the handshake or settle finds out
	return a
}

// giveBack returns a server that has heard nothing of the client: another
// connection may have it.
func (b *Bridge) giveBack(a *attachment) {
	a.caller.Detach()
	if !b.takesAnyServer() || !b.opts.Supplier.GiveBack(a.Session) {
		a.End(errGone)
	}
}

// takesAnyServer reports whether a server that is started for this client would be
// the same for any other: nothing of the client's request is handed on to it.
func (b *Bridge) takesAnyServer() bool { return len(b.c.Client().Header) == 0 }
