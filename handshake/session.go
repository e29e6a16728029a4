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
	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
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
	source *source
	conn   jsonrpc.Conn

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
	users map[SessionUser]bool
}

// SessionUser is told what becomes of a session. It may not wait then.
type SessionUser interface {
	// SessionLooked says, once, that the look at the session is over: see [Session.Looked].
	SessionLooked()
	// SessionOver says, perhaps more than once, that the session takes no more messages: see [Session.Why].
	SessionOver()
	// SessionDone says that the session has ended, and what was sent to it is answered or lost.
	SessionDone()
}

// Observe has a user told from now on, perhaps at once.
func (s *Session) Observe(u SessionUser) {
	s.mu.Lock()
	if s.users == nil {
		s.users = make(map[SessionUser]bool)
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

// StopObserving has a session user no longer told.
func (s *Session) StopObserving(u SessionUser) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.users, u)
}

// tellUsers calls a function for each user of the session, in no order and without the lock, so that it may call back.
func (s *Session) tellUsers(what func(SessionUser)) {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.users))
	s.mu.Unlock()
	for _, u := range all {
		what(u)
	}
}

// look is what a session says of itself: the result of its initialize, and its lists. It begins
//
//   - before the first message, if the client has rested: an earlier session has shown that the server names
//     its answers;
//   - else once the server has answered a client under the id of the request: an answer that names
//     nothing could not be told from one to the look. So what such servers say is not remembered.
type look struct {
	memory *remember.Server // nil: there is none
	done   chan struct{}    // closed at the end of the look, after the users were told

	// The lock of the session guards these.
	state   lookState
	answers *remember.Answers // in lookRead
}

// lookState is how far a look has come.
type lookState uint8

const (
	lookNone    lookState = iota // there will be none: nothing is remembered of the server
	lookDue                      // it has not begun
	lookRunning                  // the lists are being read
	lookRead                     // it is over, and has shown what the session says
	lookUnread                   // it is over: the lists could not be read, or the server does not name its answers
)

// isOver reports whether the look has ended.
func (s lookState) isOver() bool { return s == lookRead || s == lookUnread }

// noteTools reports the size of the server's list of tools, and warns, once for all sessions,
// if clients may drop some of them.
func (s *Session) noteTools(list *multiplex.ToolList) {
	if s.source.life.Err() != nil { // it is the list of a server that has been replaced
		return
	}
	s.source.metrics.Tools(list.Tools, list.DescriptionCharacters, list.LongestName)
	name := s.source.Options().Name
	if result := s.Result(); name == "" && result != nil {
		name = result.Server().Name
	}
	if drops := clients.Drops(name, list.Tools, list.DescriptionCharacters, list.LongestName); len(drops) > 0 {
		s.source.manyTools.Do(func() {
			s.source.log.Warn("some clients will drop tools of the server", "tools", list.Tools,
				"descriptionCharacters", list.DescriptionCharacters, "longestName", list.LongestName,
				"limits", strings.Join(drops, "; "))
		})
	}
}

// markEnded makes the session over, and reports whether it was not.
func (s *Session) markEnded(why error) (first bool) {
	s.ended.Do(func() {
		s.why, first = why, true
		close(s.over)
	})
	if first {
		s.tellUsers(SessionUser.SessionOver)
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
func (s *Session) Close(why error) { s.source.Go(func() { s.Session.Close(why) }) }

// Retire ends a session that is to take no more messages, for the reason why. It first lets
// answers on their way arrive, in the background: it waits until there are none, gone
// is closed, the supplier is closed, or the request timeout passes. It does nothing to a
// session that is over.
func (s *Session) Retire(why error, gone <-chan struct{}) {
	if !s.markEnded(why) {
		return
	}
	s.source.Go(func() {
		limit := time.After(s.source.Options().Session.RequestTimeout)
		for !s.Session.CloseIdle(why) {
			select {
			case <-s.Idle():
				continue
			case <-s.Done():
			case <-gone:
			case <-s.source.closed.Done():
			case <-limit:
			}
			s.Session.Close(why)
			return
		}
	})
}

// NoteUse notes that a client uses the session, at a time in Unix nanoseconds.
func (s *Session) NoteUse(at int64) {
	s.source.tellObserver(func(o observer) { o.serverUsed(at) })
}

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
func (s *Session) ServerAttrs() []any { return s.Result().Server().attrs() }

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
	s.source.asked.Store(&s.conn)
	s.params.Store(&params)
	s.client, s.teaches = s.source.clientOf(params, s.who)
	asked, _ := rawjson.MemberText(params, "protocolVersion")
	if lowered := s.source.lowered.Load(); lowered != nil && asked > *lowered {
		params = WithVersion(params, *lowered)
	}
	result, err := Run(ctx, s, params)
	if err != nil {
		if failure, ok := errors.AsType[*Failure](err); ok && failure.Reason == metrics.ReasonTimeout {
			failure.Details = fmt.Sprintf("the server did not answer within %v (start-timeout)%s%s",
				s.source.Options().StartTimeout, s.source.Advice(), s.LastWords())
		}
		s.Close(err)
		return err
	}
	s.result.Store(result)
	if result.Lowered != "" {
		s.source.lowered.Store(&result.Lowered)
	}
	server := result.Server()
	s.source.server.Store(&server)
	if !s.source.Options().Forwards { // else it may be for this client alone
		about := result.About()
		s.source.about.Store(&about)
	}
	s.since = time.Now()
	s.source.warnOfVersion(server)
	return nil
}
