package stateless

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/upstream/internal/exchange"
)

const (
	// maxToolPages bounds the pages of a tools/list of this side.
	maxToolPages = 64
	// maxTools bounds the tools whose mirrored arguments are remembered.
	maxTools = 4096
	// restTimeout is how long the end of a response is waited for after the
	// answer, so that its connection can be used again.
	restTimeout = time.Second
	// tellTimeout bounds the POST of a notification.
	tellTimeout = 30 * time.Second
)

// forward posts a request until the server answers it: once more for each round of
// input.
func (c *Conn) forward(k *call) {
	params := k.m.Params()
	for round := 0; ; round++ {
		m, release, err := c.request(k, params)
		if err != nil {
			c.failed(k, c.lives(k, err))
			return
		}
		if m.Error() != nil {
			c.refuse(k, m.Error())
			release()
			return
		}
		kind, ok := resultType(m.Result())
		if ok && kind == resultComplete {
			c.complete(k, m)
			release()
			return
		}
		c.running.Go(release) // its end may take time, and the client is asked meanwhile
		if !ok {
			c.fail(k, exchange.InvalidResponse("its result has the type %.64q, which is not known", kind))
			return
		}
		if params, err = c.input(k, m.Result(), round); err != nil {
			c.failed(k, err)
			return
		}
	}
}

// complete answers the client with a result.
func (c *Conn) complete(k *call, m *jsonrpc.Message) {
	result := m.Result()
	if k.Method == mcp.MethodListTools {
		result = c.learn(result)
	}
	c.answer(k, jsonrpc.ReplaceMember(m.WithID(k.ID), plainResult(result), "result"))
}

// request posts a request of the client. When the server misses headers the tools
// are listed anew, because they say which arguments are mirrored, and it is posted
// once more.
func (c *Conn) request(k *call, params json.RawMessage) (*jsonrpc.Message, func(), error) {
	each := func(n *jsonrpc.Message) error { return c.inbox.PushFor(n.Raw(), k.ID) }
	m, release, err := c.post(k.Ctx, k.m, params, each)
	if err != nil || k.Method != mcp.MethodCallTool || m.Error() == nil || exchange.ErrorCode(m.Error()) != mcp.CodeHeaderMismatch {
		return m, release, err
	}
	if !c.listTools(k.Ctx) {
		return m, release, nil
	}
	release()
	return c.post(k.Ctx, k.m, params, each)
}

// listTools lists the tools for this side's own sake, and reports whether that
// worked.
func (c *Conn) listTools(ctx context.Context) bool {
	var params json.RawMessage
	for range maxToolPages {
		m, release, err := c.post(ctx, own(mcp.MethodListTools), params, nil)
		if err != nil || m.Error() != nil {
			release()
			return false
		}
		release()
		c.learn(m.Result())
		cursor, ok := jsonrpc.Member(m.Result(), "nextCursor")
		if !ok || cursor[0] != '"' {
			break
		}
		params = jsonrpc.SetMember(json.RawMessage("{}"), cursor, "cursor")
	}
	return true
}

// learn remembers which arguments of tools are mirrored, and returns the list
// without the tools that break the rules for it.
func (c *Conn) learn(result json.RawMessage) json.RawMessage {
	page := readTools(result)
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, why := range page.dropped {
		c.leaveOutLocked(name[:min(64, len(name))], why)
	}
	for name, headers := range page.headers {
		if headers == nil {
			delete(c.tools, name)
			continue
		}
		if c.tools == nil {
			c.tools = make(map[string][]paramHeader)
		}
		if len(c.tools) < maxTools {
			c.tools[name] = headers
		}
	}
	return page.result
}

// leaveOutLocked logs that a tool is left out, once in a session.
func (c *Conn) leaveOutLocked(name string, why error) {
	if c.left[name] || len(c.left) >= maxTools {
		return
	}
	if c.left == nil {
		c.left = make(map[string]bool)
	}
	c.left[name] = true
	c.x.Log.Warn("tool left out: its x-mcp-header is invalid", "tool", name, "err", why)
}

// post sends m, with an id of its own and other params, and returns the response.
// What comes before that is given to each; nil: it is dropped. An error that is a
// [*jsonrpc.Error] is the answer to this request; any other one means that the
// server cannot be reached, or that ctx has ended. release, which is never nil,
// is called when the response has been dealt with.
func (c *Conn) post(ctx context.Context, m *jsonrpc.Message, params json.RawMessage,
	each func(*jsonrpc.Message) error) (answer *jsonrpc.Message, release func(), err error) {
	nothing := func() {}
	id := c.mint()
	body, header, err := c.wire(m, id, params)
	if err != nil {
		return nil, nothing, err
	}
	ctx, cancel := context.WithCancel(ctx)
	resp, err := c.x.Do(ctx, http.MethodPost, body, header)
	if err != nil {
		defer cancel()
		return nil, nothing, c.unsent(ctx, err)
	}
	if resp.StatusCode/100 == 2 {
		answer, err = c.readAnswer(ctx, resp, id, each)
	} else {
		answer, err = c.readRefusal(resp, id)
	}
	if err != nil {
		cancel()
		_ = resp.Body.Close()
		return nil, nothing, err
	}
	return answer, func() {
		defer cancel()
		timer := time.AfterFunc(restTimeout, cancel)
		defer timer.Stop()
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, exchange.ErrorBodyLimit)) // of no use: only its end is
		_ = resp.Body.Close()
	}, nil
}

// wire returns the bytes and the headers of a request.
func (c *Conn) wire(m *jsonrpc.Message, id jsonrpc.ID, params json.RawMessage) ([]byte, http.Header, error) {
	c.mu.Lock()
	meta := c.meta
	var mirrored []paramHeader
	if m.Method == mcp.MethodCallTool && c.tools != nil {
		member, _ := jsonrpc.Member(params, "name")
		name, _ := jsonrpc.Text(member)
		mirrored = c.tools[name]
	}
	c.mu.Unlock()
	params, ok := meta.into(params)
	if !ok {
		return nil, nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params must be an object")
	}
	header, e := requestHeader(m.Method, params, mirrored)
	if e != nil {
		return nil, nil, e
	}
	return jsonrpc.SetMember(m.WithID(id), params, "params"), header, nil
}

// readAnswer reads the response to the request with that id.
func (c *Conn) readAnswer(ctx context.Context, resp *http.Response, id jsonrpc.ID,
	each func(*jsonrpc.Message) error) (*jsonrpc.Message, error) {
	r := answerReader{c: c, id: id, each: each}
	if kind := exchange.ContentType(resp); kind != exchange.TypeJSON && kind != exchange.TypeEvents {
		return nil, exchange.NotAnAnswer(resp)
	}
	err := c.x.Read(resp, r.take)
	failure, known := errors.AsType[*jsonrpc.Error](err)
	switch {
	case r.answer != nil:
		return r.answer, nil
	case known:
		return nil, failure
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, exchange.LostResponse(exchange.PlainCause(err))
	case r.invalid != nil: // the response is whole, so that was to be the answer
		return nil, exchange.InvalidResponse("%v", r.invalid)
	}
	return nil, exchange.LostResponse("the response ended without it")
}

// answerReader takes the messages of a response.
type answerReader struct {
	c       *Conn
	id      jsonrpc.ID // of the request
	each    func(*jsonrpc.Message) error
	answer  *jsonrpc.Message
	invalid error // of the last one that was no JSON-RPC message
}

func (r *answerReader) take(in exchange.Incoming) error {
	switch {
	case in.TooLong:
		r.c.x.Metrics.Dropped(metrics.DroppedTooLong)
		return exchange.TooLong(r.c.x.Limit)
	case in.Data == nil:
		return nil
	}
	m, err := jsonrpc.Parse(in.Data)
	switch {
	case err != nil && m != nil && m.ID == r.id:
		return exchange.InvalidResponse("%v", err)
	case err != nil:
		r.invalid = err
		r.c.drop(metrics.DroppedInvalidMessage, err.Error())
	case m.Kind == jsonrpc.Response && (m.ID == r.id || m.ID == jsonrpc.Null): // nobody else can be meant
		r.answer = m
		return exchange.ErrAnswered
	case m.Kind == jsonrpc.Notification && r.each != nil:
		return r.each(m)
	case m.Kind == jsonrpc.Response:
		r.c.drop(metrics.DroppedUnknownResponse, "response to another request")
	default: // servers of this version must not send requests
		r.c.drop(metrics.DroppedUnknownRequest, m.String())
	}
	return nil
}

// unsent says what a failed POST means: without a connection the server is gone,
// else only this response is.
func (c *Conn) unsent(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case exchange.Unreached(err):
		return exchange.LostSession(err)
	}
	return exchange.LostResponse(exchange.PlainCause(err))
}

// readRefusal reads the response to a POST that is no success. It is the answer to
// the request, or ends the session. So does a 404 or 405 that no server of this
// version gives, because it tells why as JSON-RPC: something else is there now.
func (c *Conn) readRefusal(resp *http.Response, id jsonrpc.ID) (*jsonrpc.Message, error) {
	r := exchange.ReadRefusal(resp, id, false)
	if r.Over != nil {
		return nil, r.Over
	}
	m, err := jsonrpc.Parse(r.Answer)
	if err != nil {
		return nil, exchange.InvalidResponse("%v", err)
	}
	reason, _ := jsonrpc.Member(m.Error(), "data", "reason")
	code := resp.StatusCode
	if (code == http.StatusNotFound || code == http.StatusMethodNotAllowed) && string(reason) == `"`+exchange.ReasonRefused+`"` {
		return nil, fmt.Errorf("no server of MCP %s is there any more: it answered %s", mcp.VersionStateless, exchange.Status(resp))
	}
	return m, nil
}

// tell sends a notification. Nobody waits for what becomes of it.
func (c *Conn) tell(k *call) {
	if !plainHeader(k.Method) {
		return
	}
	header := http.Header{exchange.HeaderVersion: {mcp.VersionStateless}, headerMethod: {k.Method}}
	ctx, cancel := context.WithTimeout(k.Ctx, tellTimeout)
	defer cancel()
	resp, err := c.x.Do(ctx, http.MethodPost, k.m.Raw(), header)
	if err == nil {
		_ = resp.Body.Close()
	}
}

// lives returns why the server of a stateless session is gone, when that is why a
// response broke off with err; else err.
func (c *Conn) lives(k *call, err error) error {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return err
	}
	if data, ok := e.Data.(exchange.ErrorData); !ok || data.Reason != exchange.ReasonLost {
		return err
	}
	ctx, cancel := context.WithTimeout(k.Ctx, exchange.AliveTimeout)
	defer cancel()
	_, release, gone := c.post(ctx, own(mcp.MethodDiscover), nil, nil)
	release()
	if _, answered := errors.AsType[*jsonrpc.Error](gone); gone == nil || answered || ctx.Err() != nil {
		return err
	}
	return gone
}
