package handshake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/closed"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

// provenAfter is the age at which a session has proved itself.
const provenAfter = 10 * time.Second

var (
	// ErrReplaced is the reason of a session whose server has been replaced; see
	// Supplier.Retire.
	ErrReplaced = errors.New("the server has been replaced")
	// ErrTakesNoMore is the reason of a session whose server takes no messages.
	ErrTakesNoMore = errors.New("the server takes no more messages")
	// errNotNeeded is the close reason of a session that nobody needs.
	errNotNeeded = errors.New("the session is not needed")
	// ErrIdle is the reason of a session that has ended because its clients have not used it for long.
	ErrIdle = errors.New("the session was idle")
)

// Session is a session with the server. The methods that it adds to multiplex.Session
// are safe for concurrent use.
type Session struct {
	*multiplex.Session
	supplier *Supplier
	conn     jsonrpc.Conn

	params atomic.Pointer[json.RawMessage] // of its initialize; nil: the gateway has sent none
	result atomic.Pointer[Result]          // nil without a handshake

	// Set before Open returns:
	since           time.Time // when it was last started, taken or initialized
	waitedForParams time.Duration
	who             string // the client that it was started for: a remember.Principal, or remember.Own
	// client is who asked, as memory has it; teaches says that what it is told may be remembered.
	client  remember.Client
	teaches bool

	look look
	contacts

	ended sync.Once     // guards what follows
	over  chan struct{} // closed when the session takes no more messages
	why   error         // set before over is closed

	mu    sync.Mutex // guards users, and how far look has come
	users map[User]bool
}

// User is told what becomes of a session. It may not wait then.
type User interface {
	// SessionLooked says, once, that the look at the session is over: see [Session.Looked].
	SessionLooked()
	// SessionOver says, perhaps more than once, that the session takes no more messages: see [Session.Why].
	SessionOver()
	// SessionDone says that the session has ended, and what was sent to it is answered or lost.
	SessionDone()
}

// Observe has a user told from now on, perhaps at once.
func (s *Session) Observe(u User) {
	s.mu.Lock()
	if s.users == nil {
		s.users = make(map[User]bool)
	}
	s.users[u] = true
	looked := s.look.state.isOver()
	s.mu.Unlock()
	if s.isOver() {
		u.SessionOver()
	}
	if looked {
		u.SessionLooked()
	}
}

// Ignore has a user no longer told.
func (s *Session) Ignore(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.users, u)
}

func (s *Session) tellUsers(what func(User)) {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.users))
	s.mu.Unlock()
	for _, u := range all {
		what(u)
	}
}

// newSession returns a session over conn. It has its place until its server has ended; a
// process is reaped by then, unless nothing can kill it. ended is called then.
func (s *Supplier) newSession(conn jsonrpc.Conn, ended func()) *Session {
	session := &Session{supplier: s, conn: conn, since: time.Now(), over: make(chan struct{})}
	opts := s.Options().Session
	opts.OnTools = session.noteTools
	if memory := s.Options().Memory; memory != nil {
		session.lookAt(memory)
		opts.OnNamed, opts.OnList = func() { session.StartLook() }, session.notePage
	}
	opts.OnClose = func(why error) { session.end(why) }
	s.goroutines.Add(1) // Wait waits for the session too
	opts.OnDone = func() {
		session.tellUsers(User.SessionDone)
		ended()
		s.leavePlace()
		s.learnInAnyFolderSoon()
		s.goroutines.Done()
	}
	session.Session = multiplex.New(conn, opts)
	return session
}

// noteTools reports the size of the server's list of tools, and warns, once for all sessions,
// if clients may drop some of them.
func (s *Session) noteTools(list *multiplex.ToolList) {
	if s.supplier.life.Err() != nil { // it is the list of a server that has been replaced
		return
	}
	s.supplier.metrics.Tools(list.Tools, list.DescriptionCharacters, list.LongestName)
	name := s.supplier.Options().Name
	if result := s.Result(); name == "" && result != nil {
		name = result.Server().Name
	}
	if drops := clients.Drops(name, list.Tools, list.DescriptionCharacters, list.LongestName); len(drops) > 0 {
		s.supplier.manyTools.Do(func() {
			s.supplier.log.Warn("some clients will drop tools of the server", "tools", list.Tools,
				"descriptionCharacters", list.DescriptionCharacters, "longestName", list.LongestName,
				"limits", strings.Join(drops, "; "))
		})
	}
}

// end makes the session over, and reports whether it was not.
func (s *Session) end(why error) (first bool) {
	s.ended.Do(func() {
		s.why, first = why, true
		close(s.over)
	})
	if first {
		s.tellUsers(User.SessionOver)
	}
	return first
}

// Over returns a channel that is closed when the session takes no more messages: it has
// ended, or is retired. It is closed before requests of the session get their errors.
func (s *Session) Over() <-chan struct{} { return s.over }

// isOver reports whether Over is closed.
func (s *Session) isOver() bool { return closed.Is(s.over) }

// Why returns why the session is over. The caller must know that it is.
func (s *Session) Why() error {
	<-s.over
	return s.why
}

// Close ends the session in the background, which may take a while. why becomes the
// reason. It is idempotent.
func (s *Session) Close(why error) { s.supplier.Go(func() { s.Session.Close(why) }) }

// Retire ends a session that is to take no more messages, for the reason why. It first lets
// answers on their way arrive, in the background: it waits until there are none, gone
// is closed, the supplier is closed, or the request timeout passes. It does nothing to a
// session that is over.
func (s *Session) Retire(why error, gone <-chan struct{}) {
	if !s.end(why) {
		return
	}
	s.supplier.Go(func() {
		limit := time.After(s.supplier.Options().Session.RequestTimeout)
		for !s.Session.CloseIdle(why) {
			select {
			case <-s.Idle():
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

// NoteUse notes that a client uses the session, at a time in Unix nanoseconds.
func (s *Session) NoteUse(at int64) { s.supplier.noteUse(at) }

// WaitedForParams returns how long the initialize has waited for its params while the server was ready for it.
func (s *Session) WaitedForParams() time.Duration { return s.waitedForParams }

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
func (s *Session) Result() *Result { return s.result.Load() }

// Stateless reports whether the server is one of MCP 2026-07-28. It is known once initialize is
// answered.
func (s *Session) Stateless() bool {
	c, ok := s.conn.(jsonrpc.Stateless)
	return ok && c.Stateless()
}

// ServerAttrs returns the log attributes with the server's name and versions from the
// handshake.
func (s *Session) ServerAttrs() []any {
	server := s.Result().Server()
	return []any{"serverName", server.Name, "serverVersion", server.Version, "protocolVersion", server.ProtocolVersion}
}

// talkative is a Conn whose server writes to stderr.
type talkative interface{ LastWords() string }

// LastWords returns the last lines of the server's stderr that say something, as the end of a
// sentence; "" if there are none.
func (s *Session) LastWords() string {
	if c, ok := s.conn.(talkative); ok {
		if words := c.LastWords(); words != "" {
			return "; its stderr says: " + words
		}
	}
	return ""
}

// initialize runs the handshake until a time at the latest, and keeps its result. If it
// fails, the session is closed.
func (s *Session) initialize(ctx context.Context, until time.Time, params json.RawMessage) error {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	s.supplier.asked.Store(s)
	s.params.Store(&params)
	s.client, s.teaches = s.supplier.clientOf(params, s.who)
	asked, _ := jsonrpc.MemberText(params, "protocolVersion")
	if lowered := s.supplier.lowered.Load(); lowered != nil && asked > *lowered {
		params = WithVersion(params, *lowered)
	}
	result, err := Run(ctx, s, params)
	if err != nil {
		if failure, ok := errors.AsType[*Failure](err); ok && failure.Reason == metrics.ReasonTimeout {
			failure.Details = fmt.Sprintf("the server did not answer within %v (start-timeout)%s%s", s.supplier.Options().StartTimeout, s.supplier.Advice(), s.LastWords())
		}
		s.Close(err)
		return err
	}
	s.result.Store(result)
	if result.Lowered != "" {
		s.supplier.lowered.Store(&result.Lowered)
	}
	server := result.Server()
	s.supplier.server.Store(&server)
	s.since = time.Now()
	s.supplier.warnOfVersion(s)
	return nil
}
