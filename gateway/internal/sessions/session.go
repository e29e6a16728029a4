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
	// provenAfter is the age at which a session has proved itself.
	provenAfter = 10 * time.Second
	// freshFor is how long an answer to a ping proves that a server is alive.
	freshFor = 2 * time.Second
	// aliveTimeout bounds the wait for the answer to a later ping.
	aliveTimeout = time.Second
	// bootTimeout bounds the wait for the answer to the first ping. A server that is
	// silent for longer does not answer pings before initialize; the pool keeps it
	// all the same.
	bootTimeout = 10 * time.Second
)

// ErrTakesNoMore is the close reason of a session whose server takes no messages.
var ErrTakesNoMore = errors.New("the server takes no more messages")

// Session is a session with the server and its state. It has one owner at a time,
// which ends it: the pool until initialize, a connection, or a slot. Its methods are
// safe for concurrent use.
type Session struct {
	*multiplex.Session
	supplier *Supplier

	params atomic.Pointer[json.RawMessage] // of its initialize; nil: the gateway has sent none
	ending atomic.Bool                     // End has been called
	gone   sync.Once                       // guards the leave from its place

	// Only the owner uses these:
	result *handshake.Result // nil without a handshake
	since  time.Time         // when it was last started, taken or initialized
	seen   time.Time         // when the server last answered a ping; zero: never
	mute   bool              // the server does not answer pings

	mu    sync.Mutex      // guards what follows
	owner func(err error) // called at the end, if not nil
	over  bool
}

// newSession returns a session over conn, which has no owner yet. It has its place
// until its server has ended; a process is reaped by then, unless nothing can kill it.
func (s *Supplier) newSession(conn jsonrpc.Conn) *Session {
	session := &Session{supplier: s, since: time.Now()}
	opts := s.opts.Session
	made := make(chan struct{}) // OnClose may run before New returns
	opts.OnClose = func(err error) {
		<-made
		if !session.ending.Load() { // it ended by itself; End makes Wait wait for it
			session.End(err)
		}
		session.notifyOwner(err)
	}
	session.Session = multiplex.New(conn, opts)
	close(made)
	return session
}

// Own makes the caller the owner. At the end of the session it calls ended, if that
// is not nil. Own reports false if the session is over already; it does not call
// ended then.
func (s *Session) Own(ended func(err error)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owner = ended
	return !s.over
}

func (s *Session) notifyOwner(err error) {
	s.mu.Lock()
	s.over = true
	owner := s.owner
	s.mu.Unlock()
	if owner != nil {
		owner(err)
	}
}

// End closes the session in the background, which may take a while. why becomes the
// reason. It is idempotent.
func (s *Session) End(why error) {
	s.ending.Store(true)
	s.supplier.Go(func() {
		s.Close(why)
		<-s.Done()
		s.gone.Do(s.supplier.leavePlace)
	})
}

// Retire ends a session that takes no messages, in the background. It first lets
// answers on their way arrive: it waits until the session ends, its one client closes
// gone, the supplier is closed, or the request timeout passes.
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

// Proven reports whether the session has proved itself: it has answered a client, or
// lived for provenAfter. Otherwise its loss counts as a failed start.
func (s *Session) Proven() bool { return s.Served() || s.Age() >= provenAfter }

// Age returns the time since the session was last started, taken or initialized.
func (s *Session) Age() time.Duration { return time.Since(s.since) }

// Params returns the params of the initialize that the gateway sent, or nil if it has
// sent none.
func (s *Session) Params() json.RawMessage {
	if params := s.params.Load(); params != nil {
		return *params
	}
	return nil
}

// Result returns the result of the handshake, or nil without one.
func (s *Session) Result() *handshake.Result { return s.result }

// ServerAttrs returns the log attributes with the server's name and versions from the
// handshake.
func (s *Session) ServerAttrs() []any {
	server := s.result.Server()
	return []any{"serverName", server.Name, "serverVersion", server.Version, "protocolVersion", server.ProtocolVersion}
}

// initialize runs the handshake and keeps its result.
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

// alive reports whether the server has just answered a ping, or answers one now. It
// trusts a mute server as long as its session lives.
func (s *Session) alive(ctx context.Context) bool {
	if s.Err() != nil {
		return false
	}
	if s.mute || time.Since(s.seen) < freshFor {
		return true
	}
	return s.ping(ctx, aliveTimeout) == nil
}

// prove waits until the server answers a ping, so has booted. After wait it takes the
// server for mute instead. It fails if the session ends, or with ctx.
func (s *Session) prove(ctx context.Context, wait time.Duration) error {
	err := s.ping(ctx, wait)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		s.mute = true
		return s.Err()
	}
	return err
}

// ping pings the server. Any answer counts, also an error.
func (s *Session) ping(ctx context.Context, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if _, err := s.Call(ctx, mcp.MethodPing, nil); err != nil {
		return err
	}
	s.seen = time.Now()
	return nil
}
