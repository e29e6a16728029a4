package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"sync"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/peer"
	"github.com/mcp-sse/mcp-sse/upstream/internal/buffer"
)

// maxRunning bounds the requests that one Handle session handles at a time: each has a
// goroutine.
const maxRunning = 16384

// Handle serves in process: a session calls the function for each message, and the
// value that it returns is the response.
//
// For a request, the session calls the function in a goroutine that runs nothing else
// meanwhile. In a session of Streamable HTTP this is often the goroutine of the client's
// POST. The context ends when the client cancels the request (notifications/cancelled),
// when the function has returned, and when the session is closed. For a notification, and
// for a response to a request of the server, the function runs before Send returns, which
// keeps their order: it must return promptly. The context ends with the session, the
// returned value is dropped, and Send returns a panic as an error.
//
// A json.RawMessage or []byte is sent unchanged, and belongs to the session from then
// on. json.Marshal encodes any other value. A response must have the id of its request.
// A request is always answered: nil, a value without a JSON form and a panic become a
// JSON-RPC error with code -32603 that names them.
//
// A session has no goroutine while it handles no request. Behind a gateway, up to 64
// goroutines wait for the next requests while sessions are open.
type Handle func(ctx context.Context, msg json.RawMessage) any

// Dial opens a session. It fails only when ctx has ended. The contexts of the function
// have the values of ctx that peer.Values returns, and for a request before them those of
// its HTTP request; both only with gateway.Options.PassRequest.
//
// Send fails with jsonrpc.ErrBusy while the requests in work and the responses that wait
// for Recv hold 8 MiB, or 16,384 requests are in work. Close ends the contexts of all
// requests and returns at once, without waiting for the functions. What they return
// later is dropped.
func (h Handle) Dial(ctx context.Context) (jsonrpc.Conn, error) { return h.dial(ctx, nil, nil) }

// Observed returns h with sessions that count their requests in work against held, and
// share the goroutines that run them.
func (h Handle) Observed(_ *slog.Logger, _ *metrics.Metrics, held *budget.Account) jsonrpc.Dialer {
	shared := &workers{}
	return dialFunc(func(ctx context.Context) (jsonrpc.Conn, error) { return h.dial(ctx, held, shared) })
}

func (h Handle) dial(ctx context.Context, budget *budget.Account, w *workers) (jsonrpc.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("dial handler: %w", err)
	}
	c := &handleConn{fn: h, budget: budget, workers: w}
	c.ready.L = &c.mu
	c.ctx, c.cancel = context.WithCancel(peer.Values(ctx))
	w.join()
	return c, nil
}

// handleConn is one session of a Handle.
type handleConn struct {
	fn      Handle
	budget  *budget.Account
	workers *workers
	// ctx lives as long as the session. It is no caller's, so it is kept here.
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex // guards all below
	ready   sync.Cond  // there is an answer, or the session is closed
	answers buffer.FIFO
	running *call                    // the requests in work: a doubly linked list
	count   int                      // of running
	held    int                      // bytes of running
	receive func([]byte, error) bool // gets the answers; nil: Recv returns them
	closed  bool
}

// Send hands msg to the function.
func (c *handleConn) Send(msg []byte) error {
	m, err := jsonrpc.Parse(msg)
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if m.Kind != jsonrpc.Request {
		return c.notify(m)
	}
	return c.begin(&call{conn: c, id: m.ID, msg: m.Raw()}, m)
}

// SendRequest is Send for a request.
func (c *handleConn) SendRequest(m *jsonrpc.Message, number int64, token jsonrpc.Place) error {
	return c.begin(&call{conn: c, id: jsonrpc.ID(strconv.FormatInt(number, 10)), msg: m.WithNumber(number, token)}, m)
}

// begin has the function called for a request that the client sent as m: by the goroutine
// that waits for the answer, if it can.
func (c *handleConn) begin(k *call, m *jsonrpc.Message) error {
	if err := c.admit(k, m.Context); err != nil {
		return err
	}
	k.waiter = m.Waiter
	if k.waiter == nil || !k.waiter.Take(k) {
		k.waiter = nil
		c.workers.run(k)
	}
	return nil
}

func (c *handleConn) notify(m *jsonrpc.Message) (err error) {
	if c.ctx.Err() != nil {
		return jsonrpc.ErrClosed
	}
	if m.Method == mcp.MethodCancelled {
		if id, ok := jsonrpc.Member(m.Params(), "requestId"); ok {
			c.cancelCalls(jsonrpc.ID(id))
		}
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("handler panicked: %v", p)
		}
	}()
	c.fn(c.ctx, m.Raw())
	return nil
}

func (c *handleConn) admit(k *call, values context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return jsonrpc.ErrClosed
	}
	load := c.held + c.answers.Bytes
	if load > 0 && (load+len(k.msg) > buffer.SendLimit || c.count >= maxRunning) {
		return jsonrpc.ErrBusy
	}
	if !buffer.TakeSend(c.budget, len(k.msg), load) {
		return budget.ErrBusy
	}
	k.base = peer.Join(c.ctx, values)
	k.next = c.running
	if k.next != nil {
		k.next.prev = k
	}
	c.running = k
	c.count++
	c.held += len(k.msg)
	return nil
}

func (c *handleConn) cancelCalls(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := c.running; k != nil; k = k.next {
		if k.id == id {
			k.cancel()
		}
	}
}

// run runs the function of a call, and hands over its answer.
func (c *handleConn) run(k *call) {
	var answer []byte
	defer func() {
		if p := recover(); p != nil {
			answer = fault(k.id, "handler panicked: %v", p)
		} else if answer == nil { // runtime.Goexit
			answer = fault(k.id, "handler ended its goroutine instead of returning a response")
		}
		if k.waiter != nil {
			k.waiter.Returned()
			k.waiter = nil // the function may keep its context
		}
		c.finish(k, answer)
	}()
	answer = encode(k, c.fn(k, k.msg))
}

// finish hands over the answer. The call counts as running until the answer is taken, so
// that a client that does not read its answers keeps only its own session busy.
func (c *handleConn) finish(k *call, answer []byte) {
	k.cancel()
	c.mu.Lock()
	receive, closed := c.receive, c.closed
	if receive != nil && !closed {
		c.mu.Unlock()
		receive(answer, nil)
		c.mu.Lock()
	}
	defer c.mu.Unlock()
	c.unlinkLocked(k)
	if receive == nil && !closed {
		c.answers.Push(answer)
		c.ready.Signal()
	}
}

func (c *handleConn) unlinkLocked(k *call) {
	if k.prev != nil {
		k.prev.next = k.next
	} else {
		c.running = k.next
	}
	if k.next != nil {
		k.next.prev = k.prev
	}
	c.count--
	c.held -= len(k.msg)
	c.budget.Give(len(k.msg))
	k.msg, k.prev, k.next = nil, nil, nil
}

// encode returns the bytes of a response, which are never nil.
func encode(k *call, v any) []byte {
	var raw []byte
	switch v := v.(type) {
	case nil:
	case json.RawMessage:
		raw = v
	case []byte:
		raw = v
	default:
		b, err := json.Marshal(v)
		if err != nil {
			return fault(k.id, "response has no JSON form: %v", err)
		}
		if string(b) != "null" { // a nil pointer or map
			raw = b
		}
	}
	if len(raw) == 0 {
		if err := k.Err(); err != nil {
			return fault(k.id, "handler returned no response: %v", err)
		}
		return fault(k.id, "handler returned no response")
	}
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil {
		return fault(k.id, "response is not JSON: %v", err)
	}
	return line.Bytes()
}

func fault(id jsonrpc.ID, format string, args ...any) []byte {
	return jsonrpc.NewError(id, jsonrpc.Errorf(jsonrpc.CodeInternalError, format, args...))
}

// Recv returns the next response, in the order in which the functions returned them.
func (c *handleConn) Recv() ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.answers.Len() == 0 && !c.closed {
		c.ready.Wait()
	}
	if c.closed {
		return nil, jsonrpc.ErrClosed
	}
	return c.answers.Pop(), nil
}

// Push makes the goroutines of the requests call receive with the responses, instead of
// keeping them for Recv.
func (c *handleConn) Push(receive func(msg []byte, err error) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.receive = receive
}

// Close ends the session at once.
func (c *handleConn) Close() error {
	c.mu.Lock()
	closed, receive := c.closed, c.receive
	c.closed = true
	c.answers = buffer.FIFO{}
	c.ready.Broadcast()
	c.mu.Unlock()
	c.cancel()
	if !closed {
		c.workers.leave()
	}
	if receive != nil && !closed {
		receive(nil, jsonrpc.ErrClosed)
	}
	return nil
}

var (
	_ jsonrpc.Pusher        = (*handleConn)(nil)
	_ jsonrpc.RequestSender = (*handleConn)(nil)
)
