package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/bridge/internal/life"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/subnet"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex"
	"github.com/mcp-sse/mcp-sse/upstream/remote"
)

// attachment is the connection as one session sees it.
type attachment struct {
	bridge  *Bridge
	session *handshake.Session
	caller  *multiplex.Caller
	usage   usage
	// missing are the kinds of lists that the client was told of, and that the server no longer has. It
	// is set before the session is in use.
	missing []string
	// own says that the session was initialized with the client's own params. It is set before the session is used.
	own bool
	// lost is why the session is over, and changed are the kinds of lists that have changed before the life had
	// the session. Both are guarded by the lock of the life.
	lost    error
	changed []string

	early *early // what came before the session was in use
}

var (
	_ multiplex.Client = (*attachment)(nil)
	_ handshake.User   = (*attachment)(nil)
)

// attach attaches the connection to a session.
func (b *Bridge) attach(s *handshake.Session) *attachment {
	a := &attachment{bridge: b, session: s, early: newEarly()}
	a.usage.note()
	a.caller = s.Attach(a, b.c.ShortID(), b.c.Client().Principal)
	return a
}

// close closes a session of the connection's own for the reason why, and leaves a shared
// one. Requests that are at a closed session come back through Lost: one may have been
// sent at the moment when the client's initialize replaced the session.
func (a *attachment) close(why error) {
	if a.bridge.shares() {
		a.caller.Detach()
		a.session.Ignore(a)
		return
	}
	a.session.Close(why)
}

// SessionOver tells the life that the session is over. What it does not answer comes back later.
func (a *attachment) SessionOver() { a.bridge.life.sessionOver(a, a.session.Why()) }

// SessionLooked tells the life that the look at the session is over.
func (a *attachment) SessionLooked() { a.bridge.life.looked(a) }

// SessionDone tells the life that the session has ended.
func (a *attachment) SessionDone() { a.bridge.life.sessionDone(a) }

// Lost repeats a request of a lost session, or answers it with e. The session's reader
// may call it before the session is over: when it has an answer in hand, and the server
// does not take the request that waited for that.
func (a *attachment) Lost(r *connstate.Request, e *jsonrpc.Error) {
	a.retire(handshake.ErrTakesNoMore)
	a.bridge.repeat(r, e)
}

// Deliver passes a notification or request of the server to the client, or keeps it
// until the session is in use. It drops list_changed of a shared session whose server has
// not declared it.
func (a *attachment) Deliver(method string, related jsonrpc.ID, message []byte) {
	if kind, isList := mcp.ChangedList(method); isList && a.bridge.shares() &&
		!a.session.Result().Advertises(kind, "listChanged") {
		a.bridge.opts.Metrics.Dropped(metrics.DroppedUnknownRequest)
		return
	}
	a.usage.note()
	if kind, isList := mcp.ChangedList(method); isList {
		a.bridge.life.listsChanged(a, kind)
	}
	a.deliver(message, func() { a.bridge.deliver(related, message) })
	if a.session.Asks() {
		a.early.noteQuestion()
	}
}

// Progress is Deliver for progress of a request.
func (a *attachment) Progress(r *connstate.Request, message []byte) {
	a.deliver(message, func() { r.SendProgress(message, !a.bridge.shares()) })
}

// deliver passes a message to the client, or keeps it until the session is in use.
func (a *attachment) deliver(message []byte, pass func()) {
	if !a.early.pass(len(message), pass) {
		a.bridge.opts.Metrics.Dropped(metrics.DroppedNotReady) // a request among them is answered by its timeout
	}
}

// deliver sends a message to the client. On a shared session it does not wait for a slow
// client. On the client's own session it does, which slows the server down.
func (b *Bridge) deliver(related jsonrpc.ID, message []byte) {
	if b.shares() {
		b.c.SendNow(related, message)
		return
	}
	_ = b.c.Send(related, message) // on an error the connection is closed already
}

// SeesDetails reports whether the client may see the details of errors.
func (a *attachment) SeesDetails() bool { return a.bridge.opts.Detailed(a.bridge.c.Client()) }

// Serves reports whether the client declared, in the session's initialize, the
// capability that a server request needs (MCP 2025-11-25, client features). Requests
// of other methods need none.
func (a *attachment) Serves(m *jsonrpc.Message) bool {
	params := a.session.Params()
	if params == nil { // the gateway does not read the client's own initialize
		return a.bridge.opts.Params == nil
	}
	capabilities, _ := jsonrpc.Member(params, "capabilities")
	return mcp.Required(m.Method, nil) == nil || mcp.Answers(capabilities, m.Method, m.Params())
}

// party returns on whose behalf the connection starts sessions: that of its principal,
// or of its address without authentication.
func (b *Bridge) party() string {
	client := b.c.Client()
	if client.Principal != "" {
		return "principal " + client.Principal
	}
	return "address " + subnet.Of(client.Addr).String()
}

// forwarded returns a context with what the client's request has for the server.
func (b *Bridge) forwarded() context.Context {
	ctx := b.c.Client().Context
	if ctx == nil {
		ctx = context.Background()
	}
	if header := b.c.Client().Header; len(header) > 0 {
		return remote.WithNewest(remote.WithHeader(ctx, header), b.c.Credentials)
	}
	return ctx
}

// send sends a message to the server. It reports whether the session took it.
func (a *attachment) send(r *connstate.Request) bool {
	b := a.bridge
	m := r.Message
	b.clientState.note(m)
	a.session.NoteUse(a.usage.note())
	a.session.Hears(m)
	if m.Kind == jsonrpc.Request && a.lacks(m.Method) {
		r.Fail(jsonrpc.ReasonError(b.opts.Server+" no longer has what it had: connect again", "server_changed", false), metrics.ErrorServerChanged)
		return true
	}
	if strings.HasPrefix(m.Method, "tasks/") || bytes.Contains(m.Params(), []byte(`"task"`)) && m.Param("task").Value != nil {
		a.usage.stateful.Store(true)
	}
	if m.Kind != jsonrpc.Request {
		a.caller.Forward(m)
		return true
	}
	if b.opts.Params == nil && m.Method == mcp.MethodInitialize && len(m.Params()) <= maxParams {
		params := json.RawMessage(bytes.Clone(m.Params()))
		r.OnAnswer(func(errorType string) {
			if errorType == "" {
				b.life.initialized(params)
			} else {
				b.life.initialized(nil)
			}
		})
	}
	r.Backpressure = !b.shares() // a slow client slows down its own server, but not a shared one
	err := a.caller.Send(r)
	switch { // Send may notice the loss of a session before its reader does
	case err == nil:
		return true
	case errors.Is(err, multiplex.ErrLeft): // the connection is closed, or has another session
		return false
	case !errors.Is(err, jsonrpc.ErrDismissed):
		err = handshake.ErrTakesNoMore
	}
	a.retire(err)
	return false
}

// retire handles the loss of a session that takes no messages, for the reason why unless
// it is over already.
func (a *attachment) retire(why error) {
	a.finish(why)
	a.SessionOver()
}

// finish lets the session finish its answers, and ends it for the reason why.
func (a *attachment) finish(why error) {
	var gone <-chan struct{} // the other clients of a shared session wait for their answers
	if !a.bridge.shares() {
		gone = a.bridge.c.Done()
	}
	a.session.Retire(why, gone)
}

// repeat puts a request of a lost session back into the gate, where it waits for the
// next session, unless it was repeated before. If it may not be repeated, repeat answers
// it with e.
func (b *Bridge) repeat(r *connstate.Request, e *jsonrpc.Error) {
	if r.Message == nil || r.Repeated || b.life.phase() == life.Dismissed {
		r.Fail(b.visibleLoss(e), metrics.ErrorSessionLost)
		return
	}
	r.Repeated = true
	b.c.Passed(r)
	r.FromServer(metrics.ErrorSessionLost)
	b.opts.Metrics.RequestRepeated()
	b.pass(r)
}

// noteMissing notes what the client was told of and the server no longer has.
func (a *attachment) noteMissing(told life.Told, answers *remember.Answers) {
	if answers == nil || told != life.ToldNearest && told != life.ToldLists {
		return
	}
	promised := handshake.ResultOf(answers)
	for _, kind := range remember.Kinds() {
		if promised.Advertises(kind) && !a.session.Result().Advertises(kind) {
			a.missing = append(a.missing, kind)
		}
	}
}

// lacks reports whether a session lacks what a request needs, although the client was told that the
// server has it.
func (a *attachment) lacks(method string) bool {
	kind, _, _ := strings.Cut(method, "/")
	return slices.Contains(a.missing, kind)
}
