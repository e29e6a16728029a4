package gateway

import (
	"encoding/json"
	"time"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

// session is a session with the server, and what the bridge knows of it.
type session struct {
	*multiplex.Session
	client *client           // nil for a probe's
	port   *multiplex.Port   // nil for a probe's
	result *handshake.Result // nil without a handshake
	since  time.Time
}

// newSession makes the session of a bridge, or of a probe when b is nil. The
// params are those of the handshake that follows; nil: none does.
func newSession(conn jsonrpc.Conn, opts multiplex.Options, b *bridge, params json.RawMessage) *session {
	s := &session{since: time.Now()}
	made := make(chan struct{}) // OnClose may come before New returns
	opts.OnClose = func(err error) {
		<-made
		if b != nil {
			b.lost(s, err)
		}
	}
	s.Session = multiplex.New(conn, opts)
	if b != nil {
		s.client = &client{bridge: b, params: params}
		s.port = s.Attach(s.client, b.c.ShortID(), b.c.Client().Principal)
	}
	close(made)
	return s
}

// proven reports whether the session was of use: it has answered a client, or
// lived for a while. The loss of one that was not counts as a failed start.
func (s *session) proven() bool {
	return s.client.served.Load() || time.Since(s.since) >= provenAfter
}

// provenAfter is how long a session must live to count as one that works.
const provenAfter = 10 * time.Second
