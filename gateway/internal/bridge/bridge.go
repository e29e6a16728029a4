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

// errGone is the close reason of sessions that end with their connection.
var errGone = errors.New("the client's connection was closed")

// Options configure the bridges of a gateway, which share one Options. The fields
// have no defaults.
type Options struct {
	// Supplier supplies the sessions.
	Supplier *sessions.Supplier
	// Params are the params of the synthetic initialize. nil: clients initialize
	// their sessions themselves, and the gateway forwards initialize like any other
	// request.
	Params json.RawMessage
	// The fields of gateway.Options with these names.
	MaxHandshakeAttempts  int
	InitializationTimeout time.Duration // after it a start is late
	InitializeTimeout     time.Duration
	AnnounceDelay         time.Duration // how long initialize waits for the client's own
	// Repeat turns on the repeat of safe requests of a lost session.
	Repeat bool
	// Detailed reports whether a client may see the details of errors.
	Detailed func(connstate.Client) bool
	// Logger, Limited and Metrics must not be nil. Limited is Logger for warnings that
	// a client, or a server that keeps dying, can cause at will.
	Logger  *slog.Logger
	Limited *slog.Logger
	Metrics *metrics.Metrics
	// Moved, if not nil, observes each move of a start. It runs under the lock of the
	// start. It is for tests.
	Moved func(from, to State)
}

// Bridge passes messages between a connection and its session, and answers the
// requests that the gateway answers itself. Its start gets it the session. It is safe
// for concurrent use.
type Bridge struct {
	opts  *Options
	c     *connstate.Connection
	start *start

	// used is true once a message of the client has gone to a session.
	used atomic.Bool
	// dismissed is true once the server wants no more of the client.
	dismissed atomic.Bool
	// clientInitialize is the client's own initialize where the gateway sends none.
	clientInitialize atomic.Pointer[jsonrpc.Message]
	memory           memory
	repeated         repeated
}

var _ connstate.Handler = (*Bridge)(nil)

// New returns the bridge of a new connection, and begins to get it a session. The
// caller must not change opts afterwards.
func New(c *connstate.Connection, opts *Options) *Bridge {
	b := &Bridge{opts: opts, c: c}
	b.start = &start{b: b, params: opts.Params, wake: make(chan struct{}, 1)}
	opts.Supplier.Go(b.start.run) // ends with a session in use, after the last attempt, or with the connection
	return b
}

// shares reports whether connections share sessions.
func (b *Bridge) shares() bool { return b.opts.Supplier.Shares() }

// log returns a logger with the connection's id. Only few lines need it, so
// connections do not keep one, which would cost memory for each idle connection.
func (b *Bridge) log() *slog.Logger { return b.opts.Logger.With("connectionId", b.c.ShortID()) }

// limited is log with Options.Limited.
func (b *Bridge) limited() *slog.Logger { return b.opts.Limited.With("connectionId", b.c.ShortID()) }

// over reports whether the connection is closed.
func (b *Bridge) over() bool {
	select {
	case <-b.c.Done():
		return true
	default:
		return false
	}
}

// Receive handles a message of the client. It runs inside the POST and does not
// block.
func (b *Bridge) Receive(m *jsonrpc.Message) {
	switch m.Kind {
	case jsonrpc.Request:
		b.request(m)
	case jsonrpc.Response: // only the session that sent the request can use it
		b.forwardOrDrop(m)
	default:
		b.notification(m)
	}
}

func (b *Bridge) request(m *jsonrpc.Message) {
	held := 0
	if m.Context != nil {
		held = connstate.MaxContextBytes
	}
	if err := b.c.BeginHolding(m.ID, m.Method, held); err != nil {
		b.refuseUncounted(m, err)
		return
	}
	switch {
	case m.Method == mcp.MethodPing:
		b.c.AnswerNow(m.ID, jsonrpc.NewResult(m.ID, json.RawMessage("{}")), "")
	case m.Method == mcp.MethodDiscover:
		// This transport has no server/discover. The error makes clients that try it
		// fall back to initialize at once (MCP 2026-07-28, versioning).
		b.fail(m.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "server/discover is not available on this transport: use initialize"), "-32601")
	case m.Method == mcp.MethodInitialize && b.opts.Params != nil:
		b.start.initialize(m)
	default:
		b.start.chooseSynthetic()
		b.gateOrSend(m)
	}
}

// refuseUncounted answers a request that Begin refused.
func (b *Bridge) refuseUncounted(m *jsonrpc.Message, err error) {
	switch {
	case errors.Is(err, connstate.ErrDuplicate):
		e := jsonrpc.ReasonError(err.Error(), "duplicate_id", false)
		e.Code = jsonrpc.CodeInvalidRequest
		b.c.RespondNow(m.ID, jsonrpc.NewError(m.ID, e))
	case errors.Is(err, connstate.ErrTooManyPending):
		b.c.RespondNow(m.ID, jsonrpc.NewError(m.ID, jsonrpc.ReasonError(err.Error(), "too_many_requests", true)))
	case errors.Is(err, connstate.ErrBusy):
		b.c.RespondNow(m.ID, jsonrpc.NewError(m.ID, jsonrpc.ReasonError(err.Error(), "server_busy", true)))
	}
}

func (b *Bridge) notification(m *jsonrpc.Message) {
	switch {
	case m.Method == mcp.MethodInitialized && b.opts.Params != nil:
		// The gateway sends its own.
	case m.Method == mcp.MethodCancelled:
		b.cancel(m)
	default:
		b.gateOrSend(m)
	}
}

// cancel withdraws the request from the gate, or passes the cancellation to the
// session.
func (b *Bridge) cancel(m *jsonrpc.Message) {
	id, _ := jsonrpc.Member(m.Params(), "requestId")
	if b.c.Withdraw(jsonrpc.ID(id)) {
		b.fail(jsonrpc.ID(id), jsonrpc.ReasonError("the request was cancelled by the client", "cancelled", true), metrics.ErrorCanceled)
		return
	}
	b.forwardOrDrop(m)
}

// forwardOrDrop sends a message to the current session. Without one it drops the
// message.
func (b *Bridge) forwardOrDrop(m *jsonrpc.Message) {
	if a := b.start.current.Load(); a == nil || a.caller.Forward(m) != nil {
		b.opts.Metrics.Dropped(metrics.DroppedNotReady)
	}
}

// gateOrSend puts a message into the gate, or sends it if the gate is open. A request
// on a connection that has given up may start another attempt.
func (b *Bridge) gateOrSend(m *jsonrpc.Message) {
	pass, err := b.c.Admit(m)
	if _, failed := errors.AsType[*handshake.Failure](err); failed && m.Kind == jsonrpc.Request && b.start.revive() {
		pass, err = b.c.Admit(m)
	}
	b.passOrRefuse(m, pass, err)
}

// passOrRefuse sends or refuses a message, as the gate decided.
func (b *Bridge) passOrRefuse(m *jsonrpc.Message, pass bool, err error) {
	switch {
	case err != nil:
		b.Refused(m, err)
	case pass && !b.send(m):
		b.readmit(m)
	}
}

// send sends a message to the server. It reports whether a session took it.
func (b *Bridge) send(m *jsonrpc.Message) bool {
	a := b.start.current.Load()
	if a == nil {
		return false
	}
	b.memory.note(m)
	if b.opts.Params == nil && m.Kind == jsonrpc.Request && m.Method == mcp.MethodInitialize && len(m.Params()) <= maxParams {
		b.clientInitialize.Store(m)
	}
	b.used.Store(true)
	err := a.caller.Forward(m)
	switch { // Forward may notice the loss of a session before its reader does
	case err == nil:
		return true
	case errors.Is(err, multiplex.ErrLeft): // the connection is closed; the session may live on
	case a.member != nil:
		a.member.Replace()
		b.start.lose(a, lossOf(err)) // Replace may find the session replaced, and this connection not yet informed
	case b.start.lose(a, lossOf(err)):
		a.Retire(b.c.Done())
	}
	return false
}

// lossOf returns why a session is lost that refused a message with err.
func lossOf(err error) error {
	if errors.Is(err, jsonrpc.ErrDismissed) {
		return err
	}
	return sessions.ErrTakesNoMore
}

// readmit puts a message that found no session back into the gate, where it waits for
// the next session.
func (b *Bridge) readmit(m *jsonrpc.Message) {
	pass, err := b.c.Readmit(m)
	switch {
	case err != nil:
		b.Refused(m, err)
	case pass && !b.send(m) && m.Kind == jsonrpc.Request:
		b.fail(m.ID, jsonrpc.ReasonError("the session with the server was lost", "session_lost", true), metrics.ErrorSessionLost)
	}
}

// Refused answers a request that the gate refused with err. It drops other messages.
func (b *Bridge) Refused(m *jsonrpc.Message, err error) {
	if m.Kind != jsonrpc.Request {
		b.opts.Metrics.Dropped(metrics.DroppedNotReady)
		return
	}
	failure, isFailure := errors.AsType[*handshake.Failure](err)
	switch {
	case isFailure:
		b.fail(m.ID, b.visibleFailure(b.start.withRemainingPause(failure)).RPC(), metrics.ErrorInitialization)
	case errors.Is(err, connstate.ErrGateTimeout):
		b.fail(m.ID, b.visibleFailure(b.start.lateFailure(b.opts.InitializationTimeout)).RPC(), metrics.ErrorInitialization)
	case errors.Is(err, connstate.ErrDraining) && b.dismissed.Load():
		b.fail(m.ID, jsonrpc.ReasonError("the server has ended the session", "closed", true), metrics.ErrorClosed)
	case errors.Is(err, connstate.ErrDraining):
		b.fail(m.ID, jsonrpc.ReasonError(err.Error(), "draining", true), metrics.ErrorDraining)
	case errors.Is(err, connstate.ErrGateFull):
		b.fail(m.ID, jsonrpc.ReasonError(err.Error(), "gate_full", true), metrics.ErrorBusy)
	case errors.Is(err, connstate.ErrBusy):
		b.fail(m.ID, jsonrpc.ReasonError(err.Error(), "server_busy", true), metrics.ErrorBusy)
	default:
		b.fail(m.ID, jsonrpc.ReasonError(err.Error(), "closed", true), metrics.ErrorClosed)
	}
}

// Closed ends the start and leaves the session.
func (b *Bridge) Closed() { b.start.close() }

// answer passes the server's response to a request to the client. On a shared session
// it does not wait for a slow client. On the client's own session it does, which
// slows the server down.
func (b *Bridge) answer(id jsonrpc.ID, response []byte, errorType string) {
	b.repeated.forget(id)
	if m := b.clientInitialize.Load(); m != nil && m.ID == id && errorType == "" {
		b.start.keepInitialize(m)
	}
	if b.shares() {
		b.c.AnswerNow(id, response, errorType)
		return
	}
	b.c.Answer(id, response, errorType)
}

// fail answers a client's request with an error of the gateway.
func (b *Bridge) fail(id jsonrpc.ID, e *jsonrpc.Error, errorType string) {
	b.repeated.forget(id)
	b.c.AnswerNow(id, jsonrpc.NewError(id, b.visibleError(e, errorType)), errorType)
}
