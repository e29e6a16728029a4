package gateway

import (
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

// session is a session with the server, and what the bridge knows of it.
type session struct {
	*multiplex.Session
	port   *multiplex.Port   // set when the bridge takes it
	result *handshake.Result // nil without a handshake
	since  time.Time
	used   atomic.Bool // a client's message has gone to the server
	served atomic.Bool // the server has answered a client's request
}

func newSession(conn jsonrpc.Conn, opts multiplex.Options, onClose func(*session, error)) *session {
	s := &session{since: time.Now()}
	made := make(chan struct{}) // OnClose may come before New returns
	opts.OnClose = func(err error) {
		<-made
		if onClose != nil {
			onClose(s, err)
		}
	}
	s.Session = multiplex.New(conn, opts)
	close(made)
	return s
}

// forward sends a client's message to the server.
func (s *session) forward(m *jsonrpc.Message) {
	if !s.used.Load() {
		s.used.Store(true)
	}
	s.port.Forward(m)
}

// proven reports whether the session was of use: it has answered a client, or
// lived for a while. The loss of one that was not counts as a failed start.
func (s *session) proven() bool { return s.served.Load() || time.Since(s.since) >= provenAfter }

// provenAfter is how long a session must live to count as one that works.
const provenAfter = 10 * time.Second

// declares reports whether the session was initialized with the client
// capability that a request of the server needs. What no rule speaks of passes.
func (s *session) declares(params json.RawMessage, method string) bool {
	needed := map[string]string{
		"sampling/createMessage": "sampling",
		"elicitation/create":     "elicitation",
		"roots/list":             "roots",
	}[method]
	return needed == "" || params == nil || handshake.Declares(params, needed)
}
