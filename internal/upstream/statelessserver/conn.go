// Package statelessserver presents a server of MCP 2026-07-28, which has neither an
// initialize nor sessions, as one session of 2025-11-25. The packages above need not
// know the difference. Each request is a POST. One that has the _meta of 2026-07-28
// already passes as it is, and so does its result. Package internal/stateless has the table
// of what becomes what; everything else passes byte for byte.
package statelessserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mcp-sse/mcp-sse/internal/buffer"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/stateless"
	"github.com/mcp-sse/mcp-sse/internal/upstream/exchange"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Conn is a session with a stateless server. It opens nothing there: each request repeats
// what the client's initialize said.
//
// Each request is a POST in its own goroutine, until it is answered; so is each stream of
// changes, until it is no longer wanted. All end with ctx. Close waits for them, at most 2 s.
type Conn struct {
	*buffer.Queue // of what the server and the gateway have sent; a message about a change belongs to no request

	x      *exchange.Endpoint
	ctx    context.Context // lives as long as the session; it is no caller's, so it is kept here
	cancel context.CancelFunc
	// running are the goroutines. None is added after closed is set.
	running sync.WaitGroup
	alive   singleflight.Group // asks whether the server is there
	tools   stateless.Tools
	// roundTrip sends a request with its headers, and returns the response, until ctx ends.
	// other takes the messages before it; its error ends the round trip.
	roundTrip func(ctx context.Context, id jsonrpc.ID, body []byte, h http.Header,
		other func(*jsonrpc.Message) error) (*jsonrpc.Message, error)
	// discovered is the server's result of server/discover.
	discovered json.RawMessage

	mu        sync.Mutex // guards all below
	closed    error      // why the session is over; nil while it is not
	meta      stateless.Meta
	nextID    int64
	calls     exchange.Calls      // by the ids that the owner of the session gave
	asks      map[jsonrpc.ID]*ask // by our ids
	lists     bool                // the changes of lists are followed
	resources map[string]*changes // that the client subscribes to, by URI
}

var (
	_ jsonrpc.Attributed = (*Conn)(nil)
	_ jsonrpc.Stateless  = (*Conn)(nil)
)

// Stateless reports true.
func (c *Conn) Stateless() bool { return true }

// New returns a session with the server behind x. discovered is the server's result
// of server/discover.
func New(x *exchange.Endpoint, discovered json.RawMessage) *Conn {
	c := &Conn{
		x: x, discovered: discovered, Queue: buffer.NewQueue(buffer.SendLimit),
		asks: make(map[jsonrpc.ID]*ask), resources: make(map[string]*changes),
	}
	c.ctx, c.cancel = context.WithCancel(x.Values)
	c.roundTrip = c.overHTTP
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
		return c.serveRequest(m)
	case m.Kind == jsonrpc.Response:
		return c.answered(m)
	}
	return c.notify(m)
}

// serveRequest serves a request in its own goroutine. Before it returns, it applies what the
// request changes in the session, so that the next message sees it.
func (c *Conn) serveRequest(m *jsonrpc.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		return c.closed
	}
	k, err := c.calls.Begin(c.ctx, m)
	if err != nil {
		return err
	}
	work := c.serve
	uri, _ := m.Param("uri").Text()
	switch k.Method {
	case mcp.MethodInitialize:
		level := c.meta.LogLevel
		c.meta = stateless.MetaOf(m.Params())
		c.meta.LogLevel = level
	case mcp.MethodSetLevel:
		if level := m.Param("level"); level.Value != nil && level.Value[0] == '"' {
			c.meta.LogLevel = level.Value
		}
	case mcp.MethodSubscribe:
		work = c.subscribeLocked(uri)
	case mcp.MethodUnsubscribe:
		if s := c.resources[uri]; s != nil {
			delete(c.resources, uri)
			s.cancel()
		}
	}
	c.running.Go(func() { // ends with k.Ctx at the latest
		work(k)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls.Finish(k)
	})
	return nil
}

func (c *Conn) serve(k *exchange.Call) {
	switch method := k.Method; {
	case method == mcp.MethodInitialize:
		c.initialize(k)
	case method == mcp.MethodPing:
		c.ping(k)
	case method == mcp.MethodSetLevel, method == mcp.MethodUnsubscribe:
		c.result(k, json.RawMessage("{}"))
	case method == mcp.MethodDiscover, method == mcp.MethodListen, strings.HasPrefix(method, "tasks/"):
		c.fail(k, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %.64s", method))
	case method == mcp.MethodCallTool && k.Msg.Param("task").Value != nil:
		c.fail(k, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "the server has no tasks of MCP 2025-11-25"))
	default:
		c.forward(k)
	}
}

func (c *Conn) initialize(k *exchange.Call) {
	name := "remote" // of a server that gives none
	if u, err := url.Parse(c.x.URL); err == nil && u.Host != "" {
		name = u.Host
	}
	c.result(k, stateless.InitializeResult(c.discovered, k.Msg.Params(), name))
}

// ping asks for server/discover, which every server of this version answers. Any
// response shows that the server is there.
func (c *Conn) ping(k *exchange.Call) {
	if _, err := c.post(k.Ctx, ownRequest(mcp.MethodDiscover), nil, nil); err != nil {
		c.failed(k, err)
		return
	}
	c.result(k, json.RawMessage("{}"))
}

// ownRequest returns a request of the gateway. post gives it an id.
func ownRequest(method string) *jsonrpc.Message {
	m, _ := jsonrpc.Parse(jsonrpc.NewRequest("0", method, nil)) // is valid
	return m
}

// notify takes a notification. Over HTTP, this version has none of a client.
func (c *Conn) notify(m *jsonrpc.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m.Method {
	case mcp.MethodCancelled: // the end of its response tells the server; the request gets no answer
		if k := c.calls.Open(jsonrpc.ID(m.Param("requestId").Value)); k != nil && k.Method != mcp.MethodInitialize {
			c.calls.Answer(k)
			k.Cancel()
		}
	case mcp.MethodInitialized:
		if lists := stateless.ChangingLists(c.discovered); c.closed == nil && !c.lists && !lists.IsEmpty() {
			c.lists = true
			c.followLocked(lists)
		}
	case mcp.MethodRootsChanged, mcp.MethodProgress: // this version has neither
	default:
		c.x.Metrics.Dropped(metrics.DroppedUndelivered)
	}
	return c.closed
}

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
		c.endSession(errOtherVersion)
	}
}

// failed answers a request that got no response. An error that is not a
// *jsonrpc.Error ends the session.
func (c *Conn) failed(k *exchange.Call, err error) {
	switch e, ok := errors.AsType[*jsonrpc.Error](err); {
	case ok:
		c.fail(k, e)
	case k.Ctx.Err() == nil:
		c.endSession(err)
	}
}

// answer answers a request, unless the client has cancelled it.
func (c *Conn) answer(k *exchange.Call, msg []byte) {
	c.mu.Lock()
	unanswered := c.calls.Answer(k)
	c.mu.Unlock()
	if unanswered {
		_ = c.Queue.Push(msg, k.ID) // fails at the end of the session, when nobody waits
	}
}

// endSession ends the session.
func (c *Conn) endSession(err error) {
	if c.setClosed(err) {
		c.x.Log.Warn("server not reached", "err", err)
	}
	c.Queue.End(err)
	c.cancel()
}

// setClosed notes why the session is over, and reports whether it was not.
func (c *Conn) setClosed(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.closed == nil
	if first {
		c.closed = err
	}
	return first
}

// Close ends the session and cancels the requests in flight. It takes at most 2 s.
func (c *Conn) Close() error {
	c.setClosed(jsonrpc.ErrClosed)
	c.Queue.Abort(jsonrpc.ErrClosed)
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

// drop takes a message that came before the answer to a request, and means nothing there:
// servers of this version must not send requests.
func (c *Conn) drop(m *jsonrpc.Message) {
	reason := metrics.DroppedUnknownRequest
	switch m.Kind {
	case jsonrpc.Response:
		reason = metrics.DroppedUnknownResponse
	case jsonrpc.Invalid:
		reason = metrics.DroppedInvalidMessage
	}
	c.x.Metrics.Dropped(reason)
	c.x.Log.Debug("message of the server dropped", "why", m.String())
}
