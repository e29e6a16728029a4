package bridge

import (
	"context"
	"sync"

	"github.com/mcp-sse/mcp-sse/gateway/internal/sessions"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
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

// leave takes the connection off a session, and ends that if it is its own. A nil
// attachment is on no session.
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

// maxEarlyBytes bounds what a server may send before its session is in use.
const maxEarlyBytes = 1 << 20

// client is the bridge as one of its sessions sees it. Servers send messages as
// soon as they are initialized (roots/list is the usual case). Before the session
// is in use no answer would find the way back, and the client may still wait for
// the answer to its initialize: client keeps those messages until then.
type client struct {
	bridge *Bridge
	on     *attachment

	mu     sync.Mutex // guards what follows
	inUse  bool
	passed chan struct{} // closed when early has been delivered
	early  [][]byte
	bytes  int // of early
}

var _ multiplex.Client = (*client)(nil)

// Answer passes the server's response to a request on.
func (c *client) Answer(id jsonrpc.ID, response []byte, errorType string) {
	c.on.NoteAnswer()
	c.bridge.answer(id, response, errorType)
}

// Fail answers a request with an error of the gateway's.
func (c *client) Fail(id jsonrpc.ID, e *jsonrpc.Error, errorType string) {
	c.bridge.fail(id, e, errorType)
}

// Lost repeats a request that the session has ended under, or answers it.
func (c *client) Lost(m *jsonrpc.Message, e *jsonrpc.Error) {
	c.bridge.repeat(m, e)
}

// Deliver passes a notification or request of the server on, or keeps it.
func (c *client) Deliver(method string, message []byte) {
	if c.bridge.shares() && !c.advertised(method) {
		c.bridge.opts.Metrics.Dropped(metrics.DroppedUnknownRequest)
		return
	}
	if !c.keep(message) {
		c.pass(message)
	}
}

// advertised reports whether the server has said that this list may change. It is
// true for what is no list.
func (c *client) advertised(method string) bool {
	kind, isList := mcp.ChangedList(method)
	return !isList || c.on.Result().Advertises(kind, "listChanged")
}

// pass passes a message on. The reader of a shared session does not wait for the
// client; that of the client's own does, so that the server is slowed down.
func (c *client) pass(message []byte) {
	if c.bridge.shares() {
		c.bridge.c.SendNow(message)
		return
	}
	_ = c.bridge.c.Send(message) // a connection that is slow or gone has been closed
}

func (c *client) keep(message []byte) bool {
	c.mu.Lock()
	if c.inUse {
		c.mu.Unlock()
		<-c.passed // the reader waits, as it may in pass
		return false
	}
	defer c.mu.Unlock()
	switch {
	case c.bytes+len(message) > maxEarlyBytes:
		c.bridge.opts.Metrics.Dropped(metrics.DroppedNotReady) // a request among them is answered by its timeout
	default:
		c.early = append(c.early, message)
		c.bytes += len(message)
	}
	return true
}

// use delivers what was kept. Later messages are passed on as they come.
func (c *client) use() {
	c.mu.Lock()
	early, passed := c.early, make(chan struct{})
	c.early, c.bytes, c.passed, c.inUse = nil, 0, passed, true
	c.mu.Unlock()
	for _, message := range early {
		c.pass(message)
	}
	close(passed)
}

// Serves reports whether the session was initialized with the capability that a
// request of the server needs (MCP 2025-11-25, client features). A request that no
// rule names needs none.
func (c *client) Serves(m *jsonrpc.Message) bool {
	params := c.on.Params()
	if params == nil { // the client's own initialize is not ours to read
		return c.bridge.opts.Params == nil
	}
	capabilities, _ := jsonrpc.Member(params, "capabilities")
	declares := func(names ...string) bool { return mcp.Declares(capabilities, names...) }
	switch m.Method {
	case mcp.MethodListRoots:
		return declares("roots")
	case mcp.MethodSample:
		_, withTools := jsonrpc.Member(m.Params(), "tools")
		return declares("sampling") && (!withTools || declares("sampling", "tools"))
	case mcp.MethodElicit:
		mode, _ := jsonrpc.Member(m.Params(), "mode")
		if string(mode) == `"url"` {
			return declares("elicitation", "url")
		}
		// {} means forms, as before there were modes.
		return declares("elicitation") && (declares("elicitation", "form") || !declares("elicitation", "url"))
	}
	return true
}
