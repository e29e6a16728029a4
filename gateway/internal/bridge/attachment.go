package bridge

import (
	"context"
	"sync"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway/internal/sessions"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

// attachment attaches a connection to a session.
type attachment struct {
	*sessions.Session
	client *client
	caller *multiplex.Caller
	member *sessions.Member // nil: the connection owns the session
}

// attach attaches the connection to a session.
func (b *Bridge) attach(a *attachment, s *sessions.Session) {
	a.Session = s
	a.client = &client{bridge: b, on: a}
	a.caller = s.Attach(a.client, b.c.ShortID(), b.c.Client().Principal)
}

// leave detaches the connection from its session. It ends a session that the
// connection owns, with the reason why. On a nil attachment it does nothing.
func (a *attachment) leave(why error) {
	switch {
	case a == nil:
	case a.member == nil:
		a.End(why)
	default:
		a.member.Leave()
		a.caller.Detach()
	}
}

// join makes the connection a member of a shared session.
func (b *Bridge) join(ctx context.Context) (*attachment, error) {
	a := &attachment{} // until it is in use, lose ignores it
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
	s.Own(func(err error) { b.start.lose(a, err) }) // if it is over already, the handshake or settle notices
	return a
}

// giveBack detaches the connection from a session that has got no message from it. It
// gives the session to the pool, or ends it.
func (b *Bridge) giveBack(a *attachment) {
	a.caller.Detach()
	if !b.takesAnyServer() || !b.opts.Supplier.GiveBack(a.Session) {
		a.End(errGone)
	}
}

// takesAnyServer reports whether the pool can serve this client and take its server
// back: the gateway passes nothing of its request on.
func (b *Bridge) takesAnyServer() bool {
	client := b.c.Client()
	return len(client.Header) == 0 && client.Context == nil
}

// maxEarlyBytes bounds the messages that a server sends before its session is in use.
const maxEarlyBytes = 64 << 10

// client implements multiplex.Client for one attachment of a bridge. A server may
// send messages as soon as it is initialized (roots/list is the usual one). Before
// the session is in use the client's answer could not reach it, and the client may
// still wait for the answer to its initialize. So client keeps those messages until
// deliverEarly.
type client struct {
	bridge *Bridge
	on     *attachment

	mu     sync.Mutex // guards what follows
	inUse  bool
	passed chan struct{} // set with inUse; closed when early has been delivered
	early  []earlyMessage
	bytes  int // of early
}

// earlyMessage is a message of the server that client keeps, as in Deliver.
type earlyMessage struct {
	related jsonrpc.ID
	message []byte
}

var _ multiplex.Client = (*client)(nil)

// Lost repeats a request of a lost session, or answers it with e.
func (c *client) Lost(r *connstate.Request, e *jsonrpc.Error) { c.bridge.repeat(r, e) }

// Deliver passes a notification or request of the server to the client, or keeps it
// until the session is in use.
func (c *client) Deliver(method string, related jsonrpc.ID, message []byte) {
	if c.bridge.shares() && !c.advertised(method) {
		c.bridge.opts.Metrics.Dropped(metrics.DroppedUnknownRequest)
		return
	}
	if !c.keepEarly(related, message) {
		c.pass(related, message)
	}
}

// advertised reports whether the server declared that it sends method. It is true for
// all methods but the list_changed notifications.
func (c *client) advertised(method string) bool {
	kind, isList := mcp.ChangedList(method)
	return !isList || c.on.Result().Advertises(kind, "listChanged")
}

// pass sends a message to the client. On a shared session it does not wait for a slow
// client. On the client's own session it does, which slows the server down.
func (c *client) pass(related jsonrpc.ID, message []byte) {
	if c.bridge.shares() {
		c.bridge.c.SendNow(related, message)
		return
	}
	_ = c.bridge.c.Send(related, message) // on an error the connection is closed already
}

// keepEarly keeps a message until the session is in use, or drops it over
// maxEarlyBytes. It reports false if the session is in use.
func (c *client) keepEarly(related jsonrpc.ID, message []byte) bool {
	c.mu.Lock()
	if c.inUse {
		c.mu.Unlock()
		<-c.passed // keeps the order; the reader may wait here, as in pass
		return false
	}
	defer c.mu.Unlock()
	switch {
	case c.bytes+len(message) > maxEarlyBytes:
		c.bridge.opts.Metrics.Dropped(metrics.DroppedNotReady) // a request among them is answered by its timeout
	default:
		c.early = append(c.early, earlyMessage{related, message})
		c.bytes += len(message)
	}
	return true
}

// delivered is closed: nothing was early.
var delivered = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// deliverEarly puts the session in use: it delivers the messages kept so far, and
// later ones pass at once.
func (c *client) deliverEarly() {
	c.mu.Lock()
	early, passed := c.early, delivered
	if len(early) > 0 {
		passed = make(chan struct{})
	}
	c.early, c.bytes, c.passed, c.inUse = nil, 0, passed, true
	c.mu.Unlock()
	if len(early) == 0 {
		return
	}
	for _, m := range early {
		c.pass(m.related, m.message)
	}
	close(passed)
}

// Serves reports whether the client declared, in the session's initialize, the
// capability that a server request needs (MCP 2025-11-25, client features). Requests
// of other methods need none.
func (c *client) Serves(m *jsonrpc.Message) bool {
	params := c.on.Params()
	if params == nil { // the gateway does not read the client's own initialize
		return c.bridge.opts.Params == nil
	}
	switch m.Method {
	case mcp.MethodListRoots, mcp.MethodSample, mcp.MethodElicit:
		capabilities, _ := jsonrpc.Member(params, "capabilities")
		return mcp.Answers(capabilities, m.Method, m.Params())
	}
	return true
}
