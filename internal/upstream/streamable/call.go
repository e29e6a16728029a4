package streamable

import (
	"context"
	"errors"
	"net/http"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/upstream/exchange"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// postedCall is a request in flight. Its goroutine owns the fields.
type postedCall struct {
	*exchange.Call
	reader exchange.Reader
	wait   <-chan struct{} // post after it is closed; nil: at once
	opens  chan struct{}   // closed when the response has come, or none comes; nil: it is no initialize
}

// startCall enters a request as in flight, and runs a goroutine for it. That ends with the
// session at the latest.
func (c *Conn) startCall(m *jsonrpc.Message, run func(*postedCall)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	of, err := c.calls.Begin(c.ctx, m)
	if err != nil {
		return err
	}
	k := &postedCall{Call: of}
	k.reader = exchange.Reader{Endpoint: c.x, ID: m.ID, IsCall: m.Method == mcp.MethodCallTool, VisitsURLs: c.visits,
		Other: func(m *jsonrpc.Message) error { return c.Queue.Push(m.Raw(), k.ID) }}
	if m.Method == mcp.MethodInitialize {
		c.visits = mcp.VisitsURLs(m.Param("capabilities").Value)
		k.opens = make(chan struct{})
		c.opening = k.opens
	} else {
		k.wait = c.accepted
	}
	c.work.Go(func() {
		run(k)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls.Finish(k.Call)
	})
	return nil
}

// Posted takes the first request of the session, which the caller has posted, with its
// response. err says why there is none. cancel ends the response.
func (c *Conn) Posted(m *jsonrpc.Message, resp *http.Response, err error, cancel context.CancelFunc) {
	_ = c.startCall(m, func(k *postedCall) { // has room
		defer cancel()
		defer context.AfterFunc(k.Ctx, cancel)()
		c.readResponse(k, resp, err)
	})
}

// ask posts a request and reads its response.
func (c *Conn) ask(k *postedCall) {
	if k.wait != nil {
		select {
		case <-k.wait:
		case <-k.Ctx.Done():
			return
		}
	}
	header := c.header("")
	if k.Method == mcp.MethodInitialize { // again, because the server has refused the first: it opens a session
		header = nil
	}
	resp, err := c.x.Do(k.Ctx, http.MethodPost, k.Msg.Raw(), header)
	c.readResponse(k, resp, err)
}

// readResponse reads the response to a request that was posted, and answers the request.
// While the response lingers after the answer, its messages are passed on.
func (c *Conn) readResponse(k *postedCall, resp *http.Response, err error) {
	k.Msg = nil
	if k.opens != nil {
		if err == nil && resp.StatusCode < 300 {
			c.opened(resp)
		}
		close(k.opens)
	}
	switch {
	case exchange.Unreached(err):
		c.unreachable(k.ID, err)
		return
	case err != nil:
		c.unanswered(k, exchange.LostResponse(err))
		return
	}
	err = c.receive(k, resp)
	if k.reader.Resumable() {
		err = c.resume(k, err)
	}
	if err != nil && k.reader.Empty() && c.listensFor(k) {
		if !exchange.Doubtful(err) || c.lives(k) {
			<-k.Ctx.Done() // the answer comes on the other stream, or the time of the request is up
		}
		return
	}
	if err != nil {
		c.unanswered(k, err)
	}
}

// listensFor reports whether the server has a stream for messages that belong to no request.
// Some send their answers there. It waits until the server has answered the first GET for that
// stream, or the time of the request is up.
func (c *Conn) listensFor(k *postedCall) bool {
	if k.wait == nil { // no GET goes out before notifications/initialized
		return false
	}
	select {
	case <-c.tried:
	case <-k.Ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.listens || k.Ctx.Err() != nil
}

// receive reads one response and answers the request, or returns why it cannot.
func (c *Conn) receive(k *postedCall, resp *http.Response) error {
	defer resp.Body.Close()
	if k.Method == mcp.MethodInitialize && exchange.IsRedirect(resp) {
		return c.x.Redirected(resp)
	}
	k.reader.HasSession = c.hasSession()
	m, err := k.reader.Read(resp)
	if err != nil {
		return err
	}
	if k.Method == mcp.MethodInitialize {
		c.negotiated(m)
	}
	if c.answer(k, m.Raw()) == nil {
		k.reader.Rest()
	}
	return nil
}

// unanswered handles a request whose response holds no answer. The error is the
// answer, or ends the session. A server that dies breaks all its responses, or the proxy
// before it answers 502. So after a broken response, and after a 5xx, the server is asked
// whether it still has the session: if not, the session ends, and safe requests are repeated
// on the next. Else only this request fails.
func (c *Conn) unanswered(k *postedCall, err error) {
	if k.Ctx.Err() != nil { // cancelled, or the session is over: nobody waits
		return
	}
	e, ok := errors.AsType[*jsonrpc.Error](err)
	said, says := errors.AsType[*exchange.SaysForgottenError](err)
	switch {
	case errors.Is(err, exchange.ErrUnread):
		c.End(&jsonrpc.NotTakenError{ID: k.ID, Err: err}, true)
	case says && k.Method != mcp.MethodInitialize:
		if c.lives(k) {
			_ = c.answer(k, said.Answer()) // as below
		}
	case errors.Is(err, exchange.ErrForgotten):
		c.End(err, true)
	case !ok:
		c.End(err, false)
	case !exchange.Doubtful(e) || c.lives(k):
		_ = c.answer(k, jsonrpc.NewError(k.ID, e)) // fails at the end of the session, when nobody waits
	}
}

// lives reports whether the server still has the session, and ends the session if
// not. Before the answer to initialize there is nothing to ask about.
func (c *Conn) lives(k *postedCall) bool {
	if k.Method == mcp.MethodInitialize {
		return true
	}
	_, _, _ = c.alive.Do("", func() (any, error) { // once for all calls; ends the session if the server is gone
		ctx, cancel := context.WithTimeout(c.ctx, exchange.AliveTimeout)
		defer cancel()
		question, _ := jsonrpc.Parse(jsonrpc.NewRequest(`"alive"`, mcp.MethodPing, nil)) // is valid
		c.probe(ctx, question)
		return nil, nil
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil
}

// answer hands on the answer to a request, whose id is free from then on.
func (c *Conn) answer(k *postedCall, response []byte) error {
	c.mu.Lock()
	c.calls.Answer(k.Call)
	c.calls.Linger(k.Call)
	c.mu.Unlock()
	return c.Queue.Push(response, k.ID)
}

// opened notes the id of the session, which comes with the answer to initialize.
func (c *Conn) opened(resp *http.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session = resp.Header.Get(exchange.HeaderSession)
}

// negotiated notes the protocol version, which later requests carry (MCP
// 2025-06-18, basic/transports).
func (c *Conn) negotiated(m *jsonrpc.Message) {
	version, ok := rawjson.MemberText(m.Result(), "protocolVersion")
	if !ok || len(version) > 64 || !exchange.ValidHeader("X", []string{version}) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = version
}
