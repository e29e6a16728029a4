package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// maxSubscriptions bounds how many subscriptions of a client are remembered.
const maxSubscriptions = 1024

// maxRemembered bounds the params that are remembered of one request, in bytes.
const maxRemembered = 4 << 10

// restoreTimeout bounds how long a new session may take to be told what the
// lost one knew.
const restoreTimeout = 5 * time.Second

// memory is what a client has told its session and a new session must be told
// again: its log level and its subscriptions.
type memory struct {
	mu            sync.Mutex // guards what follows
	level         json.RawMessage
	subscriptions map[string]json.RawMessage // params by uri
}

// note learns from a request on its way to the server.
func (m *memory) note(msg *jsonrpc.Message) {
	if len(msg.Params()) > maxRemembered {
		return
	}
	switch msg.Method {
	case mcp.MethodSetLevel:
		m.mu.Lock()
		m.level = bytes.Clone(msg.Params()) // not the message that it is part of
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
	switch {
	case !on:
		delete(m.subscriptions, uri)
	case len(m.subscriptions) < maxSubscriptions:
		if m.subscriptions == nil {
			m.subscriptions = make(map[string]json.RawMessage)
		}
		m.subscriptions[uri] = bytes.Clone(params)
	}
}

// restore tells a new session what the lost one knew. It logs what the session
// refuses; the client is not told, as it was not told of the loss.
func (m *memory) restore(a *attachment, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), restoreTimeout) // the session ends with its connection
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
	for _, c := range calls {
		response, err := a.caller.Call(ctx, c.method, c.params)
		if err != nil || response.Error() != nil {
			log.Warn("state not restored on the new session", "method", c.method, "err", err)
		}
	}
}

// repeated are the requests of a connection that are sent for the second time,
// because the session was lost under the first. None is sent a third time.
type repeated struct {
	some atomic.Bool // ids may have entries

	mu  sync.Mutex // guards ids
	ids map[jsonrpc.ID]struct{}
}

// note notes a request. It reports false when the request was noted before.
func (r *repeated) note(id jsonrpc.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, again := r.ids[id]; again {
		return false
	}
	if r.ids == nil {
		r.ids = make(map[jsonrpc.ID]struct{})
	}
	r.ids[id] = struct{}{}
	r.some.Store(true)
	return true
}

// forget forgets a request that is answered.
func (r *repeated) forget(id jsonrpc.ID) {
	if !r.some.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ids, id)
	r.some.Store(len(r.ids) > 0)
}

// repeat puts a request under which the session was lost back into the gate, behind
// which the next session is being started; or it answers the request with e.
func (b *Bridge) repeat(m *jsonrpc.Message, e *jsonrpc.Error) {
	if !b.opts.Repeat || !b.repeated.note(m.ID) {
		b.fail(m.ID, e, metrics.ErrorSessionLost)
		return
	}
	b.opts.Metrics.RequestRepeated()
	pass, err := b.c.Readmit(m)
	b.passOrRefuse(m, pass, err)
}
