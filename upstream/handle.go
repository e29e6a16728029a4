package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/mcp-sse/mcp-sse/internal/buffer"
	"github.com/mcp-sse/mcp-sse/internal/caller"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/workers"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// maxRunning bounds the requests that one Handle session handles at a time: each has a
// goroutine.
const maxRunning = 16384

// Handle serves in process: a session calls the function for each message, and the
// value that it returns is the response.
//
// For a request, the function runs in a goroutine that is its own until it returns. The
// context ends when the client cancels the request (notifications/cancelled), when the
// function has returned, and when the session is closed. For a notification, and for a
// response to a request of the server, the function runs before Send returns, which keeps
// their order: it must return promptly. The context ends with the session, the returned
// value is dropped, and Send returns a panic as an error.
//
// A json.RawMessage or []byte is sent unchanged, and belongs to the session from then
// on. json.Marshal encodes any other value. A response must have the id of its request.
// A request is always answered: nil, a value without a JSON form and a panic become a
// JSON-RPC error with code -32603 that names them.
type Handle func(ctx context.Context, msg json.RawMessage) any

// Dial opens a session. It fails only when ctx has ended. With gateway.Options.PassRequest
// the contexts of the function have the values of ctx that CallerValues returns; those of a
// request have the values of its HTTP request first.
//
// Send fails with jsonrpc.ErrBusy while the requests in work hold 8 MiB, or are 16,384. A
// request is in work until its response is received, or waits for Recv in a queue of
// 8 MiB. Close ends the contexts of all requests and returns at once,
// without waiting for the functions. Their later results are dropped.
func (h Handle) Dial(ctx context.Context) (jsonrpc.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("dial handler: %w", err)
	}
	c := &handleConn{fn: h, answers: buffer.NewQueue(buffer.SendLimit), running: make(map[jsonrpc.ID]*runningCall)}
	c.ctx, c.cancel = context.WithCancel(caller.Values(ctx))
	c.workers = workers.New(c.ctx.Done())
	return c, nil
}

// handleConn is one session of a Handle.
type handleConn struct {
	fn      Handle
	workers workers.Pool
	answers *buffer.Queue
	// ctx lives as long as the session. It is no caller's, so it is kept here.
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex // guards all below
	running map[jsonrpc.ID]*runningCall
	bytes   int                 // of running
	receive func([]byte, error) // gets the answers; nil: Recv returns them
}

var _ jsonrpc.Local = (*handleConn)(nil)

// runningCall is a request whose response nobody has received.
type runningCall struct {
	id     jsonrpc.ID
	msg    []byte
	ctx    context.Context
	cancel context.CancelFunc
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
	return c.startCall(&runningCall{id: m.ID, msg: m.Raw()}, m.Context)
}

// SendRequest is Send for a request.
func (c *handleConn) SendRequest(m *jsonrpc.Message, number int64) error {
	id := jsonrpc.NumberID(number)
	return c.startCall(&runningCall{id: id, msg: m.Renumbered(id)}, m.Context)
}

// startCall calls the function for a request in a goroutine. values are those of its
// HTTP request; nil: there are none.
func (c *handleConn) startCall(k *runningCall, values context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch n := len(c.running); {
	case c.ctx.Err() != nil:
		return jsonrpc.ErrClosed
	case n >= maxRunning, n > 0 && c.bytes+len(k.msg) > buffer.SendLimit:
		return jsonrpc.ErrBusy
	case c.running[k.id] != nil:
		return fmt.Errorf("send: a request with the id %.64s is in flight", k.id)
	}
	k.ctx, k.cancel = context.WithCancel(caller.Join(c.ctx, values))
	c.running[k.id] = k
	c.bytes += len(k.msg)
	c.workers.Go(func() { c.run(k) }) // ends when the function returns
	return nil
}

func (c *handleConn) notify(m *jsonrpc.Message) (err error) {
	if c.ctx.Err() != nil {
		return jsonrpc.ErrClosed
	}
	if m.Method == mcp.MethodCancelled {
		id, _ := rawjson.Member(m.Params(), "requestId")
		c.mu.Lock()
		if k := c.running[jsonrpc.ID(id)]; k != nil {
			k.cancel()
		}
		c.mu.Unlock()
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("handler panicked: %v", p)
		}
	}()
	c.fn(c.ctx, m.Raw())
	return nil
}

// errGoexit answers the request of a handler that called runtime.Goexit.
var errGoexit = errors.New("handler ended its goroutine instead of returning a response")

// run calls the function for a request, and delivers its response. The request counts
// until the response is received, so that a client that does not read its responses keeps
// only its own session busy.
func (c *handleConn) run(k *runningCall) {
	err := errGoexit
	var response []byte
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("handler panicked: %v", p)
		}
		if err != nil {
			response = jsonrpc.NewError(k.id, jsonrpc.Errorf(jsonrpc.CodeInternalError, "%v", err))
		}
		k.cancel()
		c.deliver(response)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.running, k.id)
		c.bytes -= len(k.msg)
	}()
	response, err = responseLine(c.fn(k.ctx, k.msg))
	if err != nil && k.ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", err, k.ctx.Err())
	}
}

func (c *handleConn) deliver(response []byte) {
	c.mu.Lock()
	receive := c.receive
	c.mu.Unlock()
	switch {
	case c.ctx.Err() != nil:
	case receive != nil:
		receive(response, nil)
	default:
		_ = c.answers.Push(response, "") // fails when the session is closed
	}
}

// responseLine returns the bytes of a response on one line.
func responseLine(v any) ([]byte, error) {
	var raw []byte
	switch v := v.(type) {
	case nil:
	case json.RawMessage:
		raw = v
	case []byte:
		raw = v
	default:
		var err error
		raw, err = json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("response has no JSON form: %w", err)
		}
	}
	if len(raw) == 0 || string(raw) == "null" { // null is a nil pointer or map
		return nil, errors.New("handler returned no response")
	}
	if !bytes.ContainsAny(raw, "\r\n") {
		return raw, nil
	}
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil {
		return nil, fmt.Errorf("response is not JSON: %w", err)
	}
	return line.Bytes(), nil
}

// Recv returns the next response, in the order in which the functions returned them.
func (c *handleConn) Recv() ([]byte, error) { return c.answers.Recv() }

// Push makes the goroutines of the requests call receive with the responses.
func (c *handleConn) Push(receive func(msg []byte, err error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.receive = receive
}

// Close ends the session at once.
func (c *handleConn) Close() error {
	c.mu.Lock()
	closed, receive := c.ctx.Err() != nil, c.receive
	c.cancel()
	c.mu.Unlock()
	if closed {
		return nil
	}
	c.answers.Abort(jsonrpc.ErrClosed)
	if receive != nil {
		receive(nil, jsonrpc.ErrClosed)
	}
	return nil
}
