package bridge

import (
	"sync"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

// maxEarlyBytes bounds what a server may send before its session is in use.
const maxEarlyBytes = 1 << 20

// client is the bridge as one of its sessions sees it. Servers send messages as
// soon as they are initialized (roots/list is the usual case). Before the session
// is in use no answer would find the way back, and the client may still wait for
// the answer to its initialize: client keeps those messages until then.
type client struct {
	bridge *Bridge
	on     *attachment

	mu     sync.Mutex // guards what follows
	inUse  bool
	passed chan struct{} // closed when early has been delivered
	early  [][]byte
	bytes  int // of early
}

var _ multiplex.Client = (*client)(nil)

// Answer passes the server's response to a request on.
func (c *client) Answer(id jsonrpc.ID, response []byte, errorType string) {
	c.on.NoteAnswer()
	c.bridge.answer(id, response, errorType)
}

// Fail answers a request with an error of the gateway's.
func (c *client) Fail(id jsonrpc.ID, e *jsonrpc.Error, errorType string) {
	c.bridge.fail(id, e, errorType)
}

// Lost repeats a request that the session has ended under, or answers it.
func (c *client) Lost(m *jsonrpc.Message, e *jsonrpc.Error) {
	c.bridge.repeat(m, e)
}

// Deliver passes a notification or request of the server on, or keeps it.
func (c *client) Deliver(method string, message []byte) {
	if c.bridge.shares() && !c.advertised(method) {
		c.bridge.opts.Metrics.Dropped(metrics.DroppedUnknownRequest)
		return
	}
	if !c.keep(message) {
		c.pass(message)
	}
}

// advertised reports whether the server has said that this list may change. It is
// true for what is no list.
func (c *client) advertised(method string) bool {
	kind, isList := mcp.ChangedList(method)
	return !isList || c.on.Result().Advertises(kind, "listChanged")
}

// pass passes a message on. The reader of a shared session does not wait for the
// client; that of the client's own does, so that the server is slowed down.
func (c *client) pass(message []byte) {
	if c.bridge.shares() {
		c.bridge.c.SendNow(message)
		return
	}
	_ = c.bridge.c.Send(message) // a connection that is slow or gone has been closed
}

func (c *client) keep(message []byte) bool {
	c.mu.Lock()
	if c.inUse {
		c.mu.Unlock()
		<-c.passed // the reader waits, as it may in pass
		return false
	}
	defer c.mu.Unlock()
	switch {
	case c.bytes+len(message) > maxEarlyBytes:
		c.bridge.opts.Metrics.Dropped(metrics.DroppedNotReady) // a request among them is answered by its timeout
	default:
		c.early = append(c.early, message)
		c.bytes += len(message)
	}
	return true
}

// use delivers what was kept. Later messages are passed on as they come.
func (c *client) use() {
	c.mu.Lock()
	early, passed := c.early, make(chan struct{})
	c.early, c.bytes, c.passed, c.inUse = nil, 0, passed, true
	c.mu.Unlock()
	for _, message := range early {
		c.pass(message)
	}
	close(passed)
}

// Serves reports whether the session was initialized with the capability that a
// request of the server needs (MCP 2025-11-25, client features). A request that no
// rule names needs none.
func (c *client) Serves(m *jsonrpc.Message) bool {
	params := c.on.Params()
	if params == nil { // the client's own initialize is not ours to read
		return c.bridge.opts.Params == nil
	}
	capabilities, _ := jsonrpc.Member(params, "capabilities")
	declares := func(names ...string) bool { return mcp.Declares(capabilities, names...) }
	switch m.Method {
	case mcp.MethodListRoots:
		return declares("roots")
	case mcp.MethodSample:
		_, withTools := jsonrpc.Member(m.Params(), "tools")
		return declares("sampling") && (!withTools || declares("sampling", "tools"))
	case mcp.MethodElicit:
		mode, _ := jsonrpc.Member(m.Params(), "mode")
		if string(mode) == `"url"` {
			return declares("elicitation", "url")
		}
		// {} means forms, as before there were modes.
		return declares("elicitation") && (declares("elicitation", "form") || !declares("elicitation", "url"))
	}
	return true
}
