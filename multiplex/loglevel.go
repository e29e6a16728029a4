package multiplex

import (
	"slices"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

const (
	methodSetLevel = "logging/setLevel"
	methodMessage  = "notifications/message"
)

// levels are those of RFC 5424 as MCP names them, the most verbose first. A level
// is its place here, from 1; 0 is none.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// levelUnknown is the level of a server that may or may not have taken one.
const levelUnknown = -1

// levelOf returns the level that stands in params, 0 when there is none.
func levelOf(m *jsonrpc.Message) (level int8, at jsonrpc.Place) {
	at, certain := m.Param("level")
	text, _ := jsonrpc.Text(m.At(at))
	if !certain {
		return 0, at
	}
	return int8(slices.Index(levels, text) + 1), at
}

// levelTurnLocked decides about a logging/setLevel of a shared session: a server
// has one level for all, so it gets the most verbose one that a client wants, and
// what is too much for another client does not reach it.
func (s *Session) levelTurnLocked(p *pending) verdict {
	p.tells = p.level
	for _, t := range s.ports {
		if t != p.port && t.level != 0 && (p.tells == 0 || t.level < p.tells) {
			p.tells = t.level
		}
	}
	if p.tells == s.level || p.tells == 0 {
		s.portLevelLocked(p)
		return known
	}
	if p.tells != p.level {
		_, at := levelOf(p.request)
		m, err := jsonrpc.Parse(p.request.WithValue(at, []byte(`"`+levels[p.tells-1]+`"`)))
		if err != nil { // it was valid before
			return known
		}
		p.request = m
	}
	return goes
}

// levelSetLocked notes that the server has taken a level.
func (s *Session) levelSetLocked(p *pending) {
	s.level = p.tells
	s.portLevelLocked(p)
}

func (s *Session) portLevelLocked(p *pending) {
	if p.port != nil {
		p.port.level = p.level
	}
}

// relevelLocked tells the server the level that the ports left want.
func (s *Session) relevelLocked() {
	if s.level == 0 {
		return
	}
	lowest := int8(0)
	for _, t := range s.ports {
		if t.level != 0 && (lowest == 0 || t.level < lowest) {
			lowest = t.level
		}
	}
	if lowest != 0 && lowest != s.level {
		s.ownLocked(methodSetLevel, `{"level":"`+levels[lowest-1]+`"}`, "")
	}
}

// audible keeps of the ports those that want a log message of that level.
func audible(ports []*Port, m *jsonrpc.Message, level func(*Port) int8) []*Port {
	is, _ := levelOf(m)
	if is == 0 {
		return ports
	}
	return slices.DeleteFunc(slices.Clone(ports), func(t *Port) bool { return level(t) > is })
}

// logMessage passes a log message of a server to those whom it may concern: it
// may hold what one client has sent.
func (s *Session) logMessage(m *jsonrpc.Message, ports []*Port) {
	if len(ports) == 0 {
		s.drop(metrics.DroppedUnattributed, "it is not known whose log message this is", m)
		return
	}
	s.mu.Lock()
	ports = audible(ports, m, func(t *Port) int8 { return t.level })
	s.mu.Unlock()
	deliver(ports, m.Method, m.Raw())
}
