package multiplex

import (
	"encoding/json"
	"slices"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// methodProgress tells of a request under way, by the token that came with it.
const methodProgress = "notifications/progress"

// serverNotification passes a notification of the server to the clients that it is
// for. On a session that is not shared that is the one client; a notification that
// names a request or a token has names of ours, also there.
func (s *Session) serverNotification(m *jsonrpc.Message, related jsonrpc.ID) {
	switch m.Method {
	case MethodCancelled:
		s.cancelCall(m)
		return
	case methodProgress:
		s.serverProgress(m)
		return
	case methodTaskStatus, methodTask:
		s.deliverOrDrop(m, s.taskObservers(m), "it is not known whose task this is")
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
		deliver(s.subscribers(m), m.Method, m.Raw())
	case methodElicitationIsOver:
		s.deliverOrDrop(m, s.elicited(m), "it is not known whose elicitation this is")
	case methodMessage:
		ports := s.concerned(m, related)
		if len(ports) > 0 {
			deliver(s.listeners(m, ports), m.Method, m.Raw())
			return
		}
		s.deliverOrDrop(m, nil, "it is not known whose log message this is")
	default: // no rule is known for it
		s.deliverOrDrop(m, s.concerned(m, related), "it is not known whose notification this is")
	}
}

func deliver(ports []*Port, method string, message []byte) {
	for _, c := range ports {
		c.client.Deliver(method, message)
	}
}

// deliverOrDrop delivers a message that must not be lost silently.
func (s *Session) deliverOrDrop(m *jsonrpc.Message, ports []*Port, why string) {
	if len(ports) == 0 {
		s.drop(metrics.DroppedUnattributed, why, m)
	}
	deliver(ports, m.Method, m.Raw())
}

// all returns the clients of the session.
func (s *Session) all() (ports []*Port) {
	s.locked(func(*table) { ports = s.ports })
	return ports
}

// concerned returns the clients of a shared session that may see an unaddressed
// message, which may hold what one of them has sent: the one whose request it came
// with; or all, if they have always been one principal's.
func (s *Session) concerned(m *jsonrpc.Message, related jsonrpc.ID) (ports []*Port) {
	s.locked(func(*table) {
		if c := s.ownerLocked(m, related); c != nil {
			ports = []*Port{c}
		} else if !s.mixed && s.principal != "" {
			ports = s.ports
		}
	})
	return ports
}

// listeners returns those of the clients that want a log message of that level.
func (s *Session) listeners(m *jsonrpc.Message, ports []*Port) (listeners []*Port) {
	level, _ := levelOf(m)
	s.locked(func(t *table) {
		listeners = slices.DeleteFunc(slices.Clone(ports), func(c *Port) bool { return !t.shared.levels.Wants(c, level) })
	})
	return listeners
}

// subscribers returns the clients to tell that a resource has changed.
func (s *Session) subscribers(m *jsonrpc.Message) (ports []*Port) {
	at, _ := m.Param("uri")
	uri, _ := jsonrpc.Text(m.At(at))
	s.locked(func(t *table) { ports = t.shared.subscriptions.Updated(uri) })
	return ports
}

// elicited returns the client whose elicitation is complete.
func (s *Session) elicited(m *jsonrpc.Message) (ports []*Port) {
	at, _ := m.Param("elicitationId")
	id, _ := jsonrpc.Text(m.At(at))
	s.locked(func(t *table) {
		if c, ok := t.shared.elicitations.Complete(id); ok {
			ports = []*Port{c}
		}
	})
	return ports
}

// taskObservers notes the status of a task and returns the clients to tell of it.
func (s *Session) taskObservers(m *jsonrpc.Message) (ports []*Port) {
	at, _ := m.Param("taskId")
	id, _ := jsonrpc.Text(m.At(at))
	at, _ = m.Param("status")
	status, _ := jsonrpc.Text(m.At(at))
	s.locked(func(t *table) {
		t.shared.tasks.SetStatus(id, status)
		if ports = s.ports; s.opts.Shared {
			ports = s.taskOwnersLocked(id)
		}
	})
	return ports
}

// taskOwnersLocked returns the client that has made a task; when that has left, the
// clients of its principal.
func (s *Session) taskOwnersLocked(id string) (ports []*Port) {
	task := s.table.shared.tasks.Find(id)
	if task == nil {
		return nil
	}
	if task.Client != nil {
		return []*Port{task.Client}
	}
	for _, c := range s.ports {
		if task.OwnedBy(c, c.principal) {
			ports = append(ports, c)
		}
	}
	return ports
}

// ownerLocked returns the client that a message of the server belongs to; nil when
// that is not certain. Some transports know which request the message came with; the
// messages of a task name it; and a session that is not shared has one client only.
func (s *Session) ownerLocked(m *jsonrpc.Message, related jsonrpc.ID) *Port {
	if n, ok := jsonrpc.Integer([]byte(related)); ok {
		if p := s.table.byID[n]; p != nil && p.port != nil {
			return p.port
		}
	}
	if !s.opts.Shared {
		if len(s.ports) != 1 {
			return nil
		}
		return s.ports[0]
	}
	if related != "" {
		return nil // the client that asked has left
	}
	at, _ := m.Param("_meta", relatedTask, "taskId")
	id, _ := jsonrpc.Text(m.At(at))
	if ports := s.taskOwnersLocked(id); len(ports) == 1 {
		return ports[0]
	}
	return nil
}

// serverProgress passes progress to the client whose request it is about, with
// the token that the client gave it, and gives the request more time. Towards the
// server the token is the request's id, so it is one of ours, or nobody's.
func (s *Session) serverProgress(m *jsonrpc.Message) {
	at, _ := m.Param("progressToken")
	n, _ := jsonrpc.Integer(m.At(at))
	var c *Port
	var token json.RawMessage
	s.locked(func(t *table) { c, token = t.noteProgress(n) })
	if c == nil {
		s.drop(metrics.DroppedUnknownProgress, "progress of no request in flight", m)
		return
	}
	c.client.Deliver(m.Method, m.WithValue(at, token))
}

// noteProgress extends the request that makes progress, and returns whose request
// or task that is, and the client's token.
func (t *table) noteProgress(wire int64) (*Port, json.RawMessage) {
	p := t.byID[wire]
	switch {
	case p == nil:
		if task := t.shared.tasks.Progressing(wire); task != nil {
			return task.Client, task.Token
		}
		return nil, nil
	case !p.sent || p.token == nil:
		return nil, nil
	case !p.canceled && !p.mayBlock():
		p.progressed = true
		t.extend(p)
	}
	return p.port, p.token
}

// forwardProgress passes a client's progress on a request of the server to the
// server.
func (s *Session) forwardProgress(c *Port, m *jsonrpc.Message) {
	at, certain := m.Param("progressToken")
	var call *serverCall
	s.locked(func(*table) { call = s.calls.open[jsonrpc.ID(m.At(at))] })
	switch {
	case call != nil && call.port == c && call.token != nil && certain:
		s.pass(m, m.WithValue(at, call.token))
	case s.opts.Shared:
		s.drop(metrics.DroppedUnknownProgress, "progress of no request of the server", m)
	default:
		s.pass(m, m.Raw())
	}
}

// pass sends the server what answers m, or what m has become.
func (s *Session) pass(m *jsonrpc.Message, message []byte) {
	if m.Kind == jsonrpc.Notification {
		s.noteNotified()
	}
	if err := s.conn.Send(message); err != nil { // a lost session shows by itself
		s.drop(metrics.DroppedNotReady, m.Kind.String()+" was not sent", m)
	}
}

// noteNotified notes that the server gets a notification. A server that does not
// know it may answer with an error without an id.
func (s *Session) noteNotified() {
	s.locked(func(t *table) { t.notified = t.lastID + 1 })
}
