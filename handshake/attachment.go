package handshake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/subnet"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex"
	"github.com/mcp-sse/mcp-sse/upstream/remote"
)

// maxEarlyBytes bounds the messages that a server sends before its session is in use.
const maxEarlyBytes = 64 << 10

// attachment is the connection as one session sees it. A server may send messages as soon
// as it is initialized (roots/list is the usual one). Before the session is in use the
// client's answer could not reach it, and the client may still wait for the answer to
// its initialize. So client keeps those messages until deliverEarly.
type attachment struct {
	bridge  *Bridge
	session *Session
	caller  *multiplex.Caller
	lost    error // set before it stops being the current one; nil: the session was replaced

	inUse atomic.Bool

	mu    sync.Mutex // serializes what comes before inUse, and guards what follows
	early []func()   // deliver a message each
	bytes int        // of these messages
}

var _ multiplex.Client = (*attachment)(nil)

// attach attaches the connection to a session.
func (b *Bridge) attach(s *Session) *attachment {
	c := &attachment{bridge: b, session: s}
	c.caller = s.Attach(c, b.c.ShortID(), b.c.Client().Principal)
	return c
}

// close closes a session of the connection's own for the reason why, and leaves a shared
// one. Requests that are at a closed session come back through Lost: one may have been
// sent at the moment when the client's initialize replaced the session.
func (c *attachment) close(why error) {
	if c.bridge.shares() {
		c.caller.Detach()
		return
	}
	c.session.Close(why)
}

// lose makes c no longer the current client, because its session is over or not wanted: it
// closes the gate, and run gets the next one. The session answers or repeats its requests
// after it.
func (b *Bridge) lose(c *attachment, why error) {
	if b.current.Load() == c {
		b.dismiss(why)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.current.Load() != c {
		return
	}
	c.lost = why
	if errors.Is(why, ErrReplaced) {
		b.retired = append(b.retired, c)
		b.opts.Supplier().Go(func() { b.forget(c) }) // ends with the session
	}
	// Close the gate first: a message that finds no session must find the gate closed
	// when it returns.
	_ = b.c.Move(connstate.Initializing) // unless it is, drains or is closed
	b.current.Store(nil)
}

// forget waits for the end of a retired session, and drops it.
func (b *Bridge) forget(c *attachment) {
	<-c.session.Done()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.retired = slices.DeleteFunc(b.retired, func(other *attachment) bool { return other == c })
}

// at returns the client of the retired session that is meant; without one the current client.
func (b *Bridge) at(meant func(*multiplex.Caller) bool) *attachment {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.retired {
		if meant(c.caller) {
			return c
		}
	}
	return b.current.Load()
}

// Lost repeats a request of a lost session, or answers it with e. The session's reader
// may call it before the session is over: when it has an answer in hand, and the server
// does not take the request that waited for that.
func (c *attachment) Lost(r *connstate.Request, e *jsonrpc.Error) {
	c.retire(ErrTakesNoMore)
	c.bridge.repeat(r, e)
}

// Deliver passes a notification or request of the server to the client, or keeps it
// until the session is in use. It drops list_changed of a shared session whose server has
// not declared it.
func (c *attachment) Deliver(method string, related jsonrpc.ID, message []byte) {
	if kind, isList := mcp.ChangedList(method); isList && c.bridge.shares() &&
		!c.session.Result().Advertises(kind, "listChanged") {
		c.bridge.opts.Metrics.Dropped(metrics.DroppedUnknownRequest)
		return
	}
	c.deliver(message, func() { c.pass(related, message) })
}

// Progress is Deliver for progress of a request.
func (c *attachment) Progress(r *connstate.Request, message []byte) {
	c.deliver(message, func() { r.SendProgress(message, !c.bridge.shares()) })
}

// deliver passes a message to the client, or keeps it until the session is in use.
func (c *attachment) deliver(message []byte, pass func()) {
	if c.inUse.Load() || !c.keepEarly(message, pass) {
		pass()
	}
}

// pass sends a message to the client. On a shared session it does not wait for a slow
// client. On the client's own session it does, which slows the server down.
func (c *attachment) pass(related jsonrpc.ID, message []byte) {
	if c.bridge.shares() {
		c.bridge.c.SendNow(related, message)
		return
	}
	_ = c.bridge.c.Send(related, message) // on an error the connection is closed already
}

// keepEarly keeps a message until the session is in use, or drops it over
// maxEarlyBytes. It reports false if the session is in use, after the messages before
// have been delivered.
func (c *attachment) keepEarly(message []byte, pass func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.inUse.Load():
		return false
	case c.bytes+len(message) > maxEarlyBytes:
		c.bridge.opts.Metrics.Dropped(metrics.DroppedNotReady) // a request among them is answered by its timeout
	default:
		c.early = append(c.early, pass)
		c.bytes += len(message)
	}
	return true
}

// deliverEarly puts the session in use: it delivers the messages kept so far, and
// later ones pass at once. While a slow client reads them, mu holds up only the reader of
// its own session, which would wait for that client anyway; pass does not wait on a shared
// one, and Detach and Closed do not need mu.
func (c *attachment) deliverEarly() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, deliver := range c.early {
		deliver()
	}
	c.early = nil
	c.inUse.Store(true)
}

// Serves reports whether the client declared, in the session's initialize, the
// capability that a server request needs (MCP 2025-11-25, client features). Requests
// of other methods need none.
func (c *attachment) Serves(m *jsonrpc.Message) bool {
	params := c.session.Params()
	if params == nil { // the gateway does not read the client's own initialize
		return c.bridge.opts.Params == nil
	}
	capabilities, _ := jsonrpc.Member(params, "capabilities")
	return mcp.Required(m.Method, nil) == nil || mcp.Answers(capabilities, m.Method, m.Params())
}

// party returns on whose behalf the connection starts sessions: that of its principal,
// or of its address without authentication.
func (b *Bridge) party() string {
	client := b.c.Client()
	if client.Principal != "" {
		return "principal " + client.Principal
	}
	return "address " + subnet.Of(client.Addr).String()
}

// forwarded returns a context with what the client's request has for the server.
func (b *Bridge) forwarded() context.Context {
	ctx := b.c.Client().Context
	if ctx == nil {
		ctx = context.Background()
	}
	if header := b.c.Client().Header; len(header) > 0 {
		return remote.WithNewest(remote.WithHeader(ctx, header), b.c.Credentials)
	}
	return ctx
}

// send sends a message to the server. It reports whether a session took it.
func (b *Bridge) send(r *connstate.Request) bool {
	c := b.current.Load()
	if c == nil {
		return false
	}
	m := r.Message
	b.used.Store(true)
	b.memory.note(m)
	if m.Kind != jsonrpc.Request {
		c.caller.Forward(m)
		return true
	}
	if b.opts.Params == nil && m.Method == mcp.MethodInitialize && len(m.Params()) <= maxParams {
		params := json.RawMessage(bytes.Clone(m.Params()))
		b.initializing.Store(true)
		r.OnAnswer(func(errorType string) {
			if errorType == "" {
				b.clientParams.Store(&params)
			}
			b.initializing.Store(false)
			b.wakeRun()
		})
	}
	r.Backpressure = !b.shares() // a slow client slows down its own server, but not a shared one
	err := c.caller.Send(r)
	switch { // Send may notice the loss of a session before its reader does
	case err == nil:
		return true
	case errors.Is(err, multiplex.ErrLeft): // the connection is closed, or has another session
		return false
	case !errors.Is(err, jsonrpc.ErrDismissed):
		err = ErrTakesNoMore
	}
	c.retire(err)
	return false
}

// retire handles the loss of a session that takes no messages, for the reason why unless
// it is over already.
func (c *attachment) retire(why error) {
	var gone <-chan struct{} // the other clients of a shared session wait for their answers
	if !c.bridge.shares() {
		gone = c.bridge.c.Done()
	}
	c.session.Retire(why, gone)
	c.bridge.lose(c, c.session.Why())
}

// dismissTimeout bounds how long the stream of a dismissed client may take to write what
// it still has to.
const dismissTimeout = 10 * time.Second

// dismiss ends the connection if err says that the server wants no more of this client:
// it answers the requests that wait, and closes the stream when all are answered.
func (b *Bridge) dismiss(err error) {
	if b.shares() || !errors.Is(err, jsonrpc.ErrDismissed) {
		return
	}
	b.dismissed.Store(true)
	quiet, err := b.c.Drain()
	if err != nil {
		return // it drains or is closed already
	}
	b.opts.Supplier().Go(func() { // ends with the connection
		select {
		case <-quiet:
			b.c.CloseGracefully(connstate.ClosedServer, dismissTimeout)
		case <-b.c.Done():
		}
	})
}

// repeat puts a request of a lost session back into the gate, where it waits for the
// next session, unless it was repeated before. If it may not be repeated, repeat answers
// it with e.
func (b *Bridge) repeat(r *connstate.Request, e *jsonrpc.Error) {
	if r.Message == nil || r.Repeated || b.dismissed.Load() {
		r.Fail(b.visibleLoss(e), metrics.ErrorSessionLost)
		return
	}
	r.Repeated = true
	r.FromServer(metrics.ErrorSessionLost)
	b.opts.Metrics.RequestRepeated()
	b.gateOrSend(r)
}
