package exchange

import (
	"context"
	"fmt"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/buffer"
)

const (
	// MaxCalls bounds the calls of a session that are open.
	MaxCalls = 4096
	// lingerTimeout is how long a response may stay open after its answer, so that
	// the connection can be used again, and after its request was cancelled.
	lingerTimeout = 2 * time.Second
)

// Call is a message that a session is working on.
type Call struct {
	ID     jsonrpc.ID // empty for a notification
	Method string
	// Ctx ends when the call is finished or cancelled, and with the session.
	Ctx    context.Context
	Cancel context.CancelFunc

	size   int
	linger *time.Timer // nil: nothing ends the response yet
}

// Calls are the calls in flight of one session, bounded in number and bytes. The
// zero value has none. It is not safe for concurrent use: the mutex of the session
// guards it.
type Calls struct {
	open  map[jsonrpc.ID]*Call // requests that are not answered
	told  int                  // notifications that are not finished
	bytes int                  // of all that are not finished
}

// Begin adds a call for m, whose context ends with ctx. The caller must call
// Finish. Begin fails with jsonrpc.ErrBusy when there is no room, and when a
// request with the same id is open.
func (c *Calls) Begin(ctx context.Context, m *jsonrpc.Message) (*Call, error) {
	k := &Call{ID: m.ID, Method: m.Method, size: len(m.Raw()) + buffer.ItemCost}
	switch {
	case c.Open(m.ID) != nil:
		return nil, fmt.Errorf("send: a request with the id %.64s is in flight", m.ID)
	case len(c.open)+c.told >= MaxCalls, c.bytes > 0 && c.bytes+k.size > buffer.SendLimit:
		return nil, jsonrpc.ErrBusy
	}
	k.Ctx, k.Cancel = context.WithCancel(ctx)
	c.bytes += k.size
	if k.ID == "" {
		c.told++
		return k, nil
	}
	if c.open == nil {
		c.open = make(map[jsonrpc.ID]*Call)
	}
	c.open[k.ID] = k
	return k, nil
}

// Open returns the request with the id that is not answered, nil for none.
func (c *Calls) Open(id jsonrpc.ID) *Call { return c.open[id] }

// Answer takes a request out of those that are open, and reports whether it was
// one: whoever gets true answers it. Its id is free from then on.
func (c *Calls) Answer(k *Call) bool {
	if c.open[k.ID] != k {
		return false
	}
	delete(c.open, k.ID)
	return true
}

// Linger lets the response to a call go on for a moment only.
func (c *Calls) Linger(k *Call) {
	if k.linger == nil {
		k.linger = time.AfterFunc(lingerTimeout, k.Cancel)
	}
}

// Finish forgets a call, and ends its context.
func (c *Calls) Finish(k *Call) {
	k.Cancel()
	c.Answer(k)
	c.bytes -= k.size
	if k.ID == "" {
		c.told--
	}
	if k.linger != nil {
		k.linger.Stop()
	}
}
