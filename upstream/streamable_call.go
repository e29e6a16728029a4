package upstream

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// remoteCall is a request to a server over Streamable HTTP.
type remoteCall struct {
	id     jsonrpc.ID
	method string
	msg    []byte // nil once it is posted
	size   int
	ctx    context.Context // ends with the session, by cancel, and when all is done
	cancel context.CancelFunc
	wait   <-chan struct{} // not to be posted before it is closed; nil: at once
	timer  *time.Timer     // calls cancel soon; nil while there is no reason. Guarded by the session's mu

	// The rest belongs to the goroutine of the request.
	answered bool
	invalid  bool // there was a message that is none
	cursor   cursor
}

// cursor is how far the stream of a response has been read.
type cursor struct {
	id    string        // of the last event; empty: it cannot be resumed
	retry time.Duration // the pause before that which the server asks for; 0: none
}

func (c *cursor) note(in incoming) {
	c.id = in.id
	if in.retry > 0 {
		c.retry = in.retry
	}
}

// enter notes a request as in flight. Whoever enters it has it finish.
func (c *streamable) enter(m *jsonrpc.Message) (*remoteCall, error) {
	k := &remoteCall{id: m.ID, method: m.Method, msg: m.Raw(), size: len(m.Raw()) + itemCost}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
		return nil, c.err
	case c.calls[m.ID] != nil:
		return nil, fmt.Errorf("send: a request with the id %.64s is in flight", m.ID)
	case len(c.calls) >= maxCalls, c.held > 0 && c.held+k.size > sendLimit:
		return nil, jsonrpc.ErrBusy
	}
	if m.Method != mcp.MethodInitialize {
		k.wait = c.accepted
	}
	k.ctx, k.cancel = context.WithCancel(c.ctx)
	c.calls[k.id] = k
	c.held += k.size
	return k, nil
}

func (c *streamable) finish(k *remoteCall) {
	k.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLocked(k)
	c.held -= k.size
	if k.timer != nil {
		k.timer.Stop()
	}
}

func (c *streamable) removeLocked(k *remoteCall) {
	if c.calls[k.id] == k {
		delete(c.calls, k.id)
	}
}

// canceled lets the response to a request that was taken back go on for a moment
// only.
func (c *streamable) canceled(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.calls[id]; k != nil {
		k.lingerLocked()
	}
}

// answer hands on the answer to a request, whose id is free from then on. The
// response may go on for a moment.
func (c *streamable) answer(k *remoteCall, response []byte) error {
	c.mu.Lock()
	k.answered = true
	c.removeLocked(k)
	k.lingerLocked()
	c.mu.Unlock()
	return c.in.pushFor(response, k.id)
}

func (k *remoteCall) lingerLocked() {
	if k.timer == nil {
		k.timer = time.AfterFunc(lingerTimeout, k.cancel)
	}
}

// ask posts a request and reads the response, or what can be had of it.
func (c *streamable) ask(k *remoteCall) {
	if k.wait != nil {
		select {
		case <-k.wait:
		case <-k.ctx.Done():
			c.finish(k)
			return
		}
	}
	resp, err := c.x.do(k.ctx, http.MethodPost, k.msg, c.header(""))
	c.take(k, resp, err)
}

// take reads the response to a request that was posted.
func (c *streamable) take(k *remoteCall, resp *http.Response, err error) {
	defer c.finish(k)
	k.msg = nil
	switch {
	case err == nil:
	case k.ctx.Err() != nil: // cancelled, or the session is over: nobody waits
		return
	case unreached(err):
		c.unreachable(err)
		return
	default:
		c.lose(k, err)
		return
	}
	defer func() { resp.Body.Close() }()
	kind := contentType(resp)
	switch {
	case resp.StatusCode >= 300:
		c.refuse(k, resp)
		return
	case kind != typeJSON && kind != typeEvents:
		c.fail(k, notAnAnswer(resp))
		return
	case k.method == mcp.MethodInitialize:
		c.opened(resp)
	}
	err = c.x.read(resp, func(in incoming) error { return c.receive(k, in) })
	if k.answered || k.ctx.Err() != nil {
		return
	}
	if kind == typeEvents && k.cursor.id != "" {
		c.resume(k)
		return
	}
	c.lose(k, err)
}

// opened notes the id of the session, with which the server answers an initialize.
func (c *streamable) opened(resp *http.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session = resp.Header.Get(headerSession)
}

// receive takes one message of the response to a request.
func (c *streamable) receive(k *remoteCall, in incoming) error {
	k.cursor.note(in)
	switch {
	case in.tooLong:
		c.x.metrics.Dropped(metrics.DroppedTooLong)
		c.fail(k, tooLongResponse(c.x.limit))
		return errAnswered
	case in.data == nil:
		return nil
	}
	for _, data := range unbatch(in.data) {
		if err := c.deliver(k, data); err != nil {
			return err
		}
	}
	return nil
}

// deliver hands on one message that came with a request. An answer without an id
// is the one to that request: only what belongs to it comes with it.
func (c *streamable) deliver(k *remoteCall, data []byte) error {
	m, err := jsonrpc.Parse(data)
	switch {
	case err != nil && (m == nil || m.ID == ""):
		if !k.invalid { // once for a response: there may be many
			c.x.log.Warn("server sent an invalid message", "err", err)
		}
		k.invalid = true
		return nil
	case m.Kind == jsonrpc.Response && m.ID == jsonrpc.Null:
		return c.answer(k, m.WithID(k.id))
	case m.ID != k.id || m.Kind == jsonrpc.Request:
		return c.in.pushFor(data, k.id)
	case k.method == mcp.MethodInitialize:
		c.negotiated(m)
	}
	return c.answer(k, data)
}

// negotiated notes the protocol version, which later requests carry (MCP
// 2025-06-18, basic/transports).
func (c *streamable) negotiated(m *jsonrpc.Message) {
	raw, _ := jsonrpc.Member(m.Result(), "protocolVersion")
	version, ok := jsonrpc.Text(raw)
	if !ok || len(version) > 64 || !validHeader("X", []string{version}) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = version
}

// refuse answers a request whose response is no success, or ends the session.
func (c *streamable) refuse(k *remoteCall, resp *http.Response) {
	r := refused(resp, k.id, c.hasSession())
	if r.over != nil {
		c.over(r.over, r.over == errForgotten)
		return
	}
	_ = c.answer(k, r.answer) // fails when nobody waits any more
}

// lose answers a request whose answer did not come, unless the session turns out to
// be over: then it is lost with all others.
func (c *streamable) lose(k *remoteCall, err error) {
	switch {
	case k.invalid:
		c.fail(k, invalidResponse("it is no JSON-RPC message"))
	case !c.lives(k):
	case err != nil:
		c.fail(k, lostResponse(plainCause(err)))
	default:
		c.fail(k, lostResponse("the response ended without it"))
	}
}

// fail answers a request with an error of ours.
func (c *streamable) fail(k *remoteCall, e *jsonrpc.Error) {
	_ = c.answer(k, jsonrpc.NewError(k.id, e)) // fails when nobody waits any more
}

// lives finds out whether the server still has the session, after a response of it
// has broken off. A server that dies takes all responses along, and then the session
// is over: the requests are lost with it, and those that may be are repeated on the
// next. One question at a time is asked, for all of them.
func (c *streamable) lives(k *remoteCall) bool {
	if k.method == mcp.MethodInitialize { // there is no session to be asked about
		return true
	}
	c.mu.Lock()
	if c.err == nil && c.asking == nil {
		asking := make(chan struct{})
		c.asking = asking
		c.work.Go(func() { // ends after aliveTimeout, or with the session
			ctx, cancel := context.WithTimeout(c.ctx, aliveTimeout)
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
		case <-k.ctx.Done():
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil
}
