package multiplex

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
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
		s.dropMessage(metrics.DroppedUnattributed, why, m)
	}
	for _, c := range callers {
		c.client.Deliver(m.Method, asked, m.Raw())
	}
}

// recipients is the locked step of serverNotification. It returns the clients that a
// notification is for, and the related request if it is one of the only client. If there are
// none and that must be reported, it says why.
func (s *Session) recipients(m *jsonrpc.Message, related jsonrpc.ID) (callers []*Caller, asked jsonrpc.ID, why string) {
	var id, status string
	isTask := m.Method == mcp.MethodTaskStatus || m.Method == mcp.MethodTaskChanged
	switch {
	case isTask:
		id, _ = m.Param("taskId").Text()
		status, _ = m.Param("status").Text()
	case m.Method == mcp.MethodResourceUpdated:
		id, _ = m.Param("uri").Text()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	callers = s.callers
	switch {
	case isTask:
		s.table.shared.tasks.SetStatus(id, status)
		why = "it is not known whose task this is"
		if s.opts.Shared {
			callers = s.taskOwnersLocked(id)
		}
	case s.opts.Shared:
		callers, why = s.sharedRecipientsLocked(m, related, id)
	}
	if len(callers) == 1 {
		asked = s.table.askedBy(callers[0], related)
	}
	return callers, asked, why
}

// related returns the related request of a message by its id on the wire, nil if there is none.
func (t *table) related(id jsonrpc.ID) *entry {
	n, _ := requestNumber(id)
	return t.byID[n]
}

// untaken returns the request that the server has not taken, as the end of the session says; nil for
// none.
func (t *table) untaken(err error) *entry {
	if of, ok := errors.AsType[*jsonrpc.NotTakenError](err); ok {
		return t.related(of.ID)
	}
	return nil
}

// askedBy returns the client's id of its request that has the id related on the wire;
// empty if there is none.
func (t *table) askedBy(c *Caller, related jsonrpc.ID) jsonrpc.ID {
	if e := t.related(related); e != nil && e.caller == c && e.request != nil {
		return e.request.ID
	}
	return ""
}

// sharedRecipientsLocked is recipients for a shared session. uri is the resource's.
func (s *Session) sharedRecipientsLocked(m *jsonrpc.Message, related jsonrpc.ID, uri string) ([]*Caller, string) {
	shared := &s.table.shared
	switch m.Method {
	case mcp.MethodToolsChanged, mcp.MethodPromptsChanged, mcp.MethodResourcesChanged:
		return s.callers, ""
	case mcp.MethodResourceUpdated:
		if len(uri) > maxURI { // nobody can subscribe to it
			return nil, "its URI is too long"
		}
		if subscribers := shared.subscriptions.Updated(uri); len(subscribers) > 0 {
			return subscribers, ""
		}
		// It may be part of anything that somebody subscribes to, and its URI may hold data of one client.
		return slices.DeleteFunc(slices.Clone(s.audienceLocked(m, related)),
			func(c *Caller) bool { return !shared.subscriptions.Subscribes(c) }), "nobody subscribes to this resource"
	case mcp.MethodElicitationComplete:
		return nil, "a shared session has no elicitations"
	case mcp.MethodLogMessage:
		callers := s.audienceLocked(m, related)
		if len(callers) == 0 {
			return nil, "it is not known whose log message this is"
		}
		level, _ := levelOf(m)
		return slices.DeleteFunc(slices.Clone(callers),
			func(c *Caller) bool { return !shared.levels.Wants(c, level) }), ""
	}
	return s.audienceLocked(m, related), "it is not known whose notification this is"
}

// audienceLocked returns the clients of a shared session that may see an unaddressed
// message, which may hold data of one of them: the client of the related request, which some
// transports know, the one whose task it names, or all clients if they have
// always had the same principal.
func (s *Session) audienceLocked(m *jsonrpc.Message, related jsonrpc.ID) []*Caller {
	if e := s.table.related(related); e != nil && e.caller != nil {
		return []*Caller{e.caller}
	}
	if related == "" { // else the client that asked has left
		id, _ := m.Param("_meta", relatedTask, "taskId").Text()
		if callers := s.taskOwnersLocked(id); len(callers) == 1 {
			return callers
		}
	}
	if s.principals != onePrincipal || s.principal == "" {
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

// serverProgress passes progress to the client whose request it is about, under the
// client's token, and gives the request more time. The server has the request's id
// as its token.
func (s *Session) serverProgress(m *jsonrpc.Message) {
	var c *Caller
	var token json.RawMessage
	var request *connstate.Request
	s.withLock(func(t *table) {
		wire, _ := requestNumber(jsonrpc.ID(m.Token.Value))
		c, token = t.noteProgress(wire)
		if e := t.byID[wire]; e != nil {
			request = e.request
		}
	})
	switch {
	case c == nil:
		s.dropMessage(metrics.DroppedUnknownProgress, "progress of no request in flight", m)
	case request != nil:
		c.client.Progress(request, m.WithValue(m.Token, token))
	default: // of a task
		c.client.Deliver(m.Method, "", m.WithValue(m.Token, token))
	}
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
	case !e.isCanceled() && !e.mayBlock():
		e.move(progresses)
		t.extend(e)
	}
	return e.caller, e.token
}

// maxServerCalls bounds the requests of a server that no client has answered.
const maxServerCalls = 256

// serverCalls are the requests of the server that wait for a client's answer.
// Guarded by Session.mu.
type serverCalls struct {
	prefix string // of the session's ids; random, so that no two sessions share ids
	last   int
	open   map[jsonrpc.ID]*serverCall // by the session's id

	// limit is how long a client may take for an answer, and longLimit where a person may have to decide.
	limit, longLimit time.Duration
}

// serverCall is a request of the server to a client.
type serverCall struct {
	id     jsonrpc.ID // the server's
	ours   jsonrpc.ID
	caller *Caller
	// related is the related request of the client; empty if unknown.
	related jsonrpc.ID
	token   json.RawMessage // the server's progress token; nil: none
	limit   time.Duration   // how long the client may take
	timer   *time.Timer
}

// Echo is the message of the error with which a session refuses an initialize of its server. A program that only
// sends back what it gets, as cat does, sends that back too.
const Echo = "the program only sends back what it gets: it is not an MCP server"

// serverRequest answers a request of the server, or passes it to the client. It refuses
// requests that the client has not declared to serve; on a shared session, whose
// initialize declares nothing, all of them.
func (s *Session) serverRequest(m *jsonrpc.Message, related jsonrpc.ID) {
	switch m.Method {
	case mcp.MethodPing:
		s.passData(m, jsonrpc.NewResult(m.ID, json.RawMessage("{}")))
		return
	case mcp.MethodInitialize:
		// A program like cat sends the refusal back, too. There it answers the gateway's own
		// initialize, which would otherwise wait for its timeout.
		s.refuse(m.ID, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, Echo))
		return
	}
	var c *Caller
	var asked jsonrpc.ID
	var cancelled bool
	s.withLock(func(t *table) {
		if !s.opts.Shared && len(s.callers) == 1 {
			c = s.callers[0]
			asked, cancelled = t.askedBy(c, related), t.isCancelled(related)
			if related == mcp.NoRequest {
				asked = related
			}
		}
	})
	if c == nil || !c.client.Serves(m) {
		s.dropMessage(metrics.DroppedUnknownRequest, "request of the server refused", m)
		s.refuse(m.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "the client does not serve %.64s", m.Method))
		return
	}
	if cancelled && (m.Method == mcp.MethodElicit || m.Method == mcp.MethodSample) {
		s.dropMessage(metrics.DroppedUnknownRequest, "question for a request that its client has cancelled", m)
		s.refuse(m.ID, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "the client has cancelled the request"))
		return
	}
	s.callClient(c, asked, m)
}

// isCancelled reports whether a question of the server is for a request that its client has cancelled: the one that
// has the id related on the wire, or, if that is unknown, all that are out.
func (t *table) isCancelled(related jsonrpc.ID) bool {
	if related != "" && related != mcp.NoRequest {
		e := t.related(related)
		return e != nil && e.isCanceled()
	}
	some := false
	for _, e := range t.byID {
		if e.caller != nil && e.sent() {
			if !e.isCanceled() {
				return false
			}
			some = true
		}
	}
	return some
}

// callClient passes a request of the server to the client. related is the related request of the client.
func (s *Session) callClient(c *Caller, related jsonrpc.ID, m *jsonrpc.Message) {
	call := &serverCall{id: m.ID, caller: c, related: related, limit: s.calls.limit}
	call.token = bytes.Clone(m.Token.Value)                           // so as not to keep the whole message
	if m.Method == mcp.MethodElicit || m.Method == mcp.MethodSample { // a person may have to decide
		call.limit = s.calls.longLimit
	}
	if !s.addCall(call) {
		s.dropMessage(metrics.DroppedNotReady, "too many requests of the server", m)
		s.refuse(m.ID, jsonrpc.Errorf(jsonrpc.CodeInternalError, "over %d requests to the client are unanswered",
			maxServerCalls))
		return
	}
	c.client.Deliver(m.Method, related, m.Renumbered(call.ours))
}

// refuse answers a request of the server with an error.
func (s *Session) refuse(id jsonrpc.ID, e *jsonrpc.Error) {
	_ = s.conn.Send(jsonrpc.NewError(id, e)) // the reader notices a lost session
}

// addCall adds a request of the server, with an id of the session's and a deadline.
// It reports false if there is no room, or the session is over.
func (s *Session) addCall(call *serverCall) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := &s.calls
	if s.err != nil || len(calls.open) >= maxServerCalls {
		return false
	}
	if calls.open == nil {
		calls.open = make(map[jsonrpc.ID]*serverCall)
		calls.prefix = "gw-" + rand.Text()[:8] + "-"
	}
	calls.last++
	call.ours = jsonrpc.ID(strconv.Quote(calls.prefix + strconv.Itoa(calls.last)))
	calls.open[call.ours] = call
	call.timer = time.AfterFunc(call.limit, func() {
		if s.takeCall(func(other *serverCall) bool { return other == call }) != nil {
			s.refuse(call.id, jsonrpc.Errorf(jsonrpc.CodeInternalError, "the client did not answer in %s", call.limit))
		}
	})
	return true
}

// takeCall removes and returns the request of the server that match accepts; nil if
// there is none. It calls match with the lock held.
func (s *Session) takeCall(match func(*serverCall) bool) *serverCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, call := range s.calls.open {
		if match(call) {
			call.timer.Stop()
			delete(s.calls.open, call.ours)
			s.table.lastMessage = time.Now() // the server had to wait: it is not silent
			return call
		}
	}
	return nil
}

// cancelCall removes the request that the server cancels, and tells the client.
func (s *Session) cancelCall(m *jsonrpc.Message) {
	id := jsonrpc.ID(m.RequestID.Value)
	call := s.takeCall(func(call *serverCall) bool { return jsonrpc.Alike(call.id, id) })
	if call == nil {
		s.dropMessage(metrics.DroppedUnknownRequest, "cancellation names no request of the server", m)
		return
	}
	call.caller.client.Deliver(m.Method, call.related, m.WithValue(m.RequestID, json.RawMessage(call.ours)))
}
