package upstream

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
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

// forward has the server answer a request, in as many rounds as it wants input.
func (c *modernConn) forward(k *modernCall) {
	params := k.m.Params()
	for round := 0; ; round++ {
		m, release, err := c.request(k, params)
		if err != nil {
			c.failed(k, err)
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
			c.fail(k, reasonError(fmt.Sprintf("the server's result has the type %.64q, which is not known", kind), "invalid_response", false))
			return
		}
		if params, err = c.input(k, m.Result(), round); err != nil {
			c.failed(k, err)
			return
		}
	}
}

// complete gives a result to the client.
func (c *modernConn) complete(k *modernCall, m *jsonrpc.Message) {
	result := m.Result()
	if k.m.Method == methodToolsList {
		result = c.learn(result)
	}
	c.answer(k, jsonrpc.ReplaceMember(m.WithID(k.m.ID), plainResult(result), "result"))
}

// request posts a request of the client. When the server misses headers the tools
// are listed anew, because they say which arguments are mirrored, and it is posted
// once more.
func (c *modernConn) request(k *modernCall, params json.RawMessage) (*jsonrpc.Message, func(), error) {
	each := func(n *jsonrpc.Message) error { return c.inbox.pushFor(n.Raw(), k.m.ID) }
	m, release, err := c.post(k.ctx, k.m, params, each)
	if err != nil || k.m.Method != methodToolsCall || m.Error() == nil || errorCode(m.Error()) != codeHeaderMismatch {
		return m, release, err
	}
	if !c.listTools(k.ctx) {
		return m, release, nil
	}
	release()
	return c.post(k.ctx, k.m, params, each)
}

// listTools lists the tools for this side's own sake, and reports whether that
// worked.
func (c *modernConn) listTools(ctx context.Context) bool {
	var params json.RawMessage
	for range maxToolPages {
		m, release, err := c.post(ctx, own(methodToolsList), params, nil)
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
func (c *modernConn) learn(result json.RawMessage) json.RawMessage {
	page := readTools(result)
	for name, why := range page.dropped {
		c.x.log.Warn("tool left out: its x-mcp-header is invalid", "tool", name[:min(64, len(name))], "err", why)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
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

// post sends m, with an id of its own and other params, and returns the response.
// What comes before that is given to each; nil: it is dropped. An error that is a
// [*jsonrpc.Error] is the answer to this request; any other one means that the
// server cannot be reached, or that ctx has ended. release, which is never nil,
// is called when the response has been dealt with.
func (c *modernConn) post(ctx context.Context, m *jsonrpc.Message, params json.RawMessage,
	each func(*jsonrpc.Message) error) (answer *jsonrpc.Message, release func(), err error) {
	nothing := func() {}
	id := c.mint()
	body, header, err := c.wire(m, id, params)
	if err != nil {
		return nil, nothing, err
	}
	ctx, cancel := context.WithCancel(ctx)
	resp, err := c.x.do(ctx, http.MethodPost, body, header)
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
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, errorBodyLimit)) // of no use: only its end is
		_ = resp.Body.Close()
	}, nil
}

// wire returns the bytes and the headers of a request.
func (c *modernConn) wire(m *jsonrpc.Message, id jsonrpc.ID, params json.RawMessage) ([]byte, http.Header, error) {
	c.mu.Lock()
	meta := c.meta
	var mirrored []paramHeader
	if m.Method == methodToolsCall && c.tools != nil {
		member, _ := jsonrpc.Member(params, "name")
		name, _ := jsonrpc.Text(member)
		mirrored = c.tools[name]
	}
	c.mu.Unlock()
	params, ok := meta.into(params)
	if !ok {
		return nil, nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params must be an object")
	}
	header, e := modernHeader(m.Method, params, mirrored)
	if e != nil {
		return nil, nil, e
	}
	return jsonrpc.SetMember(m.WithID(id), params, "params"), header, nil
}

// errDone ends the reading of a response whose answer is there.
var errDone = errors.New("answered")

// readAnswer reads the response to the request with that id.
func (c *modernConn) readAnswer(ctx context.Context, resp *http.Response, id jsonrpc.ID,
	each func(*jsonrpc.Message) error) (*jsonrpc.Message, error) {
	var (
		answer  *jsonrpc.Message
		invalid error
	)
	err := c.x.read(resp, func(in incoming) error {
		if in.tooLong {
			c.x.metrics.Dropped(metrics.DroppedTooLong)
			return reasonError("the server's answer is over the size limit", "invalid_response", false)
		}
		if in.data == nil {
			return nil
		}
		m, err := jsonrpc.Parse(in.data)
		switch {
		case err != nil && m != nil && m.ID == id:
			return invalidAnswer(err)
		case err != nil:
			invalid = err
			c.drop(metrics.DroppedInvalidMessage, err.Error())
		case m.Kind == jsonrpc.Response && (m.ID == id || m.ID == jsonrpc.Null): // nobody else can be meant
			answer = m
			return errDone
		case m.Kind == jsonrpc.Notification && each != nil:
			return each(m)
		case m.Kind == jsonrpc.Response:
			c.drop(metrics.DroppedUnknownResponse, "response to another request")
		default: // servers of this version must not send requests
			c.drop(metrics.DroppedUnknownRequest, m.String())
		}
		return nil
	})
	if answer != nil {
		return answer, nil
	}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return nil, e
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil && invalid != nil: // the response is whole, so that was to be the answer
		return nil, invalidAnswer(invalid)
	}
	return nil, modernLost(err)
}

func invalidAnswer(err error) *jsonrpc.Error {
	return reasonError("the server's answer is no valid JSON-RPC response: "+err.Error(), "invalid_response", false)
}

// modernLost is the answer to a request whose response ended before the answer:
// nobody knows what the server did.
func modernLost(err error) *jsonrpc.Error {
	if err == nil {
		err = io.EOF
	}
	return reasonError(fmt.Sprintf("the server's response ended without an answer: %v", err), "response_lost", false)
}

// unsent says what a failed POST means. What fails before there is a connection
// means that the server is gone. After that only this response is.
func (c *modernConn) unsent(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op != "read" && op.Op != "write" {
		return err
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return err
	}
	return modernLost(err)
}

// readRefusal reads the response to a POST that was not taken. An error of
// JSON-RPC is the answer, with any status; else the status decides.
func (c *modernConn) readRefusal(resp *http.Response, id jsonrpc.ID) (*jsonrpc.Message, error) {
	status := resp.StatusCode
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		return nil, reasonError(fmt.Sprintf("the remote server refused the gateway's credentials (HTTP %d): configure the headers or the token that it wants", status), "unauthorized", false)
	}
	if contentType(resp) == typeJSON {
		data, _ := io.ReadAll(io.LimitReader(resp.Body, errorBodyLimit)) // half a body is no message
		if m, err := jsonrpc.Parse(data); err == nil && m.Error() != nil && (m.ID == id || m.ID == jsonrpc.Null) {
			return m, nil
		}
	}
	if status >= 500 {
		return nil, fmt.Errorf("POST %s: the server answered HTTP %d", c.x.place(), status)
	}
	return nil, reasonError(fmt.Sprintf("the remote server answered HTTP %d", status), "http_status", false)
}

// tell sends a notification. Nobody waits for what becomes of it.
func (c *modernConn) tell(k *modernCall) {
	if !plainHeader(k.m.Method) {
		return
	}
	header := http.Header{headerVersion: {modernVersion}, headerMethod: {k.m.Method}}
	ctx, cancel := context.WithTimeout(k.ctx, tellTimeout)
	defer cancel()
	resp, err := c.x.do(ctx, http.MethodPost, k.m.Raw(), header)
	if err == nil {
		_ = resp.Body.Close()
	}
}
