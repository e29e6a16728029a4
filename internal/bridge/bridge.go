package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/bridge/internal/life"
	"github.com/mcp-sse/mcp-sse/internal/clip"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/selection"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Bridge passes messages between a connection and its session, and answers the
// requests that the gateway answers itself. Its life gets it the sessions. It
// is safe for concurrent use.
type Bridge struct {
	client
	end  context.CancelFunc // of client.ctx
	life sessionLife
}

var _ httpcheck.Stateless = (*Bridge)(nil)

// New returns the bridge of a new connection, and begins to get it a session. The
// caller must not change opts afterwards.
func New(c *connstate.Connection, opts *Options) *Bridge {
	b := &Bridge{client: client{opts: opts, c: connstate.ForHandler{Connection: c}}}
	b.narrow = c.Client().Narrow
	b.ctx, b.end = context.WithCancel(context.Background())
	b.life.client = &b.client
	b.life.beginLife()
	return b
}

// Stateless reports whether the server of the current session, or the remembered one, is one of MCP
// 2026-07-28.
func (b *Bridge) Stateless() bool { return b.life.isStateless() }

// Condition returns how it is with the server, and a channel that is closed when that changes.
func (b *Bridge) Condition() (is asker.Condition, changed <-chan struct{}) { return b.life.condition() }

// Receive handles a message of the client. It runs inside the POST and does not
// block.
func (b *Bridge) Receive(m *jsonrpc.Message) {
	if !m.Certain() && m.Kind != jsonrpc.Request && b.selection() != nil { // to another parser it may be a call
		b.opts.Metrics.Dropped(metrics.DroppedLeftOut)
		return
	}
	switch m.Kind {
	case jsonrpc.Request:
		b.request(m)
	case jsonrpc.Response: // only the session that sent the request can use it
		if a := b.life.sessionFor(func(a *attachment) bool { return a.caller.Awaits(m.ID) }); a != nil {
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
	r, err := b.c.BeginRequest(m)
	switch {
	case errors.Is(err, connstate.ErrClosed):
		return
	// The client would take an error under this id for the answer to the other request: it gets one
	// without an id.
	case errors.Is(err, connstate.ErrDuplicate):
		b.limited().Warn("request dropped: one with its id is in flight", "method", clip.Short(m.Method))
		e := jsonrpc.ReasonError("a request with its id is in flight: use another id", "duplicate_id", true)
		b.c.RespondNow(jsonrpc.Null, jsonrpc.NewError(jsonrpc.Null, e))
		return
	case err != nil:
		e, _ := b.life.refusal(err)
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
	case m.Method == mcp.MethodInitialize && b.opts.autoInitializes():
		b.life.initialize(r)
	default:
		if s := b.selection(); s != nil {
			b.passSelected(r, s)
			return
		}
		b.life.passMessage(r)
	}
}

// passSelected passes a request to the life, if the selection lets it. It has the result of a list filtered on its way
// to the client: memory and sessions go on to see the whole list.
func (b *Bridge) passSelected(r *connstate.Request, s *Selection) {
	m := r.Message
	if _, _, isList := selection.ListOf(m.Method); isList {
		isFirst := m.Param("cursor").Value == nil
		r.Through(func(result json.RawMessage) json.RawMessage {
			for _, rule := range s.Watch.Page(m.Method, isFirst, result) {
				b.opts.Logger.Warn("rule meets nothing", "rule", rule)
			}
			return s.filter(m.Method, result)
		})
	}
	e, certain := s.refusal(m)
	switch {
	case e == nil:
		b.life.passMessage(r)
	case certain:
		r.Fail(e, strconv.Itoa(e.Code))
	default:
		b.passIfRemembered(r, s)
	}
}

// passIfRemembered is passSelected for a call of a tool whose hints nobody has listed since the gateway began. Memory
// may have them, for a client that goes on after a restart.
func (b *Bridge) passIfRemembered(r *connstate.Request, s *Selection) {
	q := b.life.newQuestion()
	m := r.Message
	q.askMemory(&b.client, func(q *question) {
		s.noteHints(q.answer)
		if e, _ := s.refusal(m); e != nil {
			r.Fail(e, strconv.Itoa(e.Code))
			return
		}
		b.life.passMessage(r)
	})
}

func (b *Bridge) notification(m *jsonrpc.Message) {
	switch {
	case m.Method == mcp.MethodInitialized && b.opts.autoInitializes():
		// The gateway sends its own.
	case m.Method == mcp.MethodCancelled:
		b.cancel(m)
	default:
		b.c.AuditNotification(m)
		if s := b.selection(); s != nil && !s.lets(m) {
			b.opts.Metrics.Dropped(metrics.DroppedLeftOut)
			return
		}
		b.life.passMessage(&connstate.Request{Message: m})
	}
}

// cancel withdraws the request from the gate, or passes the cancellation to the
// session.
func (b *Bridge) cancel(m *jsonrpc.Message) {
	r := b.requestNamed(jsonrpc.ID(m.RequestID.Value))
	if r != nil && r.Method != mcp.MethodInitialize && m.Certain() && !m.RequestID.Ambiguous {
		r.Silence()
	}
	a := b.life.sessionFor(func(a *attachment) bool { return a.caller.Has(r) })
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

// Refused answers a request that got no session because of err. It drops notifications.
func (b *Bridge) Refused(r *connstate.Request, err error) { b.life.refuse(r, err) }

// OnMemory reports whether memory answers the client, and no session is there.
func (b *Bridge) OnMemory() bool { return b.life.onMemory() }

// Drained has what comes refused: the connection takes no more requests.
func (b *Bridge) Drained() { b.life.happened(nil, life.Drain) }

// Closed ends the sessions, and all that waits for one.
func (b *Bridge) Closed() {
	b.end()
	b.life.happened(nil, life.Close)
}
