package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

const (
	// provenAfter is how long a session must live to count as one that works.
	provenAfter = 10 * time.Second
	// freshFor is how long a server that has answered a ping is believed to live.
	freshFor = 2 * time.Second
	// aliveTimeout bounds the answer to a ping of a server that has answered one.
	aliveTimeout = time.Second
	// bootTimeout bounds the answer to the first one. A server that is silent that
	// long does not answer pings before initialize, and is kept all the same.
	bootTimeout = 10 * time.Second
)

// ErrTakesNoMore is the reason of a session that does not take messages.
var ErrTakesNoMore = errors.New("the server takes no more messages")

// Session is a session with the server, and what is known of it. It has one owner
// at a time, which ends it: the pool, as long as it is not initialized, a
// connection, or the slot of a shared one. Its methods are safe for concurrent use.
type Session struct {
	*multiplex.Session
	supplier *Supplier

	params atomic.Pointer[json.RawMessage] // of its initialize; nil: there has been none
	served atomic.Bool                     // the server has answered a request of a client
	ending atomic.Bool                     // somebody waits for its end

	// Of the owner:
	result *handshake.Result // nil without a handshake
	since  time.Time         // when it was started, taken or, last, initialized
	seen   time.Time         // when the server last answered a ping; zero: never
	mute   bool              // the server does not answer pings

	mu    sync.Mutex      // guards what follows
	owner func(err error) // is told of the end; nil: nobody is
	over  bool
}

// newSession makes a session over conn.
func (s *Supplier) newSession(conn jsonrpc.Conn) *Session {
	session := &Session{supplier: s, since: time.Now()}
	opts := s.opts.Session
	made := make(chan struct{}) // OnClose may come before New returns
	opts.OnClose = func(err error) {
		<-made
		if !session.ending.Load() { // it has ended by itself; Wait waits for it all the same
			session.End(err)
		}
		session.tellOwner(err)
	}
	session.Session = multiplex.New(conn, opts)
	close(made)
	return session
}

// Own makes the caller the owner: it registers the function that is called when the
// session ends. It reports false when the session is over already.
func (s *Session) Own(ended func(err error)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owner = ended
	return !s.over
}

func (s *Session) tellOwner(err error) {
	s.mu.Lock()
	s.over = true
	owner := s.owner
	s.mu.Unlock()
	if owner != nil {
		owner(err)
	}
}

// End closes the session in the background, which may take a while. It is
// idempotent.
func (s *Session) End(why error) {
	s.ending.Store(true)
	s.supplier.Go(func() {
		s.Close(why)
		<-s.Done()
	})
}

// Retire ends a session that takes no more messages, in the background: once it has
// handed over the answers that were on their way, or the one client that it has is
// gone, or the supplier is closed.
func (s *Session) Retire(gone <-chan struct{}) {
	s.supplier.Go(func() {
		select {
		case <-s.Done():
			return
		case <-gone:
		case <-s.supplier.life.Done():
		case <-time.After(s.supplier.opts.Session.RequestTimeout):
		}
		s.Close(ErrTakesNoMore)
		<-s.Done()
	})
}

// NoteAnswer notes that the server has answered a request of a client.
func (s *Session) NoteAnswer() {
	if !s.served.Load() {
		s.served.Store(true)
	}
}

// Proven reports whether the session was of use: it has answered a client, or
// lived for a while. The loss of one that was not counts as a failed start.
func (s *Session) Proven() bool { return s.served.Load() || s.Age() >= provenAfter }

// Age returns the time since the session was taken, or initialized.
func (s *Session) Age() time.Duration { return time.Since(s.since) }

// Params returns the params of the initialize that the gateway sent, nil when it
// has sent none.
func (s *Session) Params() json.RawMessage {
	if params := s.params.Load(); params != nil {
		return *params
	}
	return nil
}

// Result returns what the server answered to that, nil without a handshake.
func (s *Session) Result() *handshake.Result { return s.result }

// ServerAttrs returns what the server said of itself in the handshake, for the log.
func (s *Session) ServerAttrs() []any {
	server := s.result.Server()
	return []any{"serverName", server.Name, "serverVersion", server.Version, "protocolVersion", server.ProtocolVersion}
}

// initialize runs the handshake.
func (s *Session) initialize(ctx context.Context, params json.RawMessage) error {
	s.params.Store(&params)
	result, err := handshake.Run(ctx, s, params)
	if err != nil {
		return err
	}
	s.result = result
	s.since = time.Now()
	s.supplier.warnOfVersion(s)
	return nil
}

// alive reports whether the server still answers.
func (s *Session) alive(ctx context.Context) bool {
	if s.Err() != nil {
		return false
	}
	if s.mute || time.Since(s.seen) < freshFor {
		return true
	}
	return s.ping(ctx, aliveTimeout) == nil
}

// prove waits until the server has answered a ping, so has booted, or at most for
// wait: then it does not answer pings. It fails when the session ends, or with ctx.
func (s *Session) prove(ctx context.Context, wait time.Duration) error {
	err := s.ping(ctx, wait)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		s.mute = true
		return s.Err()
	}
	return err
}

// ping asks the server for a sign of life. Any answer is one, also an error.
func (s *Session) ping(ctx context.Context, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if _, err := s.Call(ctx, mcp.MethodPing, nil); err != nil {
		return err
	}
	s.seen = time.Now()
	return nil
}
