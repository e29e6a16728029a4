package multiplex

import (
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// serverNotification passes a notification of the server to the clients that it is
// for. On a session that is not shared that is the one client; what names a
// request or a token has names of ours, also there.
func (s *Session) serverNotification(m *jsonrpc.Message, related jsonrpc.ID) {
	switch m.Method {
	case MethodCancelled:
		s.cancelCall(m)
		return
	case methodProgress:
		s.serverProgress(m)
		return
	case methodTaskStatus, methodTask:
		s.taskStatus(m)
		return
	}
	if !s.opts.Shared {
		deliver(s.all(), m.Method, m.Raw())
		return
	}
	switch m.Method {
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
		deliver(s.all(), m.Method, m.Raw())
	case methodUpdated:
		s.resourceUpdated(m)
	case methodElicitationIsOver:
		s.elicitationOver(m)
	case methodMessage:
		s.logMessage(m, s.concerned(m, related))
	default:
		s.unknown(m, s.concerned(m, related))
	}
}

// unknown passes on a notification of which no rule is known.
func (s *Session) unknown(m *jsonrpc.Message, ports []*Port) {
	if len(ports) == 0 {
		s.drop(metrics.DroppedUnattributed, "it is not known whose notification this is", m)
		return
	}
	deliver(ports, m.Method, m.Raw())
}

// concerned returns whom a message of a shared session may concern that says
// nothing of it: who made the request that it came with; or all, if they have
// always been one principal's. What it holds may be somebody's.
func (s *Session) concerned(m *jsonrpc.Message, related jsonrpc.ID) []*Port {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.ownerLocked(m, related); t != nil {
		return []*Port{t}
	}
	if s.mixed || s.principal == "" {
		return nil
	}
	return s.ports
}

// all returns the ports of the session.
func (s *Session) all() []*Port {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ports
}

func deliver(ports []*Port, method string, message []byte) {
	for _, t := range ports {
		t.client.Deliver(method, message)
	}
}

// pass sends what answers m, or what m has become, to the server.
func (s *Session) pass(m *jsonrpc.Message, message []byte) {
	if m.Kind == jsonrpc.Notification {
		s.telling()
	}
	if err := s.conn.Send(message); err != nil { // a lost session shows by itself
		s.drop(metrics.DroppedNotReady, m.Kind.String()+" was not sent", m)
	}
}

// telling notes that the server gets a notification. One that does not know it may
// answer with an error without an id.
func (s *Session) telling() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = s.nextID + 1
}
