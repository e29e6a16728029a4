// Package stateless presents a server of MCP 2026-07-28, which has neither an
// initialize nor a session, as one session of 2025-11-25, so that the hops above
// need not know the difference.
//
//	initialize, logging/setLevel       answered here; what they say is in each later request
//	ping                               server/discover: the answer means that the server is there
//	any other request                  one POST, with _meta and the headers that mirror it
//	input_required                     requests to the client, and the same request again with the answers
//	resources/subscribe, list_changed  one subscriptions/listen for all
//	notifications/cancelled, Close     the response is closed
//
// All that is not named there passes byte for byte.
package stateless

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/buffer"
	"github.com/mcp-sse/mcp-sse/upstream/internal/exchange"
)

// errOtherVersion is why a session is over whose server speaks another version now.
var errOtherVersion = errors.New("the server no longer speaks MCP " + mcp.VersionStateless)

// Conn presents a stateless server (MCP 2026-07-28, Streamable HTTP) as one
// session of 2025-11-25. Nothing is opened at the server: what an initialize says
// once is said anew in each request.
//
// Each request is a POST of its own, and has a goroutine until it is answered. A
// second kind of goroutine reads the changes that the server tells: see listening.
// All of them end with ctx, and Close waits for them, closeTimeout at most.
type Conn struct {
	x      *exchange.Endpoint
	ctx    context.Context // the session's: no caller's, so it is kept
	cancel context.CancelFunc
	inbox  *buffer.Queue // what Recv gives
	// running are the goroutines. None is added once closed is set.
	running sync.WaitGroup

	mu         sync.Mutex // guards all below
	closed     error      // why there are no more requests; nil while there are
	discovered json.RawMessage
	meta       requestMeta
	nextID     int64
	calls      exchange.Calls           // by the id that the session's owner gave
	tools      map[string][]paramHeader // those with mirrored arguments, by name
	left       map[string]bool          // tools that are left out, and logged as that
	asks       map[jsonrpc.ID]*ask      // by our id
	listening  listening
}

// call is a message that is being worked on.
type call struct {
	*exchange.Call
	m *jsonrpc.Message
}

// New opens a session with the server behind x. discovered is its
// answer to server/discover; nil: it will be asked.
func New(x *exchange.Endpoint, discovered json.RawMessage) *Conn {
	c := &Conn{
		x: x, discovered: discovered, inbox: buffer.NewQueue(buffer.SendLimit),
	}
	c.listening.wake = make(chan struct{}, 1)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Send hands one message over. It fails with jsonrpc.ErrBusy while the messages
// that are being worked on hold more than 8 MiB, or are as many as maxCalls.
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

// begin runs work for a message in a goroutine of its own. Before it returns it
// applies what the message changes in the session, so that the next message sees
// it.
func (c *Conn) begin(m *jsonrpc.Message, work func(*call)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		return c.closed
	}
	of, err := c.calls.Begin(c.ctx, m)
	if err != nil {
		return err
	}
	k := &call{of, m}
	c.noteLocked(k)
	c.running.Go(func() { // ends with k.Ctx at the latest
		work(k)
		c.finish(k)
	})
	return nil
}

// noteLocked stores what the session must remember of a message.
func (c *Conn) noteLocked(k *call) {
	switch k.Method {
	case mcp.MethodInitialize:
		level := c.meta.logLevel
		c.meta = newRequestMeta(k.m.Params())
		c.meta.logLevel = level
	case mcp.MethodSetLevel:
		if level, ok := jsonrpc.Member(k.m.Params(), "level"); ok && level[0] == '"' {
			c.meta.logLevel = level
		}
	case mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		c.listening.changes = append(c.listening.changes, k)
	}
}

// finish forgets a message.
func (c *Conn) finish(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls.Finish(k.Call)
}

// serve answers a request.
func (c *Conn) serve(k *call) {
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
	case method == mcp.MethodCallTool && has(k.m.Params(), "task"):
		c.fail(k, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "the server has no tasks of MCP 2025-11-25"))
	default:
		c.forward(k)
	}
}

func has(obj json.RawMessage, name string) bool {
	_, ok := jsonrpc.Member(obj, name)
	return ok
}

// initialize answers from what the server said of itself.
func (c *Conn) initialize(k *call) {
	c.mu.Lock()
	discovered := c.discovered
	c.mu.Unlock()
	if discovered == nil {
		m, release, err := c.post(k.Ctx, own(mcp.MethodDiscover), nil, nil)
		defer release()
		switch {
		case err != nil:
			c.failed(k, err)
			return
		case m.Error() != nil:
			c.refuse(k, m.Error())
			return
		}
		discovered = m.Result()
		c.mu.Lock()
		c.discovered = discovered
		c.mu.Unlock()
	}
	c.result(k, initializeResult(discovered, k.m.Params(), c.host()))
}

// host is the name of a server that does not tell its own.
func (c *Conn) host() string {
	u, err := url.Parse(c.x.URL)
	if err != nil || u.Host == "" {
		return "remote"
	}
	return u.Host
}

// ping asks the server for the least that it must answer, because the answer to a
// ping means that the server is there. What it answers does not matter.
func (c *Conn) ping(k *call) {
	_, release, err := c.post(k.Ctx, own(mcp.MethodDiscover), nil, nil)
	defer release()
	if err != nil {
		c.failed(k, err)
		return
	}
	c.result(k, json.RawMessage("{}"))
}

// own returns a request of this side, which gets its id when it is sent.
func own(method string) *jsonrpc.Message {
	m, _ := jsonrpc.Parse(jsonrpc.NewRequest("0", method, nil)) // is one
	return m
}

// notify takes a notification.
func (c *Conn) notify(m *jsonrpc.Message) error {
	switch m.Method {
	case mcp.MethodCancelled:
		id, _ := jsonrpc.Member(m.Params(), "requestId")
		c.takeBack(jsonrpc.ID(id))
	case mcp.MethodInitialized:
		return c.startListening()
	case mcp.MethodRootsChanged, mcp.MethodProgress:
		// Nobody asks for either any more.
	default:
		return c.begin(m, c.tell)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// takeBack cancels a request: the end of its response stream tells the server so.
// It gets no answer.
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
func (c *Conn) result(k *call, result json.RawMessage) {
	c.answer(k, jsonrpc.NewResult(k.ID, result))
}

// fail answers a request with an error of this side.
func (c *Conn) fail(k *call, e *jsonrpc.Error) {
	c.answer(k, jsonrpc.NewError(k.ID, e))
}

// refuse answers a request with an error of the server. A server that has been
// replaced by one of another version refuses all that follows too: the session is
// over then, and the next one finds out what it speaks.
func (c *Conn) refuse(k *call, raw json.RawMessage) {
	c.answer(k, jsonrpc.ReplaceMember(jsonrpc.NewError(k.ID, &jsonrpc.Error{}), plainError(raw), "error"))
	if exchange.ErrorCode(raw) == mcp.CodeUnsupportedVersion {
		c.end(errOtherVersion)
	}
}

// failed answers a request that the server did not answer. An error other than a
// JSON-RPC error ends the session.
func (c *Conn) failed(k *call, err error) {
	switch e, ok := errors.AsType[*jsonrpc.Error](err); {
	case ok:
		c.fail(k, e)
	case k.Ctx.Err() == nil:
		c.end(err)
	}
}

// answer answers a request, unless the client has cancelled it.
func (c *Conn) answer(k *call, msg []byte) {
	c.mu.Lock()
	unanswered := c.calls.Answer(k.Call)
	c.mu.Unlock()
	if unanswered {
		_ = c.inbox.PushFor(msg, k.ID) // fails at the end of the session, when nobody waits
	}
}

// Recv returns the next message.
func (c *Conn) Recv() ([]byte, error) { return c.inbox.Pop() }

// RecvFor returns the next message, and the request on whose response it came.
func (c *Conn) RecvFor() ([]byte, jsonrpc.ID, error) { return c.inbox.PopFor() }

// end ends the session for a reason that the server gave.
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

// Close ends the session: requests in flight are taken back.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.closed == nil {
		c.closed = jsonrpc.ErrClosed
	}
	c.mu.Unlock()
	c.inbox.Abort(jsonrpc.ErrClosed)
	c.cancel()
	done := make(chan struct{})
	go func() { // ends when all others have
		c.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(exchange.CloseTimeout):
	}
	return nil
}

// drop counts a message of the server that is thrown away.
func (c *Conn) drop(reason, why string) {
	c.x.Metrics.Dropped(reason)
	c.x.Log.Debug("message of the server dropped", "why", why)
}

var _ jsonrpc.Attributed = (*Conn)(nil)
