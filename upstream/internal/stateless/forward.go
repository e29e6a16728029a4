package stateless

import (
	"context"
	"encoding/json"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/mirror"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/exchange"
)

const (
	// maxToolPages bounds the pages of a tools/list of the gateway.
	maxToolPages = 64
	// maxTools bounds the tools whose mirrored arguments are remembered.
	maxTools = 4096
)

// forward posts a request, and again after each round of input, until the server
// answers it.
func (c *Conn) forward(k *exchange.Call) {
	params := k.Msg.Params()
	for round := 0; ; round++ {
		m, release, err := c.request(k, params)
		if err != nil {
			c.unanswered(k, err)
			return
		}
		if m.Error() != nil {
			c.refuse(k, m)
			release()
			return
		}
		kind, ok := resultType(m.Result())
		if ok && kind == mcp.ResultComplete {
			c.complete(k, m)
			release()
			return
		}
		c.running.Go(release) // ends in a second; the client is asked meanwhile
		if !ok {
			c.fail(k, exchange.InvalidResponse("its result has the unknown type %.64q", kind))
			return
		}
		if params, err = c.input(k, m.Result(), round); err != nil {
			c.failed(k, err)
			return
		}
	}
}

// unanswered answers a request whose response failed. A lost response may mean that
// the server is gone, which ends the session instead.
func (c *Conn) unanswered(k *exchange.Call, err error) {
	if exchange.DataOf(err).Reason == exchange.ReasonLost {
		_, _, _ = c.alive.Do("", c.endIfGone) // once for all calls
	}
	c.failed(k, err)
}

// complete answers the client with a result.
func (c *Conn) complete(k *exchange.Call, m *jsonrpc.Message) {
	result := m.Result()
	if k.Method == mcp.MethodListTools {
		result = c.learn(result)
	}
	c.answer(k, jsonrpc.ReplaceMember(m.WithID(k.ID), plainResult(result), "result"))
}

// request posts a request of the client. If the server misses headers, request lists
// the tools, which say what arguments are mirrored, and posts once more.
func (c *Conn) request(k *exchange.Call, params json.RawMessage) (*jsonrpc.Message, func(), error) {
	notify := func(n *jsonrpc.Message) error { return c.inbox.PushFor(n.Raw(), k.ID) }
	m, release, err := c.post(k.Ctx, k.Msg, params, notify)
	if err != nil || k.Method != mcp.MethodCallTool || exchange.ErrorCode(m) != mcp.CodeHeaderMismatch || !c.listTools(k.Ctx) {
		return m, release, err
	}
	release()
	return c.post(k.Ctx, k.Msg, params, notify)
}

// listTools lists the tools for the gateway itself, and reports whether that worked.
func (c *Conn) listTools(ctx context.Context) bool {
	var params json.RawMessage
	for range maxToolPages {
		m, release, err := c.post(ctx, own(mcp.MethodListTools), params, nil)
		release()
		if err != nil || m.Error() != nil {
			return false
		}
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
			c.tools = make(map[string][]mirror.Param)
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
