package multiplex

import (
	"encoding/json"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// methodProgress tells of a request under way, by the token that came with it.
const methodProgress = "notifications/progress"

// serverProgress passes progress to the client whose request it is about, with
// the token that the client gave it, and gives the request more time. Towards the
// server the token is the request's id, so it is one of ours, or nobody's.
func (s *Session) serverProgress(m *jsonrpc.Message) {
	at, _ := m.Param("progressToken")
	n, _ := jsonrpc.Integer(m.At(at))
	s.mu.Lock()
	t, token := s.progressLocked(n)
	s.mu.Unlock()
	if t == nil {
		s.drop(metrics.DroppedUnknownProgress, "progress of no request in flight", m)
		return
	}
	deliver([]*Port{t}, m.Method, m.WithValue(at, token))
}

func (s *Session) progressLocked(wire int64) (*Port, json.RawMessage) {
	p := s.pending[wire]
	if p == nil {
		if k := s.tasks.tokens[wire]; k != nil {
			return k.port, k.token
		}
		return nil, nil
	}
	if !p.sent || p.token == nil {
		return nil, nil
	}
	if !p.canceled && !blocks(p) {
		p.progressed = true
		s.deadlineLocked(&p.timed, p, min(s.now()+s.opts.RequestTimeout, p.started+s.opts.MaxRequestTimeout))
	}
	return p.port, p.token
}

// progress passes a client's progress on a request of the server back to it.
func (t *Port) progress(m *jsonrpc.Message) {
	s := t.session
	at, certain := m.Param("progressToken")
	s.mu.Lock()
	call := s.calls.open[jsonrpc.ID(m.At(at))]
	s.mu.Unlock()
	switch {
	case call != nil && call.port == t && call.token != nil && certain:
		s.pass(m, m.WithValue(at, call.token))
	case s.opts.Shared:
		s.drop(metrics.DroppedUnknownProgress, "progress of no request of the server", m)
	default:
		s.pass(m, m.Raw())
	}
}
