package multiplex

import (
	"crypto/rand"
	"encoding/json"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// maxServerCalls bounds the requests of a server that no client has answered.
const maxServerCalls = 256

// serverCalls are the requests of the server that wait for a client's answer.
// Guarded by Session.mu.
type serverCalls struct {
	prefix string // of the session's ids; random, so that no two sessions share ids
	last   int
	open   map[jsonrpc.ID]*serverCall // by the session's id
}

// serverCall is a request of the server to a client.
type serverCall struct {
	id     jsonrpc.ID // the server's
	ours   jsonrpc.ID
	caller *Caller
	// related is the client's request that this one came with; empty if unknown.
	related jsonrpc.ID
	token   json.RawMessage // the server's progress token; nil: none
	limit   time.Duration   // how long the client may take
	timer   *time.Timer
}

// expireCall refuses a request that the client has not answered in time.
func (s *Session) expireCall(call *serverCall) {
	if s.takeCall(func(other *serverCall) bool { return other == call }) != nil {
		s.refuse(call.id, jsonrpc.Errorf(jsonrpc.CodeInternalError, "the client did not answer in %s", call.limit))
	}
}

// serverRequest answers a request of the server or passes it to the client that it
// is for. It refuses requests that the client has not declared to serve, and those
// that it cannot attribute.
func (s *Session) serverRequest(m *jsonrpc.Message, related jsonrpc.ID) {
	if m.Method == mcp.MethodPing {
		s.passToServer(m, jsonrpc.NewResult(m.ID, json.RawMessage("{}")))
		return
	}
	if m.Method == mcp.MethodInitialize && s.failEchoed(m) {
		return
	}
	var c *Caller
	var asked jsonrpc.ID
	s.withLock(func(*table) {
		c = s.ownerLocked(m, related)
		asked = s.relatedLocked(c, related)
	})
	if c == nil {
		s.drop(metrics.DroppedUnattributed, "it is not known which client this request is for", m)
		s.refuse(m.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "it is not known which client %.64s is for", m.Method))
		return
	}
	if !c.client.Serves(m) {
		s.drop(metrics.DroppedUnknownRequest, "request of the server refused", m)
		s.refuse(m.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "the client does not serve %.64s", m.Method))
		return
	}
	s.callClient(c, asked, m)
}

// failEchoed fails the initialize request that the server sends back, and reports
// whether there is one. No server sends initialize, but a program like cat echoes
// it, and the start would otherwise wait for its timeout.
func (s *Session) failEchoed(m *jsonrpc.Message) bool {
	e := s.takeOut(func(t *table) *entry {
		if e := t.byID[numberOf(m.ID)]; e != nil && e.sent() && e.method == mcp.MethodInitialize {
			return e
		}
		return nil
	})
	if e == nil {
		return false
	}
	s.failUnusable(e, "the program only sends back what it gets: it is no MCP server")
	return true
}

// callClient passes a request of the server, which came with the request related of the
// client, to the client.
func (s *Session) callClient(c *Caller, related jsonrpc.ID, m *jsonrpc.Message) {
	at, _ := m.Param("_meta", "progressToken")
	call := &serverCall{id: m.ID, caller: c, related: related, limit: s.opts.RequestTimeout}
	if m.Method == mcp.MethodElicit || m.Method == mcp.MethodSample { // a person may have to decide
		call.limit = s.opts.MaxRequestTimeout
	}
	if at.Found() {
		call.token = append(call.token, m.At(at)...) // a copy, so as not to keep the whole message
	}
	if !s.addCall(call) {
		s.drop(metrics.DroppedNotReady, "too many requests of the server", m)
		s.refuse(m.ID, jsonrpc.Errorf(jsonrpc.CodeInternalError, "over %d requests to the client are unanswered", maxServerCalls))
		return
	}
	if m.Method == mcp.MethodElicit {
		id, _ := jsonrpc.Member(m.Params(), "elicitationId")
		s.learnElicitation(c, id)
	}
	c.client.Deliver(m.Method, related, m.WithIDAt(call.ours, at))
}

// refuse answers a request of the server with an error.
func (s *Session) refuse(id jsonrpc.ID, e *jsonrpc.Error) {
	_ = s.conn.Send(jsonrpc.NewError(id, e)) // the reader notices a lost session
}

// addCall adds a request of the server, with an id of the session's and a deadline.
// It reports false if there is no room, the client has left, or the session is over.
func (s *Session) addCall(call *serverCall) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := &s.calls
	if s.err != nil || call.caller.left || len(calls.open) >= maxServerCalls {
		return false
	}
	if calls.open == nil {
		calls.open = make(map[jsonrpc.ID]*serverCall)
		calls.prefix = "gw-" + rand.Text()[:8] + "-"
	}
	calls.last++
	call.ours = jsonrpc.ID(strconv.Quote(calls.prefix + strconv.Itoa(calls.last)))
	calls.open[call.ours] = call
	call.caller.openCalls++
	call.timer = time.AfterFunc(call.limit, func() { s.expireCall(call) })
	return true
}

// takeCall removes and returns the request of the server that match accepts; nil if
// there is none. It calls match with the lock held.
func (s *Session) takeCall(match func(*serverCall) bool) *serverCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, call := range s.calls.open {
		if match(call) {
			s.removeCallLocked(call)
			return call
		}
	}
	return nil
}

func (s *Session) removeCallLocked(call *serverCall) {
	call.timer.Stop()
	delete(s.calls.open, call.ours)
	call.caller.openCalls--
	s.table.noteMessage() // the server had to wait: it is not silent
}

// forwardResponse passes a client's response to the server.
func (s *Session) forwardResponse(c *Caller, m *jsonrpc.Message) {
	call := s.takeCall(func(call *serverCall) bool { return call.ours == m.ID && call.caller == c })
	if call == nil {
		s.drop(metrics.DroppedUnknownResponse, "response answers no request of the server", m)
		return
	}
	s.passToServer(m, m.WithID(call.id))
}

// cancelCall removes the request that the server cancels, and tells the client.
func (s *Session) cancelCall(m *jsonrpc.Message) {
	at, _ := m.Param("requestId")
	id := jsonrpc.ID(m.At(at))
	call := s.takeCall(func(call *serverCall) bool { return call.id == id })
	if call == nil {
		s.drop(metrics.DroppedUnknownRequest, "cancellation names no request of the server", m)
		return
	}
	call.caller.client.Deliver(m.Method, call.related, m.WithValue(at, json.RawMessage(call.ours)))
}
