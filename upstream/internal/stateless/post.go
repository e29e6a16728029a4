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
	"github.com/mcp-sse/mcp-sse/internal/mirror"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/exchange"
)

const (
	// restTimeout is how long a response may stay open after the answer, so that its
	// connection can be used again. restBytes bounds what is read meanwhile.
	restTimeout = time.Second
	restBytes   = 64 << 10
	// tellTimeout bounds the POST of a notification.
	tellTimeout = 30 * time.Second
)

// post sends m with an id of its own and other params, and returns the response.
// notify gets the notifications before it; nil: they are dropped. An error that is a
// *[jsonrpc.Error] is the answer to this request; any other error means that the
// server is gone, or that ctx has ended. The caller must call release, which is
// never nil, after it has used the response; release takes at most a second.
func (c *Conn) post(ctx context.Context, m *jsonrpc.Message, params json.RawMessage,
	notify func(*jsonrpc.Message) error) (answer *jsonrpc.Message, release func(), err error) {
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
		return nil, nothing, unposted(ctx, err)
	}
	r := exchange.Reader{Endpoint: c.x, ID: id, Other: func(m *jsonrpc.Message) error { return c.beside(m, notify) }}
	defer r.Release()
	answer, err = r.Read(resp)
	if err != nil {
		err = unread(ctx, err)
		cancel()
		_ = resp.Body.Close()
		return nil, nothing, err
	}
	return answer, func() {
		defer cancel()
		timer := time.AfterFunc(restTimeout, cancel)
		defer timer.Stop()
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, restBytes)) // nothing of use follows the answer
		_ = resp.Body.Close()
	}, nil
}

// unposted says what it means that a POST got no response.
func unposted(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case exchange.Unreached(err):
		return exchange.LostSession(err)
	}
	return exchange.LostResponse(err)
}

// unread says what it means that a response holds no answer. A server of this version
// gives its reason as JSON-RPC with a 404 or 405. Without that, something else is at
// the address now.
func unread(ctx context.Context, err error) error {
	data := exchange.DataOf(err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case data.Reason == exchange.ReasonRefused && (data.Status == http.StatusNotFound || data.Status == http.StatusMethodNotAllowed):
		return fmt.Errorf("no server of MCP %s is there any more: it answered %d %s", mcp.VersionStateless, data.Status, http.StatusText(data.Status))
	}
	return err
}

// wire returns the bytes and the headers of a request.
func (c *Conn) wire(m *jsonrpc.Message, id jsonrpc.ID, params json.RawMessage) ([]byte, http.Header, error) {
	c.mu.Lock()
	meta := c.meta
	var mirrored []mirror.Param
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

// tell posts a notification. Nobody waits for the response.
func (c *Conn) tell(k *exchange.Call) {
	if !mirror.IsPlain(k.Method) {
		return
	}
	header := http.Header{exchange.HeaderVersion: {mcp.VersionStateless}, mirror.HeaderMethod: {k.Method}}
	ctx, cancel := context.WithTimeout(k.Ctx, tellTimeout)
	defer cancel()
	resp, err := c.x.Do(ctx, http.MethodPost, k.Msg.Raw(), header)
	if err == nil {
		_ = resp.Body.Close()
		if resp.StatusCode < 300 {
			return
		}
		err = errors.New(exchange.Status(resp))
	}
	c.x.Undelivered(k.Msg, err)
}

// endIfGone asks the server whether it is there, and ends the session if not. Its
// results have no meaning.
func (c *Conn) endIfGone() (any, error) {
	ctx, cancel := context.WithTimeout(c.ctx, exchange.AliveTimeout)
	defer cancel()
	_, release, err := c.post(ctx, own(mcp.MethodDiscover), nil, nil)
	release()
	if _, answered := errors.AsType[*jsonrpc.Error](err); err != nil && !answered && ctx.Err() == nil {
		c.end(err)
	}
	return nil, nil
}
