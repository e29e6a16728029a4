// Package stateless presents a server of MCP 2026-07-28, which has neither an
// initialize nor sessions, as one session of 2025-11-25. The packages above need not
// know the difference.
//
//	initialize, logging/setLevel       answered here; every later request carries what they say
//	ping                               server/discover: its answer shows that the server is there
//	any other request                  one POST, with _meta and the headers that mirror it
//	input_required                     requests to the client, then the same request with the answers
//	resources/subscribe, list_changed  one subscriptions/listen for all
//	notifications/cancelled, Close     close the response
//
// Everything else passes byte for byte.
package stateless

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/mirror"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/upstream/internal/buffer"
	"github.com/mcp-sse/mcp-sse/upstream/internal/exchange"
)

// Conn presents a stateless server (MCP 2026-07-28, Streamable HTTP) as one session
// of 2025-11-25. It opens nothing at the server: each request repeats what the
// client's initialize said.
//
// Each request is a POST in its own goroutine, until it is answered. Another
// goroutine follows the changes that the server reports: see listening. All end with
// ctx. Close waits for them, at most 2 s.
type Conn struct {
	x      *exchange.Endpoint
	ctx    context.Context // lives as long as the session; it is no caller's, so it is kept here
	cancel context.CancelFunc
	inbox  *buffer.Queue // for Recv
	// running are the goroutines. None is added after closed is set.
	running sync.WaitGroup
	alive   singleflight.Group // asks whether the server is there

	mu         sync.Mutex // guards all below
	closed     error      // why the session is over; nil while it is not
	discovered json.RawMessage
	meta       requestMeta
	nextID     int64
	calls      exchange.Calls            // by the ids that the owner of the session gave
	tools      map[string][]mirror.Param // tools with mirrored arguments, by name
	left       map[string]bool           // tools that are left out and logged
	asks       map[jsonrpc.ID]*ask       // by our ids
	listening  listening
}

var _ jsonrpc.Attributed = (*Conn)(nil)

// New returns a session with the server behind x. discovered is the server's result
// of server/discover; nil: initialize asks for it.
func New(x *exchange.Endpoint, discovered json.RawMessage) *Conn {
	c := &Conn{x: x, discovered: discovered, inbox: buffer.NewQueue(buffer.SendLimit, x.Held)}
	c.calls.Held = x.Held
	c.listening.wake = make(chan struct{}, 1)
	c.ctx, c.cancel = x.Session()
	return c
}

// Send takes one message. It fails with jsonrpc.ErrBusy while 4096 messages, or 8 MiB
// of them, are in work, and with the reason after the end of the session.
func (c *Conn) Send(msg []byte) error {
	m, err := jsonrpc.Parse(msg)
	switch {
	case err != nil:
		return fmt.Errorf("send: %w", err)
	case m.Kind == jsonrpc.Request:
		return c.begin(m, c.serve)
	case m.Kind == jsonrpc.Response:
		return c.answered(m)
	}
	return c.notify(m)
}

// begin runs work for a message in its own goroutine. Before it returns, it applies
// what the message changes in the session, so that the next message sees it.
func (c *Conn) begin(m *jsonrpc.Message, work func(*exchange.Call)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		return c.closed
	}
	k, err := c.calls.Begin(c.ctx, m)
	if err != nil {
		return err
	}
	c.noteLocked(k)
	c.running.Go(func() { // ends with k.Ctx at the latest
		work(k)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls.Finish(k)
	})
	return nil
}

// noteLocked stores what the session must remember of a message.
func (c *Conn) noteLocked(k *exchange.Call) {
	switch params := k.Msg.Params(); k.Method {
	case mcp.MethodInitialize:
		level := c.meta.logLevel
		c.meta = newRequestMeta(params)
		c.meta.logLevel = level
	case mcp.MethodSetLevel:
		if level, ok := jsonrpc.Member(params, "level"); ok && level[0] == '"' {
			c.meta.logLevel = level
		}
	case mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		c.listening.changes = append(c.listening.changes, k)
	}
}

// serve answers a request.
func (c *Conn) serve(k *exchange.Call) {
	switch method := k.Method; {
	case method == mcp.MethodInitialize:
		c.initialize(k)
	case method == mcp.MethodPing:
		c.ping(k)
	case method == mcp.MethodSetLevel:
		c.result(k, json.RawMessage("{}"))
	case method == mcp.MethodSubscribe, method == mcp.MethodUnsubscribe:
		c.subscription(k)
	case method == mcp.MethodDiscover, method == mcp.MethodListen, strings.HasPrefix(method, "tasks/"):
		c.fail(k, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %.64s", method))
	case method == mcp.MethodCallTool && has(k.Msg.Params(), "task"):
		c.fail(k, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "the server has no tasks of MCP 2025-11-25"))
	default:
		c.forward(k)
	}
}

func has(obj json.RawMessage, name string) bool {
	_, ok := jsonrpc.Member(obj, name)
	return ok
}

// notify takes a notification.
func (c *Conn) notify(m *jsonrpc.Message) error {
	switch m.Method {
	case mcp.MethodCancelled:
		id, _ := jsonrpc.Member(m.Params(), "requestId")
		c.takeBack(jsonrpc.ID(id))
	case mcp.MethodInitialized:
		return c.startListening()
	case mcp.MethodRootsChanged, mcp.MethodProgress: // this version has neither
	default:
		return c.begin(m, c.tell)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// takeBack cancels a request: the end of its response tells the server. The request
// gets no answer.
func (c *Conn) takeBack(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.calls.Open(id); k != nil && k.Method != mcp.MethodInitialize {
		c.calls.Answer(k)
		k.Cancel()
	}
}

// mint returns an id for the wire.
func (c *Conn) mint() jsonrpc.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextID++
	return jsonrpc.ID(strconv.FormatInt(c.nextID, 10))
}

// result answers a request.
func (c *Conn) result(k *exchange.Call, result json.RawMessage) {
	c.answer(k, jsonrpc.NewResult(k.ID, result))
}

// fail answers a request with an error of the gateway.
func (c *Conn) fail(k *exchange.Call, e *jsonrpc.Error) {
	c.answer(k, jsonrpc.NewError(k.ID, e))
}

// refuse answers a request with an error of the server. If another version has
// replaced the server, all later requests fail too: the session ends, and the next
// one finds out what the server speaks.
func (c *Conn) refuse(k *exchange.Call, m *jsonrpc.Message) {
	if e := translateError(m); e != nil {
		c.fail(k, e)
	} else {
		c.answer(k, m.WithID(k.ID))
	}
	if exchange.ErrorCode(m) == mcp.CodeUnsupportedVersion {
		c.end(errOtherVersion)
	}
}

// failed answers a request that got no response. An error that is not a
// *jsonrpc.Error ends the session.
func (c *Conn) failed(k *exchange.Call, err error) {
	switch e, ok := errors.AsType[*jsonrpc.Error](err); {
	case ok:
		c.fail(k, e)
	case k.Ctx.Err() == nil:
		c.end(err)
	}
}

// answer answers a request, unless the client has cancelled it.
func (c *Conn) answer(k *exchange.Call, msg []byte) {
	c.mu.Lock()
	unanswered := c.calls.Answer(k)
	c.mu.Unlock()
	if unanswered {
		_ = c.inbox.PushFor(msg, k.ID) // fails at the end of the session, when nobody waits
	}
}

// Recv returns the next message of the server.
func (c *Conn) Recv() ([]byte, error) { return c.inbox.Pop() }

// RecvFor is Recv. It also returns the id of the request on whose response the
// message came; empty for a message about a change.
func (c *Conn) RecvFor() ([]byte, jsonrpc.ID, error) { return c.inbox.PopFor() }

// end ends the session because of err.
func (c *Conn) end(err error) {
	c.mu.Lock()
	first := c.closed == nil
	if first {
		c.closed = err
	}
	c.mu.Unlock()
	if first {
		c.x.Log.Warn("server not reached", "err", err)
	}
	c.inbox.End(err)
	c.cancel()
}

// Close ends the session and cancels the requests in flight. It takes at most 2 s.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.closed == nil {
		c.closed = jsonrpc.ErrClosed
	}
	c.mu.Unlock()
	c.inbox.Abort(jsonrpc.ErrClosed)
	c.cancel()
	done := make(chan struct{})
	go func() { // ends when all others have ended
		c.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(exchange.CloseTimeout):
	}
	return nil
}

// beside takes a message that came before the answer to a request. Servers of this
// version must not send requests there.
func (c *Conn) beside(m *jsonrpc.Message, notify func(*jsonrpc.Message) error) error {
	reason, why := metrics.DroppedUnknownRequest, m.String()
	switch m.Kind {
	case jsonrpc.Notification:
		if notify != nil {
			return notify(m)
		}
	case jsonrpc.Response:
		reason, why = metrics.DroppedUnknownResponse, "response to another request"
	case jsonrpc.Invalid:
		reason = metrics.DroppedInvalidMessage
	}
	c.x.Metrics.Dropped(reason)
	c.x.Log.Debug("message of the server dropped", "why", why)
	return nil
}
