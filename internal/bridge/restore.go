package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	// maxSettingParams bounds the params that a clientState keeps of one request, in bytes.
	maxSettingParams = 4 << 10
	// maxSettings bounds all that a clientState keeps, in bytes.
	maxSettings = 128 << 10
	// restoreTimeout bounds the time to restore the client's state on a new session.
	restoreTimeout = 5 * time.Second
)

// clientState is the state of a client that a new session must get again: the params of the
// requests that set its log level and its subscriptions.
type clientState struct {
	mu     sync.Mutex // guards what follows
	params map[setting]json.RawMessage
	bytes  int // of params
}

// setting is what a request sets: a subscription to uri, or the log level.
type setting struct{ method, uri string }

func (s setting) cost(params json.RawMessage) int {
	return len(s.uri) + len(params) + budget.ItemCost
}

// noteSetting records a request to the server if it sets the log level or changes a
// subscription.
func (m *clientState) noteSetting(msg *jsonrpc.Message) {
	sets := setting{method: msg.Method}
	switch msg.Method {
	case mcp.MethodSetLevel:
	case mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		sets.method = mcp.MethodSubscribe
		sets.uri, _ = msg.Param("uri").Text()
	default:
		return
	}
	if msg.Kind != jsonrpc.Request || len(msg.Params()) > maxSettingParams {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.params[sets]; ok {
		m.bytes -= sets.cost(old)
		delete(m.params, sets)
	}
	params := bytes.Clone(msg.Params()) // they are part of a larger buffer
	if cost := sets.cost(params); msg.Method != mcp.MethodUnsubscribe && m.bytes+cost <= maxSettings {
		m.bytes += cost
		if m.params == nil {
			m.params = make(map[setting]json.RawMessage)
		}
		m.params[sets] = params
	}
}

// hasSubscriptions reports whether the client is subscribed to a resource.
func (m *clientState) hasSubscriptions() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for sets := range m.params {
		if sets.method == mcp.MethodSubscribe {
			return true
		}
	}
	return false
}

// restore sets the client's log level and subscriptions on a new session, to which set sends a request. It logs
// calls that fail; the client does not notice the loss, so it gets no error.
func (m *clientState) restore(
	ctx context.Context,
	set func(context.Context, string, json.RawMessage) (*jsonrpc.Message, error),
	log *slog.Logger,
) {
	ctx, cancel := context.WithTimeout(ctx, restoreTimeout)
	defer cancel()
	m.mu.Lock()
	all := maps.Clone(m.params)
	m.mu.Unlock()
	for sets, params := range all {
		response, err := set(ctx, sets.method, params)
		if err != nil || response.Error() != nil {
			log.Warn("state not restored on the new session", "method", sets.method, "err", err)
		}
	}
}
