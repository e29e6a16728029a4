package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/bridge"
	"github.com/mcp-sse/mcp-sse/internal/caller"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// maxUnread bounds the messages that a client in this process has not taken, in bytes. A larger message waits alone. A
// client that leaves more loses its connection, as one of a shared session does.
const maxUnread = 16 << 20

// Why a connection of Dial ended, where it was not its client that closed it.
var (
	errShutDown = errors.New("the gateway is shutting down")
	errUnread   = fmt.Errorf("over %d MiB of messages were not read", maxUnread>>20)
)

// localConn is a connection as its client in this process has it.
//
// The goroutine in which the gateway has a message for the client calls the client with it. If another goroutine is
// calling the client, the message waits in the queue, and the other goroutine goes on with it. So messages keep their
// order, and a client that sends a message inside such a call gets the answer after the call.
type localConn struct {
	g      *Gateway
	c      connstate.ForTransport
	bridge *bridge.Bridge

	mu      sync.Mutex // guards what follows; not held while the client or the gateway is called
	changed sync.Cond  // the queue has a message, or err was set
	queue   []connstate.Event
	bytes   int // of queue
	// receive is the client; nil until Push. Recv takes the messages then.
	receive func(msg []byte, request jsonrpc.ID, err error)
	calling bool  // a goroutine calls receive
	bound   bool  // the connection has its bridge
	err     error // why the connection is over; nil before
	told    bool  // receive has got err
}

var (
	_ jsonrpc.Relay     = (*localConn)(nil)
	_ jsonrpc.Stateless = (*localConn)(nil)
	_ asker.Conditional = (*localConn)(nil)
)

// newLocalConn gives an open connection its bridge and its client.
func newLocalConn(g *Gateway, opened *connstate.Connection) *localConn {
	l := &localConn{g: g, c: connstate.ForTransport{Connection: opened}}
	l.changed.L = &l.mu
	l.c.DeliverTo(l.deliver)
	l.c.OnClose(l.tellEnd)
	l.c.SawFirstByte()
	l.bridge = g.newBridge(opened)
	l.c.Bind(l.bridge)
	l.mu.Lock()
	l.bound = true
	isOver := l.err != nil
	l.mu.Unlock()
	if isOver {
		l.deregister()
	}
	return l
}

// deregister takes a connection that is over out of the registry. A shutdown waits for that, so the bridge must have
// ended what it has begun.
func (l *localConn) deregister() {
	l.g.registry.Remove(l.c.Connection)
	l.g.now.Load().checks.LogClosed(l.c.Connection)
}

// Send takes a message of the client. It does not wait.
func (l *localConn) Send(msg []byte) error {
	m, err := jsonrpc.Parse(msg)
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return l.passOrAnswer(m)
}

// SendRequest is Send for a request, under another id.
func (l *localConn) SendRequest(m *jsonrpc.Message, number int64) error {
	own, err := jsonrpc.Parse(m.Renumbered(jsonrpc.NumberID(number)))
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	own.Context = l.passed(m.Context)
	return l.passOrAnswer(own)
}

// passed returns what the server gets of the values that came with a message; nil for nothing.
func (l *localConn) passed(values context.Context) context.Context {
	if values == nil {
		return nil
	}
	from, ok := caller.FromContext(values)
	if !ok {
		from = &caller.Caller{Principal: l.c.Client().Principal, Addr: l.c.Client().Addr}
	}
	return l.g.now.Load().passed(values, from)
}

// passOrAnswer passes a message to the bridge, or answers it.
func (l *localConn) passOrAnswer(m *jsonrpc.Message) error {
	if err := l.over(); err != nil {
		return err
	}
	e := connstate.CheckClear(m)
	if err := l.c.CheckBudget(m); e == nil && err != nil {
		e = jsonrpc.ReasonError(err.Error()+": try again later", "server_busy", true)
	}
	if e != nil {
		if m.Kind == jsonrpc.Request {
			l.c.RespondNow(m.ID, jsonrpc.NewError(m.ID, e))
		}
		return nil
	}
	l.c.Observe(m, "")
	l.c.Receive(m)
	return nil
}

// over returns why the connection is over; nil if it is not.
func (l *localConn) over() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Push sets the client, which does not get the ids of requests.
func (l *localConn) Push(receive func(msg []byte, err error)) {
	l.PushFor(func(msg []byte, _ jsonrpc.ID, err error) { receive(msg, err) })
}

// PushFor sets the client.
func (l *localConn) PushFor(receive func(msg []byte, request jsonrpc.ID, err error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.receive = receive
	l.callLocked()
}

// Recv returns the next message, for a client that has not called Push.
func (l *localConn) Recv() ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		switch {
		case len(l.queue) > 0:
			if e := l.nextLocked(); !l.isLate(e) {
				return e.Data, nil
			}
		case l.err != nil:
			return nil, l.err
		default:
			l.changed.Wait()
		}
	}
}

// Stateless reports whether the server is one of MCP 2026-07-28.
func (l *localConn) Stateless() bool { return l.bridge.Stateless() }

// Condition returns how it is with the server, and a channel that is closed when that changes.
func (l *localConn) Condition() (is asker.Condition, changed <-chan struct{}) {
	return l.bridge.Condition()
}

// Close ends the connection, and drops what the client has not read.
func (l *localConn) Close() error {
	l.c.Close(connstate.ClosedClient)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.emptyQueueLocked()
	return nil
}

// deliver gives the client an event, or keeps it while another goroutine calls the client.
func (l *localConn) deliver(e connstate.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.err != nil:
	case l.receive != nil && !l.calling: // then nothing waits
		l.calling = true
		l.callWithLocked(e)
		l.calling = false
		l.callLocked()
	case l.bytes > 0 && l.bytes+e.Size() > maxUnread:
		l.mu.Unlock()
		l.c.Close(connstate.ClosedSlow)
		l.mu.Lock()
	default:
		l.queue = append(l.queue, e)
		l.bytes += e.Size()
		l.c.CountQueued(e.Size())
		l.changed.Signal()
	}
}

// callLocked calls the client with all that waits, unless another goroutine does so.
func (l *localConn) callLocked() {
	if l.receive == nil || l.calling {
		return
	}
	l.calling = true
	for len(l.queue) > 0 {
		l.callWithLocked(l.nextLocked())
	}
	l.calling = false
	if l.err != nil && !l.told {
		l.told = true
		receive, err := l.receive, l.err
		l.mu.Unlock()
		receive(nil, "", err)
		l.mu.Lock()
	}
}

// callWithLocked calls the client with an event. It gives up mu meanwhile.
func (l *localConn) callWithLocked(e connstate.Event) {
	receive := l.receive
	l.mu.Unlock()
	defer l.mu.Lock()
	if !l.isLate(e) {
		receive(e.Data, e.Related, nil)
	}
}

// isLate reports whether an event comes after the answer to its request, and counts it then.
func (l *localConn) isLate(e connstate.Event) bool {
	if !e.IsLate() {
		return false
	}
	l.g.metrics.Dropped(metrics.DroppedUnknownProgress)
	return true
}

// nextLocked removes and returns the first event of the queue, which must have one.
func (l *localConn) nextLocked() connstate.Event {
	e := l.queue[0]
	l.queue[0] = connstate.Event{}
	l.queue = l.queue[1:]
	if len(l.queue) == 0 {
		l.queue = nil
	}
	l.bytes -= e.Size()
	l.c.CountQueued(-e.Size())
	return e
}

// emptyQueueLocked empties the queue.
func (l *localConn) emptyQueueLocked() {
	l.c.CountQueued(-l.bytes)
	l.queue, l.bytes = nil, 0
}

// tellEnd tells the client that the connection is over, after what waits for it. What its client has closed, or has not
// read, waits no longer. The connection calls it once.
func (l *localConn) tellEnd() {
	reason := l.c.Reason()
	l.mu.Lock()
	defer l.mu.Unlock()
	if reason == connstate.ClosedClient || reason == connstate.ClosedSlow {
		l.emptyQueueLocked()
	}
	l.err = whyClosed(reason)
	if l.bound {
		l.mu.Unlock()
		l.deregister()
		l.mu.Lock()
	}
	l.changed.Broadcast()
	l.callLocked()
}

// whyClosed returns the error of a connection that was closed for a reason.
func whyClosed(reason connstate.Reason) error {
	switch reason {
	case connstate.ClosedClient:
		return jsonrpc.ErrClosed
	case connstate.ClosedServer:
		return jsonrpc.ErrDismissed
	case connstate.ClosedShutdown:
		return errShutDown
	case connstate.ClosedSlow:
		return errUnread
	}
	return fmt.Errorf("the gateway closed the connection: %s", reason)
}
