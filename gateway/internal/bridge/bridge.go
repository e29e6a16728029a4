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
	memory    memory
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
	r, err := b.c.Begin(m)
	if err != nil {
		b.refuseUncounted(m.ID, err)
		return
	}
	switch {
	case m.Method == mcp.MethodPing:
		r.Answer(jsonrpc.NewResult(m.ID, json.RawMessage("{}")), "")
	case m.Method == mcp.MethodDiscover:
		// This transport has no server/discover. The error makes clients that try it
		// fall back to initialize at once (MCP 2026-07-28, versioning).
		r.Fail(jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "server/discover is not available on this transport: use initialize"), "-32601")
	case m.Method == mcp.MethodInitialize && b.opts.Params != nil:
		b.start.initialize(r)
	default:
		b.start.chooseSynthetic()
		b.gateOrSend(r)
	}
}

// refuseUncounted answers a request that Begin refused.
func (b *Bridge) refuseUncounted(id jsonrpc.ID, err error) {
	var e *jsonrpc.Error
	switch {
	case errors.Is(err, connstate.ErrDuplicate):
		e = jsonrpc.ReasonError(err.Error(), "duplicate_id", false)
		e.Code = jsonrpc.CodeInvalidRequest
	case errors.Is(err, connstate.ErrTooManyPending):
		e = jsonrpc.ReasonError(err.Error(), "too_many_requests", true)
	case errors.Is(err, connstate.ErrBusy):
		e = jsonrpc.ReasonError(err.Error(), "server_busy", true)
	default: // the connection is closed
		return
	}
	b.c.RespondNow(id, jsonrpc.NewError(id, e))
}

func (b *Bridge) notification(m *jsonrpc.Message) {
	switch {
	case m.Method == mcp.MethodInitialized && b.opts.Params != nil:
		// The gateway sends its own.
	case m.Method == mcp.MethodCancelled:
		b.cancel(m)
	default:
		b.gateOrSend(&connstate.Request{Message: m})
	}
}

// cancel withdraws the request from the gate, or passes the cancellation to the
// session.
func (b *Bridge) cancel(m *jsonrpc.Message) {
	id, _ := jsonrpc.Member(m.Params(), "requestId")
	r, a := b.c.Request(jsonrpc.ID(id)), b.start.current.Load()
	switch {
	case r != nil && b.c.Withdraw(r):
		r.Fail(jsonrpc.ReasonError("the request was cancelled by the client", "cancelled", true), metrics.ErrorCanceled)
	case a == nil:
		b.opts.Metrics.Dropped(metrics.DroppedNotReady)
	default:
		a.caller.Cancel(r, m)
	}
}

// forwardOrDrop sends a response to the current session. Without one it drops the
// message.
func (b *Bridge) forwardOrDrop(m *jsonrpc.Message) {
	if a := b.start.current.Load(); a != nil {
		a.caller.Forward(m)
		return
	}
	b.opts.Metrics.Dropped(metrics.DroppedNotReady)
}

// gateOrSend puts a message into the gate, or sends it if the gate is open. A request
// on a connection that has given up may start another attempt.
func (b *Bridge) gateOrSend(r *connstate.Request) {
	pass, err := b.c.Admit(r)
	if _, failed := errors.AsType[*handshake.Failure](err); failed && r.Message.Kind == jsonrpc.Request && b.start.revive() {
		pass, err = b.c.Admit(r)
	}
	b.passOrRefuse(r, pass, err)
}

// passOrRefuse sends or refuses a message, as the gate decided.
func (b *Bridge) passOrRefuse(r *connstate.Request, pass bool, err error) {
	switch {
	case err != nil:
		b.Refused(r, err)
	case pass && !b.send(r):
		b.readmit(r)
	}
}

// send sends a message to the server. It reports whether a session took it.
func (b *Bridge) send(r *connstate.Request) bool {
	a := b.start.current.Load()
	if a == nil {
		return false
	}
	m := r.Message
	b.used.Store(true)
	if m.Kind != jsonrpc.Request {
		a.caller.Forward(m)
		return true
	}
	b.memory.note(m)
	if b.opts.Params == nil && m.Method == mcp.MethodInitialize && len(m.Params()) <= maxParams {
		r.OnAnswer = func(errorType string) {
			if errorType == "" {
				b.start.keepInitialize(m)
			}
		}
	}
	r.Backpressure = !b.shares() // a slow client slows down its own server, but not a shared one
	err := a.caller.Send(r)
	switch { // Send may notice the loss of a session before its reader does
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

// readmit puts a request that found no session back into the gate, where it waits for
// the next session.
func (b *Bridge) readmit(r *connstate.Request) {
	pass, err := b.c.Readmit(r)
	switch {
	case err != nil:
		b.Refused(r, err)
	case pass && !b.send(r) && r.Message.Kind == jsonrpc.Request:
		r.Fail(jsonrpc.ReasonError("the session with the server was lost", "session_lost", true), metrics.ErrorSessionLost)
	}
}

// Refused answers a request that the gate refused with err. It drops notifications.
func (b *Bridge) Refused(r *connstate.Request, err error) {
	if r.Message.Kind != jsonrpc.Request {
		b.opts.Metrics.Dropped(metrics.DroppedNotReady)
		return
	}
	failure, isFailure := errors.AsType[*handshake.Failure](err)
	switch {
	case isFailure:
		r.Fail(b.visibleFailure(b.start.withRemainingPause(failure)).RPC(), metrics.ErrorInitialization)
	case errors.Is(err, connstate.ErrGateTimeout):
		r.Fail(b.visibleFailure(b.start.lateFailure(b.opts.InitializationTimeout)).RPC(), metrics.ErrorInitialization)
	case errors.Is(err, connstate.ErrDraining) && b.dismissed.Load():
		r.Fail(jsonrpc.ReasonError("the server has ended the session", "closed", true), metrics.ErrorClosed)
	case errors.Is(err, connstate.ErrDraining):
		r.Fail(jsonrpc.ReasonError(err.Error(), "draining", true), metrics.ErrorDraining)
	case errors.Is(err, connstate.ErrGateFull):
		r.Fail(jsonrpc.ReasonError(err.Error(), "gate_full", true), metrics.ErrorBusy)
	case errors.Is(err, connstate.ErrBusy):
		r.Fail(jsonrpc.ReasonError(err.Error(), "server_busy", true), metrics.ErrorBusy)
	default:
		r.Fail(jsonrpc.ReasonError(err.Error(), "closed", true), metrics.ErrorClosed)
	}
}

// Closed ends the start and leaves the session.
func (b *Bridge) Closed() { b.start.close() }
