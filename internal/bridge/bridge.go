package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/bridge/internal/life"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// maxParams bounds the initialize params of a client that a bridge keeps for later
// sessions, in bytes. A client with larger params gets the stored result.
const maxParams = 64 << 10

// Options configure the bridges of a gateway, which share one Options. The fields
// have no defaults.
type Options struct {
	// Supplier returns who supplies the sessions from now on: the successor of the one
	// before, or that.
	Supplier func() *handshake.Supplier
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
	Losses *handshake.OncePerHour
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
// requests that the gateway answers itself. Its life gets it the sessions. It
// is safe for concurrent use.
type Bridge struct {
	opts *Options
	c    connstate.ForHandler
	ctx  context.Context // ends with the connection, by end
	end  context.CancelFunc

	life        sessionLife
	clientState clientState
}

var _ httpcheck.Stateless = (*Bridge)(nil)

// errLost reports that a message found no session twice.
var errLost = errors.New("the session with the server was lost")

// New returns the bridge of a new connection, and begins to get it a session. The
// caller must not change opts afterwards.
func New(c *connstate.Connection, opts *Options) *Bridge {
	b := &Bridge{opts: opts, c: connstate.ForHandler{Connection: c}}
	b.ctx, b.end = context.WithCancel(context.Background())
	b.life.Bridge = b
	b.life.begin()
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
func (b *Bridge) Stateless() bool { return b.life.isStateless() }

// Receive handles a message of the client. It runs inside the POST and does not
// block.
func (b *Bridge) Receive(m *jsonrpc.Message) {
	switch m.Kind {
	case jsonrpc.Request:
		b.request(m)
	case jsonrpc.Response: // only the session that sent the request can use it
		if a := b.life.at(func(a *attachment) bool { return a.caller.Awaits(m.ID) }); a != nil {
			a.session.Hears(m)
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
		b.life.initialize(r)
	default:
		b.pass(r)
	}
}

func (b *Bridge) notification(m *jsonrpc.Message) {
	switch {
	case m.Method == mcp.MethodInitialized && b.opts.Params != nil:
		// The gateway sends its own.
	case m.Method == mcp.MethodCancelled:
		b.cancel(m)
	default:
		b.c.AuditNotification(m)
		b.pass(&connstate.Request{Message: m})
	}
}

// cancel withdraws the request from the gate, or passes the cancellation to the
// session.
func (b *Bridge) cancel(m *jsonrpc.Message) {
	r := b.requestNamed(jsonrpc.ID(m.RequestID.Value))
	if r != nil && r.Method != mcp.MethodInitialize && m.Certain() && !m.RequestID.Ambiguous {
		r.Silence()
	}
	a := b.life.at(func(a *attachment) bool { return a.caller.Has(r) })
	switch {
	case r != nil && b.c.Withdraw(r):
		r.Fail(jsonrpc.ReasonError("the request was cancelled by the client", "cancelled", true), metrics.ErrorCanceled)
	case a == nil:
		b.opts.Metrics.Dropped(metrics.DroppedNotReady)
	default:
		a.session.Hears(m) // it may say why
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

// pass sends a message to the session that takes messages at once. Otherwise it does what the life says: answer
// it, send it, let it wait at the gate, or refuse it. A message that a session has not taken comes back once.
func (b *Bridge) pass(r *connstate.Request) {
	isBack := false
	if a := b.life.serving.Load(); a != nil {
		if a.send(r) {
			return
		}
		isBack = true
		b.c.Passed(r)
	}
	for {
		to, err := b.life.take(r)
		switch {
		case err != nil:
			b.Refused(r, err)
			return
		case to == nil || to.send(r):
			return
		case isBack:
			b.Refused(r, errLost)
			return
		}
		isBack = true
		b.c.Passed(r)
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
	failure, failed := errors.AsType[*handshake.Failure](err)
	if errors.Is(err, connstate.ErrGateTimeout) {
		failure, failed = b.life.overdue(), true
	}
	reason, errorType, text := "closed", metrics.ErrorClosed, err.Error()
	switch {
	case failed:
		return b.visibleFailure(b.life.withRemainingPause(failure)).RPC(), metrics.ErrorInitialization
	case errors.Is(err, connstate.ErrTooManyPending):
		reason = "too_many_requests"
	case errors.Is(err, connstate.ErrDraining) && b.life.phase() == life.Dismissed:
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

// OnMemory reports whether memory answers the client, and no session is there.
func (b *Bridge) OnMemory() bool { return b.life.onMemory() }

// Drained has what comes refused: the connection takes no more requests.
func (b *Bridge) Drained() { b.life.happened(nil, life.Drain) }

// Closed ends the sessions, and all that waits for one.
func (b *Bridge) Closed() {
	b.end()
	b.life.happened(nil, life.Close)
}
