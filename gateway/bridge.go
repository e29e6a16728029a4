package gateway

import (
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"

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

// bridge is one connection behind its gate: it passes messages
// between the client and its session, and answers what the gateway answers
// itself. Its start gets it the session.
type bridge struct {
	g     *Gateway
	c     *connstate.Connection
	start *start

	// used: a client's message has gone to a session.
	used atomic.Bool
	// opened is the client's own initialize on a transport without ours.
	opened   atomic.Pointer[jsonrpc.Message]
	memory   memory // what a new session must be told
	repeated repeated
}

func newBridge(g *Gateway, c *connstate.Connection) *bridge {
	b := &bridge{g: g, c: c}
	b.start = newStart(b)
	b.start.begin()
	return b
}

// log returns a logger that names the connection. Few lines need it: a logger
// kept by each of many idle connections would cost more than it is worth.
func (b *bridge) log() *slog.Logger { return b.g.log.With("connectionId", b.c.ShortID()) }

// over reports whether the connection is closed.
func (b *bridge) over() bool {
	select {
	case <-b.c.Done():
		return true
	default:
		return false
	}
}

// Receive takes a message of the client, inside its POST.
func (b *bridge) Receive(m *jsonrpc.Message) {
	switch m.Kind {
	case jsonrpc.Request:
		b.request(m)
	case jsonrpc.Response:
		// It belongs to the session that asked, or to none.
		if a := b.start.current.Load(); a == nil || a.caller.Forward(m) != nil {
			b.g.metrics.Dropped(metrics.DroppedNotReady)
		}
	default:
		b.notification(m)
	}
}

func (b *bridge) request(m *jsonrpc.Message) {
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
		b.Fail(m.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "server/discover is not available on HTTP+SSE: use initialize"), "-32601")
	case m.Method == mcp.MethodInitialize && b.g.params != nil:
		b.start.initialize(m)
	default:
		b.start.choose()
		b.admit(m)
	}
}

// refuseUncounted answers a request that could not be noted as unanswered.
func (b *bridge) refuseUncounted(m *jsonrpc.Message, err error) {
	switch {
	case errors.Is(err, connstate.ErrDuplicate):
		e := multiplex.ReasonError(err.Error(), "duplicate_id", false)
		e.Code = jsonrpc.CodeInvalidRequest
		b.c.RespondNow(jsonrpc.NewError(m.ID, e))
	case errors.Is(err, connstate.ErrTooManyPending):
		b.c.RespondNow(jsonrpc.NewError(m.ID, multiplex.ReasonError(err.Error(), "too_many_requests", true)))
	}
}

func (b *bridge) notification(m *jsonrpc.Message) {
	switch {
	case m.Method == mcp.MethodInitialized && b.g.params != nil:
		// The session has had its own.
	case m.Method == mcp.MethodCancelled:
		b.cancelled(m)
	default:
		b.admit(m)
	}
}

// cancelled withdraws a request that waits at the gate, or passes the
// cancellation on to the session.
func (b *bridge) cancelled(m *jsonrpc.Message) {
	id, _ := jsonrpc.Member(m.Params(), "requestId")
	if b.c.Withdraw(jsonrpc.ID(id)) {
		b.Fail(jsonrpc.ID(id), multiplex.ReasonError("the request was cancelled by the client", "cancelled", true), metrics.ErrorCanceled)
		return
	}
	if a := b.start.current.Load(); a == nil || a.caller.Forward(m) != nil {
		b.g.metrics.Dropped(metrics.DroppedNotReady)
	}
}

// admit brings a message to the gate, and through it when it is open.
func (b *bridge) admit(m *jsonrpc.Message) {
	pass, err := b.c.Admit(m)
	if _, failed := errors.AsType[*handshake.Failure](err); failed && m.Kind == jsonrpc.Request && b.start.revive() {
		pass, err = b.c.Admit(m)
	}
	b.admitted(m, pass, err)
}

// admitted takes what the gate has decided about a message.
func (b *bridge) admitted(m *jsonrpc.Message, pass bool, err error) {
	switch {
	case err != nil:
		b.Refused(m, err)
	case pass && !b.sent(m):
		b.again(m)
	}
}

// sent sends a message to the server. False: there is no session that takes it.
func (b *bridge) sent(m *jsonrpc.Message) bool {
	a := b.start.current.Load()
	if a == nil {
		return false
	}
	b.memory.note(m)
	if b.g.params == nil && m.Kind == jsonrpc.Request && m.Method == mcp.MethodInitialize && len(m.Params()) <= maxParams {
		b.opened.Store(m)
	}
	b.used.Store(true)
	err := a.caller.Forward(m)
	switch { // known before its reader says so
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

// again brings a message to the gate that found no session behind it: the next
// one is being started.
func (b *bridge) again(m *jsonrpc.Message) {
	pass, err := b.c.Readmit(m)
	switch {
	case err != nil:
		b.Refused(m, err)
	case pass && !b.sent(m) && m.Kind == jsonrpc.Request:
		b.Fail(m.ID, multiplex.ReasonError("the session with the server was lost", "session_lost", true), metrics.ErrorSessionLost)
	}
}

// Refused answers a request that the gate did not let through.
func (b *bridge) Refused(m *jsonrpc.Message, err error) {
	if m.Kind != jsonrpc.Request {
		b.g.metrics.Dropped(metrics.DroppedNotReady)
		return
	}
	failure, isFailure := errors.AsType[*handshake.Failure](err)
	switch {
	case isFailure:
		b.Fail(m.ID, b.tell(b.start.remaining(failure)).RPC(), metrics.ErrorInitialization)
	case errors.Is(err, connstate.ErrGateTimeout):
		b.Fail(m.ID, b.tell(b.start.whyLate(b.g.opts.InitializationTimeout)).RPC(), metrics.ErrorInitialization)
	case errors.Is(err, connstate.ErrDraining):
		b.Fail(m.ID, multiplex.ReasonError(err.Error(), "draining", true), metrics.ErrorDraining)
	case errors.Is(err, connstate.ErrGateFull):
		b.Fail(m.ID, multiplex.ReasonError(err.Error(), "gate_full", true), metrics.ErrorBusy)
	default:
		b.Fail(m.ID, multiplex.ReasonError(err.Error(), "closed", true), metrics.ErrorClosed)
	}
}

// Closed ends the connection's session.
func (b *bridge) Closed() { b.start.close() }

// Answer passes the server's response to a client's request on.
func (b *bridge) Answer(id jsonrpc.ID, response []byte, errorType string) {
	b.answered(id, errorType)
	b.c.Answer(id, response, errorType)
}

// AnswerNow is Answer for a session whose reader must not wait for this client.
func (b *bridge) AnswerNow(id jsonrpc.ID, response []byte, errorType string) {
	b.answered(id, errorType)
	b.c.AnswerNow(id, response, errorType)
}

func (b *bridge) answered(id jsonrpc.ID, errorType string) {
	b.repeated.forget(id)
	if m := b.opened.Load(); m != nil && m.ID == id && errorType == "" {
		b.start.initializedBy(m)
	}
}

// Fail answers a client's request with an error of the gateway's.
func (b *bridge) Fail(id jsonrpc.ID, e *jsonrpc.Error, errorType string) {
	b.repeated.forget(id)
	b.c.AnswerNow(id, jsonrpc.NewError(id, b.safe(e, errorType)), errorType)
}
