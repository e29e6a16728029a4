package multiplex

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// serverNotification passes a notification of the server to the clients that it is
// for. Without Options.Shared, that is the one client, but ids and progress tokens
// are replaced there too.
func (s *Session) serverNotification(m *jsonrpc.Message, related jsonrpc.ID) {
	switch m.Method {
	case mcp.MethodCancelled:
		s.cancelCall(m)
		return
	case mcp.MethodProgress:
		s.serverProgress(m)
		return
	}
	callers, asked, why := s.recipients(m, related)
	if len(callers) == 0 && why != "" {
		s.drop(metrics.DroppedUnattributed, why, m)
	}
	for _, c := range callers {
		c.client.Deliver(m.Method, asked, m.Raw())
	}
}

func textParam(m *jsonrpc.Message, name string) string {
	at, _ := m.Param(name)
	text, _ := jsonrpc.Text(m.At(at))
	return text
}

// recipients is the locked step of serverNotification. It returns the clients that a
// notification is for, and the request of the only one that it came with, if that is
// known. If there are none and that must be reported, it says why.
func (s *Session) recipients(m *jsonrpc.Message, related jsonrpc.ID) (callers []*Caller, asked jsonrpc.ID, why string) {
	var id, status string
	isTask := m.Method == mcp.MethodTaskStatus || m.Method == mcp.MethodTaskChanged
	switch {
	case isTask:
		id, status = textParam(m, "taskId"), textParam(m, "status")
	case m.Method == mcp.MethodResourceUpdated:
		id = textParam(m, "uri")
	case m.Method == mcp.MethodElicitationComplete:
		id = textParam(m, "elicitationId")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	callers = s.callers
	switch {
	case isTask:
		s.table.shared.tasks.SetStatus(id, status)
		if why = "it is not known whose task this is"; s.opts.Shared {
			callers = s.taskOwnersLocked(id)
		}
	case s.opts.Shared:
		callers, why = s.sharedRecipientsLocked(m, related, id)
	}
	if len(callers) == 1 {
		asked = s.relatedLocked(callers[0], related)
	}
	return callers, asked, why
}

// relatedLocked returns the client's id of the request in flight that the server's
// message came with, empty if that is unknown.
func (s *Session) relatedLocked(c *Caller, related jsonrpc.ID) jsonrpc.ID {
	if n, ok := jsonrpc.Integer([]byte(related)); ok {
		if e := s.table.byID[n]; e != nil && e.caller == c && e.request != nil {
			return e.request.ID
		}
	}
	return ""
}

// sharedRecipientsLocked is recipients for a shared session. id is the resource's
// URI or the elicitation's id.
func (s *Session) sharedRecipientsLocked(m *jsonrpc.Message, related jsonrpc.ID, id string) ([]*Caller, string) {
	shared := &s.table.shared
	switch m.Method {
	case mcp.MethodToolsChanged, mcp.MethodPromptsChanged, mcp.MethodResourcesChanged:
		return s.callers, ""
	case mcp.MethodResourceUpdated:
		if len(id) > maxURI { // nobody can subscribe to it
			return nil, "its URI is too long"
		}
		return shared.subscriptions.Updated(id), ""
	case mcp.MethodElicitationComplete:
		if c, ok := shared.elicitations.Complete(id); ok {
			return []*Caller{c}, ""
		}
		return nil, "it is not known whose elicitation this is"
	case mcp.MethodLogMessage:
		callers := s.audienceLocked(m, related)
		if len(callers) == 0 {
			return nil, "it is not known whose log message this is"
		}
		level, _ := levelOf(m)
		return slices.DeleteFunc(slices.Clone(callers), func(c *Caller) bool { return !shared.levels.Wants(c, level) }), ""
	}
	return s.audienceLocked(m, related), "it is not known whose notification this is"
}

// audienceLocked returns the clients of a shared session that may see an unaddressed
// message, which may hold data of one of them: the client whose request it came
// with, or all clients if they have always had the same principal.
func (s *Session) audienceLocked(m *jsonrpc.Message, related jsonrpc.ID) []*Caller {
	if c := s.ownerLocked(m, related); c != nil {
		return []*Caller{c}
	}
	if s.mixed || s.principal == "" {
		return nil
	}
	return s.callers
}

// taskOwnersLocked returns the client that made a task or, if it has left, the
// clients of its principal.
func (s *Session) taskOwnersLocked(id string) (callers []*Caller) {
	task := s.table.shared.tasks.Find(id)
	if task == nil {
		return nil
	}
	if task.Client != nil {
		return []*Caller{task.Client}
	}
	for _, c := range s.callers {
		if task.OwnedBy(c, c.principal) {
			callers = append(callers, c)
		}
	}
	return callers
}

// ownerLocked returns the client that a message of the server is for; nil if that is
// not certain. Some transports know which request the message came with; the
// messages of a task name it; and a session that is not shared has only one client.
func (s *Session) ownerLocked(m *jsonrpc.Message, related jsonrpc.ID) *Caller {
	if n, ok := jsonrpc.Integer([]byte(related)); ok {
		if e := s.table.byID[n]; e != nil && e.caller != nil {
			return e.caller
		}
	}
	if !s.opts.Shared {
		if len(s.callers) != 1 {
			return nil
		}
		return s.callers[0]
	}
	if related != "" {
		return nil // the client that asked has left
	}
	at, _ := m.Param("_meta", relatedTask, "taskId")
	id, _ := jsonrpc.Text(m.At(at))
	if callers := s.taskOwnersLocked(id); len(callers) == 1 {
		return callers[0]
	}
	return nil
}

// serverProgress passes progress to the client whose request it is about, under the
// client's token, and gives the request more time. The server has the request's id
// as its token.
func (s *Session) serverProgress(m *jsonrpc.Message) {
	at, _ := m.Param("progressToken")
	n, _ := jsonrpc.Integer(m.At(at))
	var c *Caller
	var token json.RawMessage
	var asked jsonrpc.ID
	s.withLock(func(t *table) {
		c, token = t.noteProgress(n)
		asked = s.relatedLocked(c, jsonrpc.ID(strconv.FormatInt(n, 10)))
	})
	if c == nil {
		s.drop(metrics.DroppedUnknownProgress, "progress of no request in flight", m)
		return
	}
	c.client.Deliver(m.Method, asked, m.WithValue(at, token))
}

// noteProgress extends the request that makes progress. It returns the client whose
// request or task that is, and the client's token.
func (t *table) noteProgress(wire int64) (*Caller, json.RawMessage) {
	e := t.byID[wire]
	switch {
	case e == nil:
		if task := t.shared.tasks.Progressing(wire); task != nil {
			return task.Client, task.Token
		}
		return nil, nil
	case !e.sent() || e.token == nil:
		return nil, nil
	case !e.canceled && !e.mayBlock():
		e.progressed = true
		t.extend(e)
	}
	return e.caller, e.token
}

// forwardProgress passes a client's progress on a request of the server to the
// server.
func (s *Session) forwardProgress(c *Caller, m *jsonrpc.Message) {
	at, certain := m.Param("progressToken")
	var call *serverCall
	s.withLock(func(*table) { call = s.calls.open[jsonrpc.ID(m.At(at))] })
	switch {
	case call != nil && call.caller == c && call.token != nil && certain:
		s.passToServer(m, m.WithValue(at, call.token))
	case s.opts.Shared:
		s.drop(metrics.DroppedUnknownProgress, "progress of no request of the server", m)
	default:
		s.passToServer(m, m.Raw())
	}
}

// passToServer sends message, which was made from m, to the server.
func (s *Session) passToServer(m *jsonrpc.Message, message []byte) {
	if m.Kind == jsonrpc.Notification {
		s.noteNotification()
	}
	if err := s.conn.Send(message); err != nil { // the reader notices a lost session
		s.drop(metrics.DroppedNotReady, m.Kind.String()+" was not sent", m)
	}
}

// noteNotification notes that the server gets a notification. A server that does not
// know its method may answer with an error without an id.
func (s *Session) noteNotification() {
	s.withLock(func(t *table) { t.notified = t.lastID + 1 })
}

// Notify sends a notification of the gateway.
func (s *Session) Notify(method string, params json.RawMessage) error {
	s.noteNotification()
	return s.conn.Send(jsonrpc.NewNotification(method, params))
}
