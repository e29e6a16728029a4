package gateway

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

// session is a session with the server, and what the gateway knows of it. It
// belongs to one owner at a time: the pool, as long as it is not initialized, a
// connection, or a place for a shared one; the owner ends it.
type session struct {
	*multiplex.Session
	params atomic.Pointer[json.RawMessage] // of its initialize; nil: there has been none
	served atomic.Bool                     // the server has answered a request of a client
	ending atomic.Bool                     // somebody waits for its end

	// Of the owner:
	result *handshake.Result // nil without a handshake
	since  time.Time         // when it was started, and once it is initialized, when that was
	seen   time.Time         // when the server last answered a ping; zero: never
	mute   bool              // the server does not answer pings

	mu    sync.Mutex      // guards what follows
	owner func(err error) // is told of the end; nil: nobody is
	over  bool
	err   error
}

// newSession makes a session over conn.
func (g *Gateway) newSession(conn jsonrpc.Conn) *session {
	opts := g.sessionOptions()
	s := &session{since: time.Now()}
	made := make(chan struct{}) // OnClose may come before New returns
	opts.OnClose = func(err error) {
		<-made
		if !s.ending.Load() { // it has ended by itself; Shutdown waits for it all the same
			g.endSession(s, err)
		}
		s.end(err)
	}
	s.Session = multiplex.New(conn, opts)
	close(made)
	return s
}

// own registers the function that is called when the session ends. It reports
// false when the session is over already.
func (s *session) own(owner func(err error)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owner = owner
	return !s.over
}

func (s *session) end(err error) {
	s.mu.Lock()
	s.over, s.err = true, err
	owner := s.owner
	s.mu.Unlock()
	if owner != nil {
		owner(err)
	}
}

// proven reports whether the session was of use: it has answered a client, or
// lived for a while. The loss of one that was not counts as a failed start.
func (s *session) proven() bool {
	return s.served.Load() || time.Since(s.since) >= provenAfter
}

// provenAfter is how long a session must live to count as one that works.
const provenAfter = 10 * time.Second

// link is a connection's place on a session.
type link struct {
	*session
	client *client
	caller *multiplex.Caller
	place  *place // of a shared session; nil: the session is the connection's own
}

// newLink attaches a bridge to a session.
func newLink(b *bridge, s *session) *link {
	l := &link{session: s}
	l.client = &client{bridge: b, link: l}
	l.caller = s.Attach(l.client, b.c.ShortID(), b.c.Client().Principal)
	return l
}
