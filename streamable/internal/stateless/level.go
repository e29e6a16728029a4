package stateless

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex/sharing"
)

// setLevel has the server send the log messages that a call asks for. A server has one
// level: the most verbose one that a call on the connection wants. If the server refuses,
// or does not answer within askTime, there are no log messages.
func (l *link) setLevel(ctx context.Context, k *call) {
	if _, ok := jsonrpc.Member(l.result, "capabilities", "logging"); !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	select {
	case l.levelLock <- struct{}{}:
		defer func() { <-l.levelLock }()
	case <-ctx.Done():
		return
	}
	l.mu.Lock()
	level, needed := l.levels.Needed(k, k.level)
	l.levels.Set(k, k.level)
	l.mu.Unlock()
	if !needed {
		return
	}
	params := json.RawMessage(`{"level":` + strconv.Quote(level.String()) + `}`)
	m, err := l.ask(ctx, mcp.MethodSetLevel, params)
	if err == nil && m.Result() != nil {
		l.mu.Lock()
		l.levels.Told(level)
		l.mu.Unlock()
	}
}

// logged passes a log message to the call that it belongs to. Over stdio nobody knows
// which that is, unless there is only one.
func (l *link) logged(related jsonrpc.ID, m *jsonrpc.Message) {
	raw, _ := jsonrpc.Member(m.Params(), "level")
	name, _ := jsonrpc.Text(raw)
	level := sharing.ParseLevel(name)
	l.mu.Lock()
	k := l.calls[related]
	if related == "" {
		k = l.onlyCallLocked()
	}
	l.mu.Unlock()
	switch {
	case k == nil:
		l.h.opts.Metrics.Dropped(metrics.DroppedUnattributed)
	case k.level != 0 && level >= k.level:
		l.note(k, m)
	}
}

// onlyCallLocked returns the client's only call on the connection, nil if there is none or
// are several.
func (l *link) onlyCallLocked() (only *call) {
	for _, k := range l.calls {
		switch {
		case k.own:
		case only != nil:
			return nil
		default:
			only = k
		}
	}
	return only
}
