package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
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

var (
	// ErrReplaced is the reason of a session whose server has been replaced; see
	// Supplier.Retire.
	ErrReplaced = errors.New("the server has been replaced")
	// ErrTakesNoMore is the reason of a session whose server takes no messages.
	ErrTakesNoMore = errors.New("the server takes no more messages")
	// errNotNeeded is the close reason of a session that nobody needs.
	errNotNeeded = errors.New("the session is not needed")
)

// Session is a session with the server. The methods that it adds to multiplex.Session
// are safe for concurrent use.
type Session struct {
	*multiplex.Session
	supplier *Supplier

	params atomic.Pointer[json.RawMessage]  // of its initialize; nil: the gateway has sent none
	result atomic.Pointer[handshake.Result] // nil without a handshake

	// A ping has gone out; the server has answered one; it has not answered in time.
	pinged, answered, silent atomic.Bool

	// Set before Open returns:
	since time.Time     // when it was last started, taken or initialized
	Held  time.Duration // how long the initialize waited for its params while the server was ready
	seen  time.Time     // when the server last answered a ping; zero: never

	ended sync.Once     // guards what follows
	over  chan struct{} // closed when the session takes no more messages
	why   error         // set before over is closed
}

// newSession returns a session over conn. It has its place until its server has ended; a
// process is reaped by then, unless nothing can kill it.
func (s *Supplier) newSession(conn jsonrpc.Conn) *Session {
	session := &Session{supplier: s, since: time.Now(), over: make(chan struct{})}
	opts := s.opts().Session
	opts.OnTools = session.noteTools
	opts.OnClose = func(why error) { session.end(why) }
	s.goroutines.Add(1) // Wait waits for the session too
	opts.OnDone = func() {
		s.leavePlace()
		s.goroutines.Done()
	}
	session.Session = multiplex.New(conn, opts)
	return session
}

// Limits of clients for a server's tools, the lowest that are known.
const (
	fewTools          = 40
	fewDescriptions   = 8000 // characters
	shortToolName     = 60   // characters, with the name of the server and a separator
	limitsOfToolLists = "Trae: 40 tools and 8000 characters of descriptions over all servers; names, with the server's in front: " +
		"Trae and Cursor 60 characters, Gemini CLI 63, Cline, Codex and Roo 64"
)

// noteTools reports the size of the server's list of tools, and warns, once for all sessions,
// if clients may drop some of them.
func (s *Session) noteTools(list *multiplex.ToolList) {
	if s.supplier.life.Err() != nil { // it is the list of a server that has been replaced
		return
	}
	s.supplier.metrics.Tools(list.Tools, list.DescriptionCharacters, list.LongestName)
	name := s.supplier.opts().Name
	if result := s.Result(); name == "" && result != nil {
		name = result.Server().Name
	}
	longest := utf8.RuneCountInString(name) + len("_") + list.LongestName
	if list.Tools > fewTools || list.DescriptionCharacters > fewDescriptions || longest > shortToolName {
		s.supplier.manyTools.Do(func() {
			s.supplier.log.Warn("some clients will drop tools of the server", "tools", list.Tools,
				"descriptionCharacters", list.DescriptionCharacters, "longestName", longest, "limits", limitsOfToolLists)
		})
	}
}

// end makes the session over, and reports whether it was not.
func (s *Session) end(why error) (first bool) {
	s.ended.Do(func() {
		s.why, first = why, true
		close(s.over)
	})
	return first
}

// Over returns a channel that is closed when the session takes no more messages: it has
// ended, or is retired. It is closed before requests of the session get their errors.
func (s *Session) Over() <-chan struct{} { return s.over }

// isOver reports whether Over is closed.
func (s *Session) isOver() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// Why returns why the session is over. The caller must know that it is.
func (s *Session) Why() error {
	<-s.over
	return s.why
}

// Close ends the session in the background, which may take a while. why becomes the
// reason. It is idempotent.
func (s *Session) Close(why error) { s.supplier.Go(func() { s.Session.Close(why) }) }

// Replaced returns a channel that is closed when another server takes the place of that of
// the session, whose user should then retire it.
func (s *Session) Replaced() <-chan struct{} { return s.supplier.replaced }

// settleEvery is how often a retired session looks whether all answers have arrived.
const settleEvery = 50 * time.Millisecond

// Retire ends a session that is to take no more messages, for the reason why. It first lets
// answers on their way arrive, in the background: it waits until there are none, gone
// is closed, the supplier is closed, or the request timeout passes. It does nothing to a
// session that is over.
func (s *Session) Retire(why error, gone <-chan struct{}) {
	if !s.end(why) {
		return
	}
	s.supplier.Go(func() {
		limit := time.After(s.supplier.opts().Session.RequestTimeout)
		for !s.Session.CloseIdle(why) {
			select {
			case <-time.After(settleEvery):
				continue
			case <-s.Done():
			case <-gone:
			case <-s.supplier.closed.Done():
			case <-limit:
			}
			s.Session.Close(why)
			return
		}
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
func (s *Session) Result() *handshake.Result { return s.result.Load() }

// ServerAttrs returns the log attributes with the server's name and versions from the
// handshake.
func (s *Session) ServerAttrs() []any {
	server := s.Result().Server()
	return []any{"serverName", server.Name, "serverVersion", server.Version, "protocolVersion", server.ProtocolVersion}
}

// initialize runs the handshake within limit and keeps its result. If it fails, the
// session is closed.
func (s *Session) initialize(ctx context.Context, limit time.Duration, params json.RawMessage) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s.params.Store(&params)
	result, err := handshake.Run(ctx, s, params)
	if err != nil {
		switch {
		case s.isOver(): // because of a ping before initialize, if there was one
			s.supplier.mute.Store(s.isMute())
		case s.silent.Load() && !errors.Is(err, context.DeadlineExceeded): // an answer without an id may be that to the ping
			s.supplier.mute.Store(true)
		}
		if failure, ok := errors.AsType[*handshake.Failure](err); ok && failure.Reason == metrics.ReasonTimeout {
			failure.Details += s.supplier.Advice()
		}
		s.Close(err)
		return err
	}
	s.result.Store(result)
	server := result.Server()
	s.supplier.server.Store(&server)
	if s.silent.Load() {
		s.supplier.mute.Store(true)
	}
	s.since = time.Now()
	s.supplier.warnOfVersion(s)
	return nil
}

// AwaitBoot waits until the server's process answers a ping, so has booted, at most for
// bootTimeout. It does not wait for servers that are no processes or do not answer pings.
func (s *Session) AwaitBoot() {
	if !s.supplier.opts().Boots || s.supplier.mute.Load() || s.pinged.Load() {
		return
	}
	if err := s.ping(context.Background(), bootTimeout); errors.Is(err, context.DeadlineExceeded) {
		s.silent.Store(true)
		if s.result.Load() != nil { // else it may still boot
			s.supplier.mute.Store(true)
		}
	}
}

// isMute reports whether the server has not answered a ping.
func (s *Session) isMute() bool { return s.pinged.Load() && !s.answered.Load() }

// alive reports whether the server has just answered a ping, or answers one now. It
// trusts a mute server as long as its session lives.
func (s *Session) alive(ctx context.Context) bool {
	if s.isOver() {
		return false
	}
	return s.isMute() || time.Since(s.seen) < freshFor || s.ping(ctx, aliveTimeout) == nil
}

// prove waits until the server answers a ping, so has booted. After wait it takes the
// server for mute instead. It fails if the session ends, or with ctx.
func (s *Session) prove(ctx context.Context, wait time.Duration) error {
	err := s.ping(ctx, wait)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return s.Err()
	}
	return err
}

// ping pings the server. Any answer counts, also an error.
func (s *Session) ping(ctx context.Context, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	s.pinged.Store(true)
	if _, err := s.Call(ctx, mcp.MethodPing, nil); err != nil {
		return err
	}
	s.answered.Store(true)
	s.seen = time.Now()
	return nil
}
