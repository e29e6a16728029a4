package handshake

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

// maxParams bounds the initialize params of a client that a bridge keeps for later
// sessions, in bytes. A client with larger params gets the stored result.
const maxParams = 64 << 10

// Options configure the bridges of a gateway, which share one Options. The fields
// have no defaults.
type Options struct {
	// Supplier returns who supplies the sessions from now on: the successor of the one
	// before, or that.
	Supplier func() *Supplier
	// Server is what errors call the server.
	Server string
	// Params are the params of the synthetic initialize. nil: clients initialize
	// their sessions themselves, and the gateway forwards initialize like any other
	// request.
	Params               json.RawMessage
	MaxHandshakeAttempts int
	// Remedy returns what to do about a server that has not started; empty if that is not known. nil: it never is.
	Remedy func(error) string
	// Times returns the times for what begins now.
	Times func() Times
	// Detailed reports whether a client may see the details of errors.
	Detailed func(connstate.Client) bool
	// Losses remembers the clients that were lost to a start; it must not be nil.
	Losses *OncePerHour
	// Logger, Limited and Metrics must not be nil. Limited is Logger for warnings that
	// a client, or a server that keeps dying, can cause at will.
	Logger  *slog.Logger
	Limited *slog.Logger
	Metrics *metrics.Metrics
}

// Times are the settings of a gateway with these names.
type Times struct {
	InitializationTimeout time.Duration // after it a start is late
	InitializeTimeout     time.Duration
	AnnounceDelay         time.Duration // how long initialize waits for the client's own
}

// Bridge passes messages between a connection and its session, and answers the
// requests that the gateway answers itself. Its goroutine, run, gets it the session. It
// is safe for concurrent use.
type Bridge struct {
	opts *Options
	c    connstate.ForHandler
	end  context.CancelFunc // of run

	// current is the connection on the session that gets the client's messages; nil while there
	// is none. It is set under mu.
	current atomic.Pointer[attachment]
	// failure is what a request learns that has waited too long for a session. The goroutine of
	// run sets it.
	failure atomic.Pointer[Failure]
	// booting is the session that is being started, for what it says on stderr, or nil.
	booting atomic.Pointer[Session]
	// wake makes run look at what others have changed: waiting initialize requests, current and
	// needed.
	wake chan struct{}

	mu sync.Mutex // guards the fields up to the blank line
	// initializes are the waiting initialize requests of the client. Those who handle messages
	// add them, and run takes them.
	initializes []*connstate.Request
	// retired are the connection on sessions that are replaced and wait for their last answers:
	// cancellations, and answers to questions of their servers, still go there.
	retired []*attachment
	// retryAt is the time before which requests get the failure, on a connection that has given
	// up; zero on any other.
	retryAt time.Time
	// ended says that run has ended: there will be no other session.
	ended bool

	// told is what the client is told of the server while there is no session; nil if that is unknown.
	told atomic.Pointer[remember.Answers]

	// needed says that a message of the client needs the server. Before that, a start waits a
	// moment for the client's own initialize.
	needed atomic.Bool
	// used says that a message of the client has gone to the session, or its own initialize to a
	// server. An unused session is replaced when the client's initialize declares more. After a
	// loss the next session is unused, unless it is initialized with the client's own params.
	used atomic.Bool
	// dismissed says that the server wants no more of this client: its connection ends.
	dismissed atomic.Bool
	// clientParams are the params of the client's own initialize once it has worked, where the
	// gateway sends none. Later sessions get them.
	clientParams atomic.Pointer[json.RawMessage]
	// initializing says that this initialize is at the server. Until its answer has come, a
	// session that is replaced stays.
	initializing atomic.Bool
	state        clientState
}

var _ httpcheck.Stateless = (*Bridge)(nil)

// errLost reports that a message found no session twice.
var errLost = errors.New("the session with the server was lost")

// NewBridge returns the bridge of a new connection, and begins to get it a session. The
// caller must not change opts afterwards.
func NewBridge(c *connstate.Connection, opts *Options) *Bridge {
	b := &Bridge{opts: opts, c: connstate.ForHandler{Connection: c}, wake: make(chan struct{}, 1)}
	b.failure.Store(b.lateFailure(1))
	ctx, cancel := context.WithCancel(context.Background())
	b.end = cancel
	opts.Supplier().Go(func() { b.run(ctx) }) // ends with the connection
	return b
}

// shares reports whether connections share sessions.
func (b *Bridge) shares() bool { return b.opts.Supplier().Shares() }

// log returns a logger with the connection's id. An idle connection keeps none.
func (b *Bridge) log() *slog.Logger { return b.opts.Logger.With("connectionId", b.c.ShortID()) }

// limited is log with Options.Limited.
func (b *Bridge) limited() *slog.Logger { return b.opts.Limited.With("connectionId", b.c.ShortID()) }

// Stateless reports whether the server of the current session, or the remembered one, is one of MCP
// 2026-07-28.
func (b *Bridge) Stateless() bool {
	if a := b.current.Load(); a != nil {
		return a.session.Stateless()
	}
	told := b.told.Load()
	return told != nil && told.Stateless
}

// Receive handles a message of the client. It runs inside the POST and does not
// block.
func (b *Bridge) Receive(m *jsonrpc.Message) {
	switch m.Kind {
	case jsonrpc.Request:
		b.request(m)
	case jsonrpc.Response: // only the session that sent the request can use it
		if a := b.at(func(c *multiplex.Caller) bool { return c.Awaits(m.ID) }); a != nil {
			a.session.hears(m)
			a.caller.Forward(m)
			return
		}
		b.opts.Metrics.Dropped(metrics.DroppedNotReady)
	default:
		b.notification(m)
	}
}

func (b *Bridge) request(m *jsonrpc.Message) {
	r, err := b.c.Begin(m)
	switch {
	case errors.Is(err, connstate.ErrClosed):
		return
	// The client would take an error under this id for the answer to the other request: it gets one
	// without an id.
	case errors.Is(err, connstate.ErrDuplicate):
		b.limited().Warn("request dropped: one with its id is in flight", "method", m.Method[:min(64, len(m.Method))])
		e := jsonrpc.ReasonError("a request with its id is in flight: use another id", "duplicate_id", true)
		b.c.RespondNow(jsonrpc.Null, jsonrpc.NewError(jsonrpc.Null, e))
		return
	case err != nil:
		e, _ := b.refusal(err)
		b.c.RespondNow(m.ID, jsonrpc.NewError(m.ID, e))
		return
	}
	switch {
	case m.Method == mcp.MethodPing:
		r.Answer(jsonrpc.NewResult(r.ID, json.RawMessage("{}")), "")
	case m.Method == mcp.MethodDiscover:
		// This transport has no server/discover. The error makes clients that try it
		// fall back to initialize at once (MCP 2026-07-28, versioning).
		r.Fail(jsonrpc.Errorf(jsonrpc.CodeMethodNotFound,
			"server/discover is not available on this transport: use initialize"), "-32601")
	case m.Method == mcp.MethodInitialize && b.opts.Params != nil:
		b.initialize(r)
	default:
		if answer := b.fromMemory(r); answer != nil {
			answer()
			return
		}
		b.needServer()
		b.gateOrSend(r)
	}
}

// needServer ends a start's wait for the client's own initialize.
func (b *Bridge) needServer() {
	if !b.needed.Load() {
		b.needed.Store(true)
		b.wakeRun()
	}
}

func (b *Bridge) notification(m *jsonrpc.Message) {
	switch {
	case m.Method == mcp.MethodInitialized && b.opts.Params != nil:
		// The gateway sends its own.
	case m.Method == mcp.MethodCancelled:
		b.cancel(m)
	default:
		if b.c.State() == connstate.Resting && m.Method == mcp.MethodRootsChanged {
			return // the session to come asks for the roots anyway
		}
		b.c.AuditNotification(m)
		b.gateOrSend(&connstate.Request{Message: m})
	}
}

// cancel withdraws the request from the gate, or passes the cancellation to the
// session.
func (b *Bridge) cancel(m *jsonrpc.Message) {
	r := b.requestNamed(jsonrpc.ID(m.RequestID.Value))
	if r != nil && r.Method != mcp.MethodInitialize && m.Certain() && !m.RequestID.Ambiguous {
		r.Silence()
	}
	a := b.at(func(c *multiplex.Caller) bool { return c.Has(r) })
	switch {
	case r != nil && b.c.Withdraw(r):
		r.Fail(jsonrpc.ReasonError("the request was cancelled by the client", "cancelled", true), metrics.ErrorCanceled)
	case a == nil:
		b.opts.Metrics.Dropped(metrics.DroppedNotReady)
	default:
		a.session.hears(m) // it may say why
		a.caller.Cancel(r, m)
	}
}

// requestNamed returns the unanswered request with an id, or the only one with an id that can
// mean no other: a client may cancel "5" for 5. It returns nil if there is none.
func (b *Bridge) requestNamed(id jsonrpc.ID) (found *connstate.Request) {
	if r := b.c.Request(id); r != nil {
		return r
	}
	for _, r := range b.c.Unanswered() {
		if !jsonrpc.Alike(r.ID, id) {
			continue
		}
		if found != nil {
			return nil
		}
		found = r
	}
	return found
}

// gateOrSend puts a message into the gate, or sends it if the gate is open. A request
// on a connection that has given up may start another attempt. A message that finds no
// session goes back into the gate, where it waits for the next.
func (b *Bridge) gateOrSend(r *connstate.Request) {
	pass, err := b.c.Admit(r)
	if _, failed := errors.AsType[*Failure](err); failed && r.Message.Kind == jsonrpc.Request && b.revive() {
		pass, err = b.c.Admit(r)
	}
	if pass && !b.send(r) {
		pass, err = b.c.Admit(r)
		if pass && !b.send(r) {
			err = errLost
		}
	}
	if err != nil {
		b.Refused(r, err)
	} else if !pass && b.told.Load() != nil { // it waits, perhaps since the connection rests
		b.needServer()
	}
}

// Refused answers a request that got no session because of err. It drops notifications.
func (b *Bridge) Refused(r *connstate.Request, err error) {
	if r.ID == "" {
		b.opts.Metrics.Dropped(metrics.DroppedNotReady)
		return
	}
	r.NoteWait("gate", r.Started)
	e, errorType := b.refusal(err)
	r.Fail(e, errorType)
}

// refusal returns the error for a request that does not pass because of err, and its
// error type.
func (b *Bridge) refusal(err error) (e *jsonrpc.Error, errorType string) {
	failure, failed := errors.AsType[*Failure](err)
	if errors.Is(err, connstate.ErrGateTimeout) {
		failure, failed = b.overdue(), true
	}
	reason, errorType, text := "closed", metrics.ErrorClosed, err.Error()
	switch {
	case failed:
		return b.visibleFailure(b.withRemainingPause(failure)).RPC(), metrics.ErrorInitialization
	case errors.Is(err, connstate.ErrTooManyPending):
		reason = "too_many_requests"
	case errors.Is(err, connstate.ErrDraining) && b.dismissed.Load():
		text = "the server has ended the session"
	case errors.Is(err, connstate.ErrDraining):
		reason, errorType = "draining", metrics.ErrorDraining
	case errors.Is(err, errLost):
		reason, errorType, text = "session_lost", metrics.ErrorSessionLost, b.lostText()
	case errors.Is(err, connstate.ErrGateFull):
		reason, errorType = "gate_full", metrics.ErrorBusy
	case errors.Is(err, connstate.ErrBusy):
		reason, errorType = "server_busy", metrics.ErrorBusy
	}
	return jsonrpc.ReasonError(text, reason, true), errorType
}

// initialize handles a client's own initialize request. If no initialize has gone to
// the server yet, this one does. Otherwise the stored result of the session answers
// it, unless the client declares more than the session's handshake did and has not
// used the session: then it gets a new session.
func (b *Bridge) initialize(r *connstate.Request) {
	m := r.Message
	b.mu.Lock()
	a := b.current.Load()
	draining := b.ended || b.c.State() == connstate.Draining
	switch {
	case a != nil && (draining || b.used.Load() || !b.exceeds(m, a.session.Params())):
		b.mu.Unlock()
		r.Answer(a.session.Result().Answer(r.ID, RequestedVersion(m.Params())), "")
		return
	case draining:
		b.mu.Unlock()
		b.Refused(r, connstate.ErrDraining)
		return
	case a != nil:
		_ = b.c.Move(connstate.Initializing) // from ready, or it is
		b.current.Store(nil)
	case !b.retryAt.IsZero():
		b.reviveLocked()
	}
	b.initializes = append(b.initializes, r)
	b.mu.Unlock()
	b.wakeRun()
}

// exceeds reports whether a client declares more than the params of a handshake. Shared
// sessions use the params of no client.
func (b *Bridge) exceeds(m *jsonrpc.Message, params json.RawMessage) bool {
	return !b.shares() && len(m.Params()) <= maxParams && Exceeds(m.Params(), params)
}

// wakeRun makes run look at what others have changed.
func (b *Bridge) wakeRun() {
	select {
	case b.wake <- struct{}{}:
	default: // a wake-up is pending
	}
}

// gaveUp reports whether the connection has given up.
func (b *Bridge) gaveUp() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.retryAt.IsZero()
}

// revive starts another attempt on a connection that has given up, if the time for a
// retry has come. It reports whether a request may wait for a session.
func (b *Bridge) revive() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.retryAt.IsZero(): // in a pause, the failure is the answer
		return !b.ended && b.c.State() != connstate.Failed
	case time.Now().Before(b.retryAt):
		return false
	}
	b.reviveLocked()
	return true
}

// reviveLocked makes the gate hold messages again, and run make another attempt.
func (b *Bridge) reviveLocked() {
	b.retryAt = time.Time{}
	_ = b.c.Move(connstate.Initializing) // if it drains, run ends
	b.wakeRun()
}

// Drained does nothing.
func (b *Bridge) Drained() {}

// Closed ends run, which leaves the session.
func (b *Bridge) Closed() { b.end() }
