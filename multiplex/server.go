package multiplex

import (
	"crypto/rand"
	"encoding/json"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// maxServerCalls bounds the requests of a server that no client has answered.
const maxServerCalls = 256

// serverCalls are the requests of the server that wait for a client's answer.
// Guarded by Session.mu.
type serverCalls struct {
	prefix string // of our ids; drawn at random, so that no two sessions share ids
	next   int
	open   map[jsonrpc.ID]*serverCall // by our id
}

type serverCall struct {
	id    jsonrpc.ID // the server's
	port  *Port
	timer *time.Timer
}

func (c *serverCalls) clear() {
	for _, call := range c.open {
		call.timer.Stop()
	}
	c.open = nil
}

// serverRequest answers a request of the server or passes it to the client that
// it belongs to. What no client has said it serves is refused at once.
func (s *Session) serverRequest(m *jsonrpc.Message) {
	if m.Method == "ping" {
		_ = s.conn.Send(jsonrpc.NewResult(m.ID, json.RawMessage("{}"))) // a lost session shows by itself
		return
	}
	port := s.target()
	if port == nil || !port.client.Serves(m) {
		s.drop(metrics.DroppedUnknownRequest, "request of the server refused", m)
		s.refuse(m.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "the client does not serve %.64s", m.Method))
		return
	}
	id, ok := s.beginCall(m.ID, port)
	if !ok {
		s.drop(metrics.DroppedNotReady, "too many requests of the server", m)
		s.refuse(m.ID, jsonrpc.Errorf(jsonrpc.CodeInternalError, "over %d requests to the client are unanswered", maxServerCalls))
		return
	}
	port.client.Deliver(m.Method, m.WithID(id))
}

// target is the client that a message of the server belongs to. Messages do not
// say, so with more than one client there is none.
func (s *Session) target() *Port {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ports) != 1 {
		return nil
	}
	return s.ports[0]
}

func (s *Session) refuse(id jsonrpc.ID, e *jsonrpc.Error) {
	_ = s.conn.Send(jsonrpc.NewError(id, e)) // a lost session shows by itself
}

func (s *Session) beginCall(serverID jsonrpc.ID, port *Port) (jsonrpc.ID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.calls
	if s.err != nil || len(c.open) >= maxServerCalls {
		return "", false
	}
	if c.open == nil {
		c.open = make(map[jsonrpc.ID]*serverCall)
		c.prefix = "gw-" + rand.Text()[:8] + "-"
	}
	c.next++
	id := jsonrpc.ID(strconv.Quote(c.prefix + strconv.Itoa(c.next)))
	c.open[id] = &serverCall{id: serverID, port: port, timer: time.AfterFunc(s.opts.RequestTimeout, func() {
		if call := s.endCall(id, nil); call != nil {
			s.refuse(call.id, jsonrpc.Errorf(jsonrpc.CodeInternalError, "the client did not answer in %s", s.opts.RequestTimeout))
		}
	})}
	return id, true
}

// endCall removes the server's request with that id of ours; with a port, only
// if it went to that one.
func (s *Session) endCall(id jsonrpc.ID, port *Port) *serverCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := s.calls.open[id]
	if call == nil || port != nil && call.port != port {
		return nil
	}
	call.timer.Stop()
	delete(s.calls.open, id)
	return call
}

// response passes a client's response to the server that asked.
func (t *Port) response(m *jsonrpc.Message) {
	call := t.session.endCall(m.ID, t)
	if call == nil {
		t.session.drop(metrics.DroppedUnknownResponse, "response answers no request of the server", m)
		return
	}
	_ = t.session.conn.Send(m.WithID(call.id)) // a lost session shows by itself
}

// serverNotification passes a notification to the clients.
func (s *Session) serverNotification(m *jsonrpc.Message) {
	raw := m.Raw()
	if m.Method == MethodCancelled {
		if raw = s.cancelCall(m); raw == nil {
			s.drop(metrics.DroppedUnknownRequest, "cancellation names no request of the server", m)
			return
		}
	}
	s.mu.Lock()
	ports := s.ports
	s.mu.Unlock()
	for _, port := range ports {
		port.client.Deliver(m.Method, raw)
	}
}

// cancelCall takes a server's request back and returns the cancellation with
// the id that the client knows.
func (s *Session) cancelCall(m *jsonrpc.Message) []byte {
	want, _ := jsonrpc.Member(m.Params(), "requestId")
	s.mu.Lock()
	var found jsonrpc.ID
	for id, call := range s.calls.open {
		if call.id == jsonrpc.ID(want) {
			found = id
		}
	}
	s.mu.Unlock()
	if found == "" || s.endCall(found, nil) == nil {
		return nil
	}
	return m.WithParams(jsonrpc.ReplaceMember(m.Params(), json.RawMessage(found), "requestId"))
}
