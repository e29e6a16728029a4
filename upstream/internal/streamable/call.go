package streamable

import (
	"context"
	"net/http"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/upstream/internal/exchange"
)

// Call is a request to a server over Streamable HTTP. What it adds to the call of
// exchange belongs to the goroutine of the request.
type Call struct {
	*exchange.Call
	msg      []byte          // nil once it is posted
	wait     <-chan struct{} // not to be posted before it is closed; nil: at once
	answered bool
	invalid  bool // there was a message that is none
	cursor   cursor
}

// cursor is how far the stream of a response has been read.
type cursor struct {
	id    string        // of the last event; empty: it cannot be resumed
	retry time.Duration // the pause before that which the server asks for; 0: none
}

func (c *cursor) note(in exchange.Incoming) {
	c.id = in.ID
	if in.Retry > 0 {
		c.retry = in.Retry
	}
}

// Begin notes a request as in flight. The caller must call Continue or Reject, or
// close the session.
func (c *Conn) Begin(m *jsonrpc.Message) (*Call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	of, err := c.calls.Begin(c.ctx, m)
	if err != nil {
		return nil, err
	}
	k := &Call{Call: of, msg: m.Raw()}
	if m.Method != mcp.MethodInitialize {
		k.wait = c.accepted
	}
	return k, nil
}

// Continue reads the response to a request that the caller has posted, or says why
// there is none.
func (c *Conn) Continue(k *Call, resp *http.Response, err error) {
	c.start(k, func(k *Call) { c.take(k, resp, err) })
}

// Reject answers a request with an error.
func (c *Conn) Reject(k *Call, e *jsonrpc.Error) {
	c.fail(k, e)
	c.finish(k)
}

// finish forgets a request, and ends its response.
func (c *Conn) finish(k *Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls.Finish(k.Call)
}

// canceled ends the response to a cancelled request soon.
func (c *Conn) canceled(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.calls.Open(id); k != nil {
		c.calls.Linger(k)
	}
}

// answer hands on the answer to a request, whose id is free from then on. The
// response may go on for a moment.
func (c *Conn) answer(k *Call, response []byte) error {
	k.answered = true
	c.mu.Lock()
	c.calls.Answer(k.Call)
	c.calls.Linger(k.Call)
	c.mu.Unlock()
	return c.in.PushFor(response, k.ID)
}

// ask posts a request and reads its response.
func (c *Conn) ask(k *Call) {
	if k.wait != nil {
		select {
		case <-k.wait:
		case <-k.Ctx.Done():
			c.finish(k)
			return
		}
	}
	resp, err := c.x.Do(k.Ctx, http.MethodPost, k.msg, c.header(""))
	c.take(k, resp, err)
}

// take reads the response to a request that was posted.
func (c *Conn) take(k *Call, resp *http.Response, err error) {
	defer c.finish(k)
	k.msg = nil
	switch {
	case err == nil:
	case k.Ctx.Err() != nil: // cancelled, or the session is over: nobody waits
		return
	case exchange.Unreached(err):
		c.unreachable(err)
		return
	default:
		c.lose(k, err)
		return
	}
	defer func() { resp.Body.Close() }()
	kind := exchange.ContentType(resp)
	switch {
	case resp.StatusCode >= 300:
		c.refuse(k, resp)
		return
	case kind != exchange.TypeJSON && kind != exchange.TypeEvents:
		c.fail(k, exchange.NotAnAnswer(resp))
		return
	case k.Method == mcp.MethodInitialize:
		c.opened(resp)
	}
	err = c.x.Read(resp, func(in exchange.Incoming) error { return c.receive(k, in) })
	if k.answered || k.Ctx.Err() != nil {
		return
	}
	if kind == exchange.TypeEvents && k.cursor.id != "" {
		c.resume(k)
		return
	}
	c.lose(k, err)
}

// opened notes the id of the session, with which the server answers an initialize.
func (c *Conn) opened(resp *http.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session = resp.Header.Get(exchange.HeaderSession)
}

// receive takes one message of the response to a request.
func (c *Conn) receive(k *Call, in exchange.Incoming) error {
	k.cursor.note(in)
	switch {
	case in.TooLong:
		c.x.Metrics.Dropped(metrics.DroppedTooLong)
		c.fail(k, exchange.TooLong(c.x.Limit))
		return exchange.ErrAnswered
	case in.Data == nil:
		return nil
	}
	for _, data := range exchange.SplitBatch(in.Data) {
		if err := c.deliver(k, data); err != nil {
			return err
		}
	}
	return nil
}

// deliver hands on one message that came with a request. An answer without an id
// is the one to that request: only what belongs to it comes with it.
func (c *Conn) deliver(k *Call, data []byte) error {
	m, err := jsonrpc.Parse(data)
	switch {
	case err != nil && (m == nil || m.ID == ""):
		if !k.invalid { // once for a response: there may be many
			c.x.Log.Warn("server sent an invalid message", "err", err)
		}
		k.invalid = true
		return nil
	case m.Kind == jsonrpc.Response && m.ID == jsonrpc.Null:
		return c.answer(k, m.WithID(k.ID))
	case m.ID != k.ID || m.Kind == jsonrpc.Request:
		return c.in.PushFor(data, k.ID)
	case k.Method == mcp.MethodInitialize:
		c.negotiated(m)
	}
	return c.answer(k, data)
}

// negotiated notes the protocol version, which later requests carry (MCP
// 2025-06-18, basic/transports).
func (c *Conn) negotiated(m *jsonrpc.Message) {
	raw, _ := jsonrpc.Member(m.Result(), "protocolVersion")
	version, ok := jsonrpc.Text(raw)
	if !ok || len(version) > 64 || !exchange.ValidHeader("X", []string{version}) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = version
}

// refuse answers a request whose response is unsuccessful, or ends the session.
func (c *Conn) refuse(k *Call, resp *http.Response) {
	r := exchange.ReadRefusal(resp, k.ID, c.hasSession())
	if r.Over != nil {
		c.End(r.Over, r.Over == exchange.ErrForgotten)
		return
	}
	_ = c.answer(k, r.Answer) // fails when nobody waits any more
}

// lose answers a request whose response broke off. If the server turns out to be
// gone, the session ends instead, and with it all requests.
func (c *Conn) lose(k *Call, err error) {
	switch {
	case k.invalid:
		c.fail(k, exchange.InvalidResponse("it is no JSON-RPC message"))
	case !c.lives(k):
	case err != nil:
		c.fail(k, exchange.LostResponse(exchange.PlainCause(err)))
	default:
		c.fail(k, exchange.LostResponse("the response ended without it"))
	}
}

// fail answers a request with an error of ours.
func (c *Conn) fail(k *Call, e *jsonrpc.Error) {
	_ = c.answer(k, jsonrpc.NewError(k.ID, e)) // fails when nobody waits any more
}

// lives finds out whether the server still has the session, after a response of it
// has broken off. A server that dies takes all responses along, and then the session
// is over: the requests are lost with it, and those that may be are repeated on the
// next. One question at a time is asked, for all of them.
func (c *Conn) lives(k *Call) bool {
	if k.Method == mcp.MethodInitialize { // there is no session to be asked about
		return true
	}
	c.mu.Lock()
	if c.err == nil && c.asking == nil {
		asking := make(chan struct{})
		c.asking = asking
		c.work.Go(func() { // ends after aliveTimeout, or with the session
			ctx, cancel := context.WithTimeout(c.ctx, exchange.AliveTimeout)
			defer cancel()
			question, _ := jsonrpc.Parse(jsonrpc.NewRequest(`"alive"`, mcp.MethodPing, nil)) // is one
			c.postOut(ctx, question)
			c.mu.Lock()
			c.asking = nil
			c.mu.Unlock()
			close(asking)
		})
	}
	asking := c.asking
	c.mu.Unlock()
	if asking != nil {
		select {
		case <-asking:
		case <-k.Ctx.Done():
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil
}
