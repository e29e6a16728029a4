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
// belongs to one owner at a time: a connection, the pool, or a place for a shared
// one; the owner ends it.
type session struct {
	*multiplex.Session
	params json.RawMessage   // of its initialize; nil: there is none
	result *handshake.Result // nil without a handshake
	since  time.Time
	served atomic.Bool // the server has answered a request of a client
	ending atomic.Bool // somebody waits for its end

	mu    sync.Mutex      // guards what follows
	owner func(err error) // is told of the end; nil: nobody is
	over  bool
	err   error
}

// newSession makes a session over conn. The params are those of the handshake
// that follows; nil: none does.
func (g *Gateway) newSession(conn jsonrpc.Conn, params json.RawMessage) *session {
	opts := g.sessionOptions()
	s := &session{since: time.Now(), params: params}
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

// own gives the session an owner, who is told of its end. It reports false when
// the session is over already.
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
	port   *multiplex.Port
	place  *place       // of a shared session; nil: the session is the connection's own
	use    atomic.Int32 // unused, inUse or returned
}

// The values of link.use.
const (
	unused   int32 = iota
	inUse          // a message of the client has gone to the session, or is about to
	returned       // the session is somebody else's
)

// claim is called before a message goes to the session. False: it went back to
// the pool.
func (l *link) claim() bool {
	if l.use.Load() == unused {
		l.use.CompareAndSwap(unused, inUse)
	}
	return l.use.Load() == inUse
}

// giveBack has no message go to the session any more. False: one has.
func (l *link) giveBack() bool { return l.use.CompareAndSwap(unused, returned) }

// newLink attaches a bridge to a session.
func newLink(b *bridge, s *session) *link {
	l := &link{session: s}
	l.client = &client{bridge: b, link: l}
	l.port = s.Attach(l.client, b.c.ShortID(), b.c.Client().Principal)
	return l
}
