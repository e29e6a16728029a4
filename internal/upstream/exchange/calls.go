package exchange

import (
	"context"
	"fmt"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/internal/buffer"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	// maxCalls bounds the calls in flight of a session.
	maxCalls = 4096
	// lingerTimeout is how long a response may stay open after its answer, so that
	// its connection can be used again, and after its request was cancelled.
	lingerTimeout = 2 * time.Second
)

// Call is a request that a session is working on.
type Call struct {
	ID     jsonrpc.ID
	Method string
	// Msg is the request. The goroutine of the call may drop it once it is posted.
	Msg *jsonrpc.Message
	// Ctx ends when the call is finished or cancelled, and with the session.
	Ctx    context.Context
	Cancel context.CancelFunc

	size   int
	linger *time.Timer // nil: the response may take its time
}

// Calls is the table of the calls in flight of one session, bounded in number and
// bytes. The zero value is empty. It is not safe for concurrent use: the mutex of the
// session guards it.
type Calls struct {
	open  map[jsonrpc.ID]*Call // requests that are not answered
	bytes int                  // of all calls that are not finished
}

// Begin enters a call for m, whose context ends with ctx. The caller must call
// Finish. Begin fails with jsonrpc.ErrBusy when there is no room, and with another
// error when a request with the same id is open.
func (c *Calls) Begin(ctx context.Context, m *jsonrpc.Message) (*Call, error) {
	k := &Call{ID: m.ID, Method: m.Method, Msg: m, size: len(m.Raw()) + budget.ItemCost}
	switch {
	case c.Open(m.ID) != nil:
		return nil, fmt.Errorf("send: a request with the id %.64s is in flight", m.ID)
	case len(c.open) >= maxCalls, c.bytes > 0 && c.bytes+k.size > buffer.SendLimit:
		return nil, jsonrpc.ErrBusy
	}
	k.Ctx, k.Cancel = context.WithCancel(ctx)
	c.bytes += k.size
	if c.open == nil {
		c.open = make(map[jsonrpc.ID]*Call)
	}
	c.open[k.ID] = k
	return k, nil
}

// Open returns the unanswered request with the id, nil for none.
func (c *Calls) Open(id jsonrpc.ID) *Call { return c.open[id] }

// Answer removes a request from the open ones, and reports whether it was open: then
// the caller must answer it. Its id is free from then on.
func (c *Calls) Answer(k *Call) bool {
	if c.open[k.ID] != k {
		return false
	}
	delete(c.open, k.ID)
	return true
}

// Linger cancels the context of a call in 2 s, unless it finishes before.
func (c *Calls) Linger(k *Call) {
	if k.linger == nil {
		k.linger = time.AfterFunc(lingerTimeout, k.Cancel)
	}
}

// Finish removes a call, and ends its context.
func (c *Calls) Finish(k *Call) {
	k.Cancel()
	c.Answer(k)
	c.bytes -= k.size
	if k.linger != nil {
		k.linger.Stop()
	}
}
