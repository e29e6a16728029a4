package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
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
func memoryCost(uri string, params json.RawMessage) int {
	return len(uri) + len(params) + budget.ItemCost
}

// note records a request to the server if it sets the log level or changes a
// subscription.
func (m *memory) note(msg *jsonrpc.Message) {
	level := msg.Method == mcp.MethodSetLevel
	if !level && msg.Method != mcp.MethodSubscribe && msg.Method != mcp.MethodUnsubscribe ||
		msg.Kind != jsonrpc.Request || len(msg.Params()) > maxRemembered {
		return
	}
	params := bytes.Clone(msg.Params()) // they are part of a larger buffer
	uri, isText := msg.Param("uri").Text()
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case level:
		m.level = params
	case isText:
		if old, ok := m.subscriptions[uri]; ok {
			m.bytes -= memoryCost(uri, old)
			delete(m.subscriptions, uri)
		}
		if cost := memoryCost(uri, params); msg.Method == mcp.MethodSubscribe && m.bytes+cost <= maxMemory {
			m.bytes += cost
			if m.subscriptions == nil {
				m.subscriptions = make(map[string]json.RawMessage)
			}
			m.subscriptions[uri] = params
		}
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
