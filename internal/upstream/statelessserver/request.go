package statelessserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/internal/clip"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/stateless"
	"github.com/mcp-sse/mcp-sse/internal/upstream/exchange"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	// restTimeout is how long a response may stay open after the answer, so that its
	// connection can be used again. restBytes bounds what is read meanwhile.
	restTimeout = time.Second
	restBytes   = 64 << 10
	// maxRequired bounds the required capabilities that a client is told, in bytes.
	maxRequired = 4 << 10
)

// errOtherVersion ends a session whose server speaks another version now.
var errOtherVersion = errors.New("the server no longer speaks MCP " + mcp.VersionStateless)

// Reasons of the errors that only requests to a stateless server get.
const (
	reasonHeaders       = "header_mismatch"
	reasonCapability    = "missing_capability"
	reasonVersion       = "unsupported_version"
	reasonRounds        = "input_rounds"
	reasonAsks          = "input_busy"
	reasonUnsubscribed  = "not_subscribed"
	reasonSubscriptions = "too_many_subscriptions"
)

// forward posts a request, and again after each round of input, until the server
// answers it.
func (c *Conn) forward(k *exchange.Call) {
	params := k.Msg.Params()
	direct := stateless.IsStateless(params)
	params, visit := stateless.UnmarkVisit(params)
	if visit == stateless.VisitAgreed {
		c.awaitVisit(k.Ctx)
	}
	pause := backoff.New(100*time.Millisecond, 2*time.Second) // between rounds without input
	for round := 0; ; round++ {
		m, err := c.request(k, params)
		if err != nil {
			c.unanswered(k, err)
			return
		}
		if m.Error() != nil {
			c.refuse(k, m)
			return
		}
		kind, ok := stateless.ResultType(m.Result())
		if direct || ok && kind == mcp.ResultComplete {
			c.complete(k, m, direct)
			return
		}
		if !ok {
			c.fail(k, exchange.InvalidResponse("its result has the unknown type %.64q", kind))
			return
		}
		params, err = c.input(k, m.Result(), round, pause)
		if err != nil {
			c.failed(k, err)
			return
		}
	}
}

// awaitVisit waits a while until the person who has agreed to visit the address has logged in there. A client that was
// asked again at once would ask its person again, or give up.
func (c *Conn) awaitVisit(ctx context.Context) {
	if c.x.AwaitLogin == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, stateless.VisitTimeout)
	defer cancel()
	c.x.AwaitLogin(ctx)
}

// visitsURLs reports whether the client of a request has its person visit addresses.
func visitsURLs(body []byte) bool {
	capabilities, _ := rawjson.Member(body, "params", "_meta", mcp.MetaCapabilities)
	return mcp.VisitsURLs(capabilities)
}

// unanswered answers a request whose response failed. A lost response, or a 5xx, may mean
// that the server is gone, which ends the session instead.
func (c *Conn) unanswered(k *exchange.Call, err error) {
	if exchange.Doubtful(err) {
		_, _, _ = c.alive.Do("", c.endIfGone) // once for all calls
	}
	c.failed(k, err)
}

// endIfGone asks the server whether it is there, and ends the session if not. Its
// results have no meaning.
func (c *Conn) endIfGone() (any, error) {
	ctx, cancel := context.WithTimeout(c.ctx, exchange.AliveTimeout)
	defer cancel()
	_, err := c.post(ctx, ownRequest(mcp.MethodDiscover), nil, nil)
	_, answered := errors.AsType[*jsonrpc.Error](err)
	if gone := !answered || exchange.DataOf(err).Status >= 500; err != nil && gone && ctx.Err() == nil {
		c.endSession(err)
	}
	return nil, nil
}

// complete answers the client with a result, as clients of earlier versions know it unless
// direct.
func (c *Conn) complete(k *exchange.Call, m *jsonrpc.Message, direct bool) {
	result := m.Result()
	if k.Method == mcp.MethodListTools {
		var broken map[string]error
		result, broken = c.tools.NotePage(k.Msg.Params(), result)
		for name, err := range broken {
			c.x.Log.Warn("tool left out: its x-mcp-header is invalid", "tool", clip.Short(name), "err", err)
		}
	}
	if !direct {
		result = rawjson.RemoveMember(result, "resultType")
	}
	c.answer(k, rawjson.ReplaceMember(m.WithID(k.ID), result, "result"))
}

// request posts a request of the client. If the server misses headers, request lists
// the tools, which say what arguments are mirrored, and posts once more.
func (c *Conn) request(k *exchange.Call, params json.RawMessage) (*jsonrpc.Message, error) {
	notify := func(n *jsonrpc.Message) error { return c.Queue.Push(n.Raw(), k.ID) }
	m, err := c.post(k.Ctx, k.Msg, params, notify)
	if err != nil || k.Method != mcp.MethodCallTool || exchange.ErrorCode(m) != mcp.CodeHeaderMismatch {
		return m, err
	}
	ctx, cancel := context.WithTimeout(c.ctx, discoverTimeout) // other calls may wait for it too
	defer cancel()
	c.tools.List(func(params json.RawMessage) (*jsonrpc.Message, error) {
		return c.post(ctx, ownRequest(mcp.MethodListTools), params, nil)
	})
	return c.post(k.Ctx, k.Msg, params, notify)
}

// post sends m with an id of its own and other params, and returns the response, until ctx
// ends. notify gets the notifications before it; nil: they are dropped. An error that is a
// *[jsonrpc.Error] is the answer to this request; any other error means that the server is
// gone, or that ctx has ended. Only goroutines of the session may call it.
func (c *Conn) post(ctx context.Context, m *jsonrpc.Message, params json.RawMessage,
	notify func(*jsonrpc.Message) error) (*jsonrpc.Message, error) {
	id, body, header, err := c.wire(m, params)
	if err != nil {
		return nil, err
	}
	return c.roundTrip(ctx, id, body, header, func(m *jsonrpc.Message) error {
		if m.Kind == jsonrpc.Notification && notify != nil {
			return notify(m)
		}
		c.drop(m)
		return nil
	})
}

// overHTTP is roundTrip by a POST.
func (c *Conn) overHTTP(ctx context.Context, id jsonrpc.ID, body []byte, header http.Header,
	other func(*jsonrpc.Message) error) (*jsonrpc.Message, error) {
	posted, cancel := context.WithCancel(c.ctx)
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	resp, err := c.x.Do(posted, http.MethodPost, body, header)
	if err != nil {
		defer cancel()
		return nil, unposted(posted, err)
	}
	r := exchange.Reader{Endpoint: c.x, ID: id, IsStateless: true, Other: other,
		IsCall:     header.Get(stateless.HeaderMethod) == mcp.MethodCallTool,
		VisitsURLs: visitsURLs(body)}
	answer, err := r.Read(resp)
	if err != nil {
		defer cancel()
		_ = resp.Body.Close()
		return nil, unread(posted, err)
	}
	c.running.Go(func() { // ends in a second; nothing of use follows the answer
		defer cancel()
		defer time.AfterFunc(restTimeout, cancel).Stop()
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, restBytes))
		_ = resp.Body.Close()
	})
	return answer, nil
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
	case data.Reason == exchange.ReasonRefused &&
		(data.Status == http.StatusNotFound || data.Status == http.StatusMethodNotAllowed):
		return fmt.Errorf("no server of MCP %s is there any more: it answered %d %s", mcp.VersionStateless,
			data.Status, http.StatusText(data.Status))
	}
	return err
}

// wire returns the id, the bytes and the headers of a request. The error is for the client,
// whose request the server would refuse.
func (c *Conn) wire(m *jsonrpc.Message, params json.RawMessage) (id jsonrpc.ID, body []byte, h http.Header, err error) {
	c.mu.Lock()
	meta := c.meta
	c.nextID++
	id = jsonrpc.NumberID(c.nextID)
	c.mu.Unlock()
	if !stateless.IsStateless(params) {
		var ok bool
		params, ok = meta.Into(params)
		if !ok {
			return "", nil, nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params must be an object")
		}
	}
	if !stateless.IsPlain(m.Method) {
		return "", nil, nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found")
	}
	headers, err := stateless.Headers(mcp.VersionStateless, m.Method, params)
	if err != nil {
		return "", nil, nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%v", err)
	}
	h = make(http.Header)
	if m.Method == mcp.MethodDiscover {
		h = exchange.Repeatable(h)
	}
	for _, one := range headers {
		h.Set(one.Name, stateless.Encode(one.Value))
	}
	var mirrored []stateless.Param
	if m.Method == mcp.MethodCallTool {
		mirrored, _ = c.tools.Mirrored(headers[len(headers)-1].Value)
	}
	for _, p := range mirrored {
		raw, ok := p.Argument(params)
		if !ok {
			continue
		}
		value, ok := stateless.Text(raw)
		if !ok {
			return "", nil, nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
				"argument %.64s must be a string, a boolean or an integer below 2^53", strings.Join(p.Path, "."))
		}
		h.Set(stateless.HeaderParam+p.Name, stateless.Encode(value))
	}
	return id, rawjson.SetMember(m.WithID(id), params, "params"), h, nil
}

// translateError returns the gateway's own error for an error response that clients
// of earlier versions do not know; nil: they know it.
func translateError(m *jsonrpc.Message) *jsonrpc.Error {
	text, _ := rawjson.MemberText(m.Error(), "message")
	text = text[:min(200, len(text))]
	switch exchange.ErrorCode(m) {
	case mcp.CodeHeaderMismatch:
		return exchange.NewError(exchange.ErrorData{Reason: reasonHeaders},
			"the server refused the headers of the request: %s", text)
	case mcp.CodeMissingCapability:
		data, _ := rawjson.Member(m.Error(), "data")
		required, ok := stateless.RequiredCapabilities(data)
		if !ok || len(required) > maxRequired {
			required = nil
		}
		var names map[string]json.RawMessage
		if json.Unmarshal(required, &names) == nil && len(names) > 0 {
			text = strings.Join(slices.Sorted(maps.Keys(names)), ", ")
		}
		return exchange.NewError(exchange.ErrorData{Reason: reasonCapability, RequiredCapabilities: required},
			"the server needs capabilities that the client has not declared: %.1024s", text)
	case mcp.CodeUnsupportedVersion:
		return exchange.NewError(exchange.ErrorData{Reason: reasonVersion, Retryable: true}, "%v", errOtherVersion)
	}
	return nil
}
