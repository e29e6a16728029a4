package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

const (
	// maxRemembered bounds the params that a memory keeps of one request, in bytes.
	maxRemembered = 4 << 10
	// maxMemory bounds the subscriptions that a memory keeps, in bytes.
	maxMemory = 128 << 10
)

// restoreTimeout bounds the time to restore the client's state on a new session.
const restoreTimeout = 5 * time.Second

// memory is the state of a client that a new session must get again: its log level
// and its subscriptions.
type memory struct {
	mu            sync.Mutex // guards what follows
	level         json.RawMessage
	subscriptions map[string]json.RawMessage // params by uri
	bytes         int                        // of subscriptions
}

// memoryCost returns what a subscription counts for, in bytes.
func memoryCost(uri string, params json.RawMessage) int { return len(uri) + len(params) + 64 }

// note records a request to the server if it sets the log level or changes a
// subscription.
func (m *memory) note(msg *jsonrpc.Message) {
	if len(msg.Params()) > maxRemembered {
		return
	}
	switch msg.Method {
	case mcp.MethodSetLevel:
		m.mu.Lock()
		m.level = bytes.Clone(msg.Params()) // params is part of a larger buffer
		m.mu.Unlock()
	case mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		raw, _ := jsonrpc.Member(msg.Params(), "uri")
		if uri, ok := jsonrpc.Text(raw); ok {
			m.subscribe(uri, msg.Params(), msg.Method == mcp.MethodSubscribe)
		}
	}
}

func (m *memory) subscribe(uri string, params json.RawMessage, on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.subscriptions[uri]; ok {
		m.bytes -= memoryCost(uri, old)
		delete(m.subscriptions, uri)
	}
	if cost := memoryCost(uri, params); on && m.bytes+cost <= maxMemory {
		m.bytes += cost
		if m.subscriptions == nil {
			m.subscriptions = make(map[string]json.RawMessage)
		}
		m.subscriptions[uri] = bytes.Clone(params)
	}
}

// restore sets the client's log level and subscriptions on a new session. It logs
// calls that fail; the client does not notice the loss, so it gets no error.
func (m *memory) restore(ctx context.Context, c *client, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, restoreTimeout)
	defer cancel()
	m.mu.Lock()
	type call struct {
		method string
		params json.RawMessage
	}
	var calls []call
	if m.level != nil {
		calls = append(calls, call{mcp.MethodSetLevel, m.level})
	}
	for _, params := range m.subscriptions {
		calls = append(calls, call{mcp.MethodSubscribe, params})
	}
	m.mu.Unlock()
	for _, call := range calls {
		response, err := c.caller.Call(ctx, call.method, call.params)
		if err != nil || response.Error() != nil {
			log.Warn("state not restored on the new session", "method", call.method, "err", err)
		}
	}
}

// dismissTimeout bounds how long the stream of a dismissed client may take to write what
// it still has to.
const dismissTimeout = 10 * time.Second

// dismiss ends the connection if err says that the server wants no more of this client:
// it answers the requests that wait, and closes the stream when all are answered.
func (b *Bridge) dismiss(err error) {
	if b.shares() || !errors.Is(err, jsonrpc.ErrDismissed) {
		return
	}
	b.dismissed.Store(true)
	quiet, err := b.c.Drain()
	if err != nil {
		return // it drains or is closed already
	}
	b.opts.Supplier.Go(func() { // ends with the connection
		select {
		case <-quiet:
			b.c.CloseGracefully(metrics.ClosedServer, dismissTimeout)
		case <-b.c.Done():
		}
	})
}

// repeat puts a request of a lost session back into the gate, where it waits for the
// next session, unless it was repeated before. If it may not be repeated, repeat answers
// it with e.
func (b *Bridge) repeat(r *connstate.Request, e *jsonrpc.Error) {
	if r.Message == nil || r.Repeated || !b.opts.Repeat || b.dismissed.Load() {
		r.Fail(b.visibleLoss(e), metrics.ErrorSessionLost)
		return
	}
	r.Repeated = true
	b.opts.Metrics.RequestRepeated()
	pass, err := b.c.Readmit(r)
	b.passOrRefuse(r, pass, err)
}
