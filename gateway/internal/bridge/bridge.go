package bridge

import (
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway/internal/sessions"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

// errGone is the reason of sessions that end with their connection.
var errGone = errors.New("the client's connection was closed")

// Options configure the bridges of a gateway, which share them. They have no
// defaults.
type Options struct {
	// Supplier supplies the sessions.
	Supplier *sessions.Supplier
	// Params are those of the synthetic initialize. nil: clients initialize their
	// sessions themselves, and the initialize of a client is a message like any other.
	Params json.RawMessage
	// The fields of gateway.Options with these names.
	MaxHandshakeAttempts  int
	InitializationTimeout time.Duration // then a start is late
	InitializeTimeout     time.Duration
	AnnounceDelay         time.Duration // so long initialize waits for that of the client
	// Repeat makes requests that change nothing be repeated when their session is
	// lost.
	Repeat bool
	// Detailed reports whether a client may see the details of errors.
	Detailed func(connstate.Client) bool
	// Logger and Metrics must not be nil.
	Logger  *slog.Logger
	Metrics *metrics.Metrics
	// Moved is called with each move of the start of a session, under its lock. nil:
	// nothing is called. It is for tests.
	Moved func(from, to State)
}

// Bridge is one connection behind its gate: it passes messages between the client
// and its session, and answers what the gateway answers itself. Its start gets it
// the session. It is safe for concurrent use.
type Bridge struct {
	opts  *Options
	c     *connstate.Connection
	start *start

	// used: a client's message has gone to a session.
	used atomic.Bool
	// opened is the client's own initialize on a transport without ours.
	opened   atomic.Pointer[jsonrpc.Message]
	memory   memory // what a new session must be told
	repeated repeated
}

var _ connstate.Handler = (*Bridge)(nil)

// New returns the bridge of a connection that has just been opened, and begins to
// get it a session. opts must not change any more.
func New(c *connstate.Connection, opts *Options) *Bridge {
	b := &Bridge{opts: opts, c: c}
	b.start = &start{b: b, params: opts.Params, wake: make(chan struct{}, 1)}
	opts.Supplier.Go(b.start.run) // ends with a session, after the last attempt, or with the connection
	return b
}

// shares reports whether the session is one that all connections share.
func (b *Bridge) shares() bool { return b.opts.Supplier.Shares() }

// log returns a logger that names the connection. Few lines need it: a logger
// kept by each of many idle connections would cost more than it is worth.
func (b *Bridge) log() *slog.Logger { return b.opts.Logger.With("connectionId", b.c.ShortID()) }

// over reports whether the connection is closed.
func (b *Bridge) over() bool {
	select {
	case <-b.c.Done():
		return true
	default:
		return false
	}
}

// Receive handles a message of the client, inside its POST.
func (b *Bridge) Receive(m *jsonrpc.Message) {
	switch m.Kind {
	case jsonrpc.Request:
		b.request(m)
	case jsonrpc.Response: // to the session that asked, or to none
		b.forwardOrDrop(m)
	default:
		b.notification(m)
	}
}

func (b *Bridge) request(m *jsonrpc.Message) {
	if err := b.c.Begin(m.ID, m.Method); err != nil {
		b.refuseUncounted(m, err)
		return
	}
	switch {
	case m.Method == mcp.MethodPing:
		b.c.AnswerNow(m.ID, jsonrpc.NewResult(m.ID, json.RawMessage("{}")), "")
	case m.Method == mcp.MethodDiscover:
		// This transport has no server/discover; the answer makes clients that
		// try it fall back to initialize at once (MCP 2026-07-28, versioning).
		b.fail(m.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "server/discover is not available on HTTP+SSE: use initialize"), "-32601")
	case m.Method == mcp.MethodInitialize && b.opts.Params != nil:
		b.start.initialize(m)
	default:
		b.start.choose()
		b.admit(m)
	}
}

// refuseUncounted answers a request that could not be noted as unanswered.
func (b *Bridge) refuseUncounted(m *jsonrpc.Message, err error) {
	switch {
	case errors.Is(err, connstate.ErrDuplicate):
		e := multiplex.ReasonError(err.Error(), "duplicate_id", false)
		e.Code = jsonrpc.CodeInvalidRequest
		b.c.RespondNow(jsonrpc.NewError(m.ID, e))
	case errors.Is(err, connstate.ErrTooManyPending):
		b.c.RespondNow(jsonrpc.NewError(m.ID, multiplex.ReasonError(err.Error(), "too_many_requests", true)))
	}
}

func (b *Bridge) notification(m *jsonrpc.Message) {
	switch {
	case m.Method == mcp.MethodInitialized && b.opts.Params != nil:
		// The gateway has sent its own.
	case m.Method == mcp.MethodCancelled:
		b.cancel(m)
	default:
		b.admit(m)
	}
}

// cancel withdraws a request that waits at the gate, or passes the
// cancellation on to the session.
func (b *Bridge) cancel(m *jsonrpc.Message) {
	id, _ := jsonrpc.Member(m.Params(), "requestId")
	if b.c.Withdraw(jsonrpc.ID(id)) {
		b.fail(jsonrpc.ID(id), multiplex.ReasonError("the request was cancelled by the client", "cancelled", true), metrics.ErrorCanceled)
		return
	}
	b.forwardOrDrop(m)
}

// forwardOrDrop sends a message to the current session, if there is one.
func (b *Bridge) forwardOrDrop(m *jsonrpc.Message) {
	if a := b.start.current.Load(); a == nil || a.caller.Forward(m) != nil {
		b.opts.Metrics.Dropped(metrics.DroppedNotReady)
	}
}

// admit puts a message into the gate, or sends it when the gate is open.
func (b *Bridge) admit(m *jsonrpc.Message) {
	pass, err := b.c.Admit(m)
	if _, failed := errors.AsType[*handshake.Failure](err); failed && m.Kind == jsonrpc.Request && b.start.revive() {
		pass, err = b.c.Admit(m)
	}
	b.passOrRefuse(m, pass, err)
}

// passOrRefuse does what the gate has decided about a message.
func (b *Bridge) passOrRefuse(m *jsonrpc.Message, pass bool, err error) {
	switch {
	case err != nil:
		b.Refused(m, err)
	case pass && !b.send(m):
		b.readmit(m)
	}
}

// send sends a message to the server. It reports whether there is a session that
// takes it.
func (b *Bridge) send(m *jsonrpc.Message) bool {
	a := b.start.current.Load()
	if a == nil {
		return false
	}
	b.memory.note(m)
	if b.opts.Params == nil && m.Kind == jsonrpc.Request && m.Method == mcp.MethodInitialize && len(m.Params()) <= maxParams {
		b.opened.Store(m)
	}
	b.used.Store(true)
	err := a.caller.Forward(m)
	switch { // Forward notices the loss of a session before its reader does
	case err == nil:
		return true
	case errors.Is(err, multiplex.ErrLeft): // the connection is closed, the session need not be over
	case a.member != nil:
		a.member.Replace()
		b.start.lose(a, sessions.ErrTakesNoMore) // the session may not have told this connection yet
	case b.start.lose(a, sessions.ErrTakesNoMore):
		a.Retire(b.c.Done())
	}
	return false
}

// readmit puts a message back into the gate that found no session behind it: the
// next one is being started.
func (b *Bridge) readmit(m *jsonrpc.Message) {
	pass, err := b.c.Readmit(m)
	switch {
	case err != nil:
		b.Refused(m, err)
	case pass && !b.send(m) && m.Kind == jsonrpc.Request:
		b.fail(m.ID, multiplex.ReasonError("the session with the server was lost", "session_lost", true), metrics.ErrorSessionLost)
	}
}

// Refused answers a request that the gate did not let through.
func (b *Bridge) Refused(m *jsonrpc.Message, err error) {
	if m.Kind != jsonrpc.Request {
		b.opts.Metrics.Dropped(metrics.DroppedNotReady)
		return
	}
	failure, isFailure := errors.AsType[*handshake.Failure](err)
	switch {
	case isFailure:
		b.fail(m.ID, b.tell(b.start.remaining(failure)).RPC(), metrics.ErrorInitialization)
	case errors.Is(err, connstate.ErrGateTimeout):
		b.fail(m.ID, b.tell(b.start.lateFailure(b.opts.InitializationTimeout)).RPC(), metrics.ErrorInitialization)
	case errors.Is(err, connstate.ErrDraining):
		b.fail(m.ID, multiplex.ReasonError(err.Error(), "draining", true), metrics.ErrorDraining)
	case errors.Is(err, connstate.ErrGateFull):
		b.fail(m.ID, multiplex.ReasonError(err.Error(), "gate_full", true), metrics.ErrorBusy)
	default:
		b.fail(m.ID, multiplex.ReasonError(err.Error(), "closed", true), metrics.ErrorClosed)
	}
}

// Closed ends the connection's session.
func (b *Bridge) Closed() { b.start.close() }

// answer passes the server's response to a client's request on. The reader of a
// shared session does not wait for the client; that of the client's own session
// does, so that the server is slowed down.
func (b *Bridge) answer(id jsonrpc.ID, response []byte, errorType string) {
	b.repeated.forget(id)
	if m := b.opened.Load(); m != nil && m.ID == id && errorType == "" {
		b.start.keepInitialize(m)
	}
	if b.shares() {
		b.c.AnswerNow(id, response, errorType)
		return
	}
	b.c.Answer(id, response, errorType)
}

// fail answers a client's request with an error of the gateway's.
func (b *Bridge) fail(id jsonrpc.ID, e *jsonrpc.Error, errorType string) {
	b.repeated.forget(id)
	b.c.AnswerNow(id, jsonrpc.NewError(id, b.safe(e, errorType)), errorType)
}
