package upstream

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
)

// errOtherVersion is why a session is over whose server speaks another version now.
var errOtherVersion = errors.New("the server no longer speaks MCP " + mcp.VersionStateless)

// modernConn presents a stateless server (MCP 2026-07-28, Streamable HTTP) as one
// session of 2025-11-25. Nothing is opened at the server: what an initialize says
// once is said anew in each request.
//
// Each request is a POST of its own, and has a goroutine until it is answered. A
// second kind of goroutine reads the changes that the server tells: see listening.
// All of them end with ctx, and Close waits for them, closeTimeout at most.
type modernConn struct {
	x      *exchange
	ctx    context.Context // the session's: no caller's, so it is kept
	cancel context.CancelFunc
	inbox  *queue // what Recv gives
	// running are the goroutines. None is added once closed is set.
	running sync.WaitGroup

	mu         sync.Mutex // guards all below
	closed     error      // why there are no more requests; nil while there are
	discovered json.RawMessage
	meta       requestMeta
	nextID     int64
	calls      map[jsonrpc.ID]*modernCall // by the id that the session's owner gave it
	count      int                        // of running messages
	held       int                        // their bytes
	tools      map[string][]paramHeader   // those with mirrored arguments, by name
	left       map[string]bool            // tools that are left out, and logged as that
	asks       map[jsonrpc.ID]*ask        // by our id
	listening  listening
}

// modernCall is a message that is being worked on.
type modernCall struct {
	m      *jsonrpc.Message
	ctx    context.Context // ends when it is cancelled, and with the session
	cancel context.CancelFunc
}

// newModernConn opens a session with the server behind x. discovered is its
// answer to server/discover; nil: it will be asked.
func newModernConn(x *exchange, discovered json.RawMessage) *modernConn {
	c := &modernConn{
		x: x, discovered: discovered, inbox: newQueue(sendLimit),
		calls: make(map[jsonrpc.ID]*modernCall),
	}
	c.listening.wake = make(chan struct{}, 1)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Send hands one message over. It fails with jsonrpc.ErrBusy while the messages
// that are being worked on hold more than 8 MiB, or are as many as maxCalls.
func (c *modernConn) Send(msg []byte) error {
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

// begin has work done for a message in a goroutine of its own. What the message
// changes in the session is changed before begin returns: the next message finds
// it so.
func (c *modernConn) begin(m *jsonrpc.Message, work func(*modernCall)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed != nil:
		return c.closed
	case c.count >= maxCalls, c.held > 0 && c.held+len(m.Raw())+itemCost > sendLimit:
		return jsonrpc.ErrBusy
	case m.Kind == jsonrpc.Request && c.calls[m.ID] != nil:
		return fmt.Errorf("send: a request with the id %.64s is in flight", m.ID)
	}
	k := &modernCall{m: m}
	k.ctx, k.cancel = context.WithCancel(c.ctx)
	c.count++
	c.held += len(m.Raw()) + itemCost
	if m.Kind == jsonrpc.Request {
		c.calls[m.ID] = k
	}
	c.noteLocked(k)
	c.running.Go(func() { // ends with k.ctx at the latest
		work(k)
		c.finish(k)
	})
	return nil
}

// noteLocked takes from a message what the session must remember.
func (c *modernConn) noteLocked(k *modernCall) {
	switch k.m.Method {
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
func (c *modernConn) finish(k *modernCall) {
	k.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count--
	c.held -= len(k.m.Raw()) + itemCost
	c.removeLocked(k)
}

// removeLocked reports whether the request was unanswered: who gets true answers.
func (c *modernConn) removeLocked(k *modernCall) bool {
	if k.m.Kind != jsonrpc.Request || c.calls[k.m.ID] != k {
		return false
	}
	delete(c.calls, k.m.ID)
	return true
}

// serve answers a request.
func (c *modernConn) serve(k *modernCall) {
	switch method := k.m.Method; {
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
func (c *modernConn) initialize(k *modernCall) {
	c.mu.Lock()
	discovered := c.discovered
	c.mu.Unlock()
	if discovered == nil {
		m, release, err := c.post(k.ctx, own(mcp.MethodDiscover), nil, nil)
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
func (c *modernConn) host() string {
	u, err := url.Parse(c.x.url)
	if err != nil || u.Host == "" {
		return "remote"
	}
	return u.Host
}

// ping asks the server for the least that it must answer, because the answer to a
// ping means that the server is there. What it answers does not matter.
func (c *modernConn) ping(k *modernCall) {
	_, release, err := c.post(k.ctx, own(mcp.MethodDiscover), nil, nil)
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
func (c *modernConn) notify(m *jsonrpc.Message) error {
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
func (c *modernConn) takeBack(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.calls[id]; k != nil && k.m.Method != mcp.MethodInitialize {
		c.removeLocked(k)
		k.cancel()
	}
}

// mint returns an id for the wire.
func (c *modernConn) mint() jsonrpc.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextID++
	return jsonrpc.ID(strconv.FormatInt(c.nextID, 10))
}

// result answers a request.
func (c *modernConn) result(k *modernCall, result json.RawMessage) {
	c.answer(k, jsonrpc.NewResult(k.m.ID, result))
}

// fail answers a request with an error of this side.
func (c *modernConn) fail(k *modernCall, e *jsonrpc.Error) {
	c.answer(k, jsonrpc.NewError(k.m.ID, e))
}

// refuse answers a request with an error of the server. A server that has been
// replaced by one of another version refuses all that follows too: the session is
// over then, and the next one finds out what it speaks.
func (c *modernConn) refuse(k *modernCall, raw json.RawMessage) {
	c.answer(k, jsonrpc.ReplaceMember(jsonrpc.NewError(k.m.ID, &jsonrpc.Error{}), plainError(raw), "error"))
	if errorCode(raw) == mcp.CodeUnsupportedVersion {
		c.end(errOtherVersion)
	}
}

// failed answers a request that has not been answered by the server. An error
// that is none of JSON-RPC ends the session.
func (c *modernConn) failed(k *modernCall, err error) {
	switch e, ok := errors.AsType[*jsonrpc.Error](err); {
	case ok:
		c.fail(k, e)
	case k.ctx.Err() == nil:
		c.end(err)
	}
}

// answer gives the answer to a request, unless that was taken back.
func (c *modernConn) answer(k *modernCall, msg []byte) {
	c.mu.Lock()
	unanswered := c.removeLocked(k)
	c.mu.Unlock()
	if unanswered {
		_ = c.inbox.pushFor(msg, k.m.ID) // fails at the end of the session, when nobody waits
	}
}

// Recv returns the next message.
func (c *modernConn) Recv() ([]byte, error) { return c.inbox.pop() }

// RecvFor returns the next message, and the request on whose response it came.
func (c *modernConn) RecvFor() ([]byte, jsonrpc.ID, error) { return c.inbox.popFor() }

// end ends the session for a reason that the server gave.
func (c *modernConn) end(err error) {
	c.mu.Lock()
	first := c.closed == nil
	if first {
		c.closed = err
	}
	c.mu.Unlock()
	if first {
		c.x.log.Warn("server not reached", "err", err)
	}
	c.inbox.end(err)
	c.cancel()
}

// Close ends the session: requests in flight are taken back.
func (c *modernConn) Close() error {
	c.mu.Lock()
	if c.closed == nil {
		c.closed = jsonrpc.ErrClosed
	}
	c.mu.Unlock()
	c.inbox.abort(jsonrpc.ErrClosed)
	c.cancel()
	done := make(chan struct{})
	go func() { // ends when all others have
		c.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(closeTimeout):
	}
	return nil
}

// drop counts a message of the server that is thrown away.
func (c *modernConn) drop(reason, why string) {
	c.x.metrics.Dropped(reason)
	c.x.log.Debug("message of the server dropped", "why", why)
}

var _ jsonrpc.Attributed = (*modernConn)(nil)
