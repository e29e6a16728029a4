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
	timed
	id    jsonrpc.ID // the server's
	ours  jsonrpc.ID
	port  *Port
	token json.RawMessage // the server's progress token; nil: none
	limit time.Duration   // how long the client may take
}

// expire refuses a request that the client has not answered in time.
func (c *serverCall) expire(s *Session) {
	if s.endCall(c.ours, nil) == c {
		s.refuse(c.id, jsonrpc.Errorf(jsonrpc.CodeInternalError, "the client did not answer in %s", c.limit))
	}
}

// serverRequest answers a request of the server or passes it to the client that
// it belongs to. What no client has said it serves is refused at once, and so is
// what cannot be attributed: it is never guessed.
func (s *Session) serverRequest(m *jsonrpc.Message, related jsonrpc.ID) {
	if m.Method == methodPing {
		s.pass(m, jsonrpc.NewResult(m.ID, json.RawMessage("{}")))
		return
	}
	if m.Method == methodInitialize && s.echoed(m) {
		return
	}
	s.mu.Lock()
	port := s.ownerLocked(m, related)
	s.mu.Unlock()
	if port == nil {
		s.drop(metrics.DroppedUnattributed, "it is not known which client this request is for", m)
		s.refuse(m.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "it is not known which client %.64s is for", m.Method))
		return
	}
	if !port.client.Serves(m) {
		s.drop(metrics.DroppedUnknownRequest, "request of the server refused", m)
		s.refuse(m.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "the client does not serve %.64s", m.Method))
		return
	}
	s.call(m, port)
}

// echoes is why an initialize fails that comes back as it was sent.
const echoes = "the program only sends back what it gets: it is no MCP server"

// echoed fails the initialize that a request of the server repeats, and reports
// whether there is one. No server sends initialize; a program like cat does, and
// would let the start wait for its timeout.
func (s *Session) echoed(m *jsonrpc.Message) bool {
	s.mu.Lock()
	p := s.pending[numberOf(m.ID)]
	echo := p != nil && p.sent && p.method == methodInitialize && s.removeLocked(p)
	s.mu.Unlock()
	if !echo {
		return false
	}
	s.next()
	s.unusable(p, echoes)
	return true
}

// call passes a request of the server to a client.
func (s *Session) call(m *jsonrpc.Message, port *Port) {
	at, _ := m.Param("_meta", "progressToken")
	call := &serverCall{id: m.ID, port: port, limit: s.opts.RequestTimeout}
	if m.Method == methodElicit || m.Method == "sampling/createMessage" { // a person may have to decide
		call.limit = s.opts.MaxRequestTimeout
	}
	if at.Found() {
		call.token = append(call.token, m.At(at)...) // not the message that it is part of
	}
	if !s.beginCall(call) {
		s.drop(metrics.DroppedNotReady, "too many requests of the server", m)
		s.refuse(m.ID, jsonrpc.Errorf(jsonrpc.CodeInternalError, "over %d requests to the client are unanswered", maxServerCalls))
		return
	}
	if m.Method == methodElicit {
		id, _ := jsonrpc.Member(m.Params(), "elicitationId")
		s.learnElicitation(port, id)
	}
	port.client.Deliver(m.Method, m.WithIDAt(call.ours, at))
}

// ownerLocked is the client that a message of the server belongs to; nil when that
// is not certain. Over some transports it is known which request the message came
// with; the messages of a task name it; and a session that is not shared has one
// client only.
func (s *Session) ownerLocked(m *jsonrpc.Message, related jsonrpc.ID) *Port {
	if n, ok := jsonrpc.Integer([]byte(related)); ok {
		if p := s.pending[n]; p != nil && p.port != nil {
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
		return nil // whoever asked for it is not there any more
	}
	at, _ := m.Param("_meta", relatedTask, "taskId")
	id, _ := jsonrpc.Text(m.At(at))
	if ports := s.taskPortsLocked(id); len(ports) == 1 {
		return ports[0]
	}
	return nil
}

func (s *Session) refuse(id jsonrpc.ID, e *jsonrpc.Error) {
	_ = s.conn.Send(jsonrpc.NewError(id, e)) // a lost session shows by itself
}

func (s *Session) beginCall(call *serverCall) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.calls
	if s.err != nil || call.port.left || len(c.open) >= maxServerCalls {
		return false
	}
	if c.open == nil {
		c.open = make(map[jsonrpc.ID]*serverCall)
		c.prefix = "gw-" + rand.Text()[:8] + "-"
	}
	c.next++
	call.ours = jsonrpc.ID(strconv.Quote(c.prefix + strconv.Itoa(c.next)))
	c.open[call.ours] = call
	call.port.asked++
	s.deadlineLocked(&call.timed, call, s.now()+call.limit)
	return true
}

// endCall removes the server's request with that id of ours; with a port, only
// if it went to that one.
func (s *Session) endCall(id jsonrpc.ID, port *Port) *serverCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.endCallLocked(id, port)
}

func (s *Session) endCallLocked(id jsonrpc.ID, port *Port) *serverCall {
	call := s.calls.open[id]
	if call == nil || port != nil && call.port != port {
		return nil
	}
	s.deadlines.drop(&call.timed)
	delete(s.calls.open, id)
	call.port.asked--
	return call
}

// response passes a client's response to the server that asked.
func (t *Port) response(m *jsonrpc.Message) {
	call := t.session.endCall(m.ID, t)
	if call == nil {
		t.session.drop(metrics.DroppedUnknownResponse, "response answers no request of the server", m)
		return
	}
	t.session.pass(m, m.WithID(call.id))
}

// cancelCall takes a server's request back, and tells the client.
func (s *Session) cancelCall(m *jsonrpc.Message) {
	at, _ := m.Param("requestId")
	want := jsonrpc.ID(m.At(at))
	s.mu.Lock()
	var found *serverCall
	for _, call := range s.calls.open {
		if call.id == want {
			found = call
		}
	}
	if found != nil {
		s.endCallLocked(found.ours, nil)
	}
	s.mu.Unlock()
	if found == nil {
		s.drop(metrics.DroppedUnknownRequest, "cancellation names no request of the server", m)
		return
	}
	deliver([]*Port{found.port}, m.Method, m.WithValue(at, json.RawMessage(found.ours)))
}
