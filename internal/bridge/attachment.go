package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/bridge/internal/life"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

var (
	// errGone is the close reason of sessions that end with their connection.
	errGone = errors.New("the client's connection was closed")
	// errSuperseded is the close reason of a session that the client's own initialize
	// replaces.
	errSuperseded = errors.New("the client has opened a session with capabilities of its own")
)

// sentParams says whose params of initialize have gone to the server.
type sentParams uint8

const (
	sentNone      sentParams = iota // none yet, or none at all: the session needs no initialize of this start
	sentSynthetic                   // those of the gateway
	sentOwn                         // those of the client
)

// attachment is the connection as one session sees it.
type attachment struct {
	*client
	holder  holder
	session *handshake.Session
	caller  *multiplex.Caller
	usage   usage
	// missing are the kinds of lists that the client was told of, and that the server no longer has. It
	// is set before the session is in use.
	missing []string
	// sent says with whose params the session was initialized. It is set before the session is used.
	sent sentParams
	// changed are the kinds of lists that have changed before the holder had the session. Its lock guards them.
	changed []string

	early *early // what came before the session was in use
}

// holder has an attachment, and is told what happens on its session. It does not wait then.
type holder interface {
	// happened has an event follow. source is what it comes from: an attachment, or the start of its session.
	happened(source any, event life.Event)
	// sessionOver says that the session takes no more messages. The requests that it does not answer come back later.
	sessionOver(a *attachment)
	// sessionDone says that the session has ended.
	sessionDone(a *attachment)
	// listsChanged says that lists of the server have changed.
	listsChanged(a *attachment, kinds ...string)
	// initialized says that the server has answered the client's own initialize, with which the gateway sends none.
	// params are those that have worked, or nil: none have, or they are too long to be kept.
	initialized(params json.RawMessage)
	// repeat gives back a request of a session that was lost. If it is not repeated, its answer is e.
	repeat(r *connstate.Request, loss multiplex.Loss, e *jsonrpc.Error)
}

var (
	_ multiplex.Client      = (*attachment)(nil)
	_ handshake.SessionUser = (*attachment)(nil)
)

// usage is how a client uses a session, as far as it decides whether the session may end when it is
// idle.
type usage struct {
	last atomic.Int64 // when the last message passed, in Unix nanoseconds
	// stateful says that the server has something of this session that no other one would have: a task.
	stateful atomic.Bool
}

// noteMessage notes a message that passes now, and returns when that is, in Unix nanoseconds.
func (u *usage) noteMessage() (at int64) {
	at = time.Now().UnixNano()
	u.last.Store(at)
	return at
}

// idleFor returns the time since the last message. The start of the session counts as one.
func (u *usage) idleFor() time.Duration { return time.Since(time.Unix(0, u.last.Load())) }

// attach attaches the connection to a session.
func (c *client) attach(s *handshake.Session, h holder) *attachment {
	a := &attachment{client: c, holder: h, session: s, early: newEarly()}
	a.usage.noteMessage()
	a.caller = s.Attach(a, c.c.ShortID(), c.c.Client().Principal)
	return a
}

// close closes a session of the connection's own for the reason why, and leaves a shared
// one. Requests that are at a closed session come back through Lost: one may have been
// sent at the moment when the client's initialize replaced the session.
func (a *attachment) close(why error) {
	if a.shares() {
		a.caller.Detach()
		a.session.StopObserving(a)
		return
	}
	a.session.Close(why)
}

// SessionOver tells the holder that the session is over.
func (a *attachment) SessionOver() { a.holder.sessionOver(a) }

// SessionLooked tells the holder that the look at the session is over.
func (a *attachment) SessionLooked() {
	if a.session.Looked() != nil {
		a.holder.happened(a, life.Looked)
	} else {
		a.holder.happened(a, life.NotLooked)
	}
}

// SessionDone tells the holder that the session has ended.
func (a *attachment) SessionDone() { a.holder.sessionDone(a) }

// Lost repeats a request of a lost session, or answers it with e. The session's reader
// may call it before the session is over: when it has an answer in hand, and the server
// does not take the request that waited for that.
func (a *attachment) Lost(r *connstate.Request, loss multiplex.Loss, e *jsonrpc.Error) {
	a.retireAndReport(handshake.ErrTakesNoMore)
	a.holder.repeat(r, loss, e)
}

// mayWait reports whether a client that reads slowly slows down its server. It must not slow down a server that others
// use: one of a shared session, or one behind a relay.
func (a *attachment) mayWait() bool { return !a.shares() && !a.session.Relays() }

// Deliver passes a notification or request of the server to the client, or keeps it
// until the session is in use. It drops list_changed of a shared session whose server has
// not declared it.
func (a *attachment) Deliver(method string, related jsonrpc.ID, message []byte) {
	if kind, isList := mcp.ChangedList(method); isList && a.shares() && !a.isTold(a.session.Result(), kind) {
		a.opts.Metrics.Dropped(metrics.DroppedUnknownRequest)
		return
	}
	a.usage.noteMessage()
	if kind, isList := mcp.ChangedList(method); isList {
		a.holder.listsChanged(a, kind)
	}
	a.deliverOrKeep(message, func() { a.deliver(related, message) })
	if a.session.Asks() {
		a.early.noteQuestion()
	}
}

// Progress is Deliver for progress of a request.
func (a *attachment) Progress(r *connstate.Request, message []byte) {
	a.deliverOrKeep(message, func() { r.SendProgress(message, a.mayWait()) })
}

// deliver sends a message of the server to the client.
func (a *attachment) deliver(related jsonrpc.ID, message []byte) {
	if !a.mayWait() {
		a.c.SendNow(related, message)
		return
	}
	_ = a.c.Send(related, message) // on an error the connection is closed already
}

// deliverOrKeep passes a message to the client, or keeps it until the session is in use.
func (a *attachment) deliverOrKeep(message []byte, pass func()) {
	if !a.early.deliverOrKeep(len(message), pass) {
		a.opts.Metrics.Dropped(metrics.DroppedNotReady) // a request among them is answered by its timeout
	}
}

// SeesDetails reports whether the client may see the details of errors.
func (a *attachment) SeesDetails() bool { return a.seesDetails() }

// Serves reports whether the client declared, in the session's initialize, the
// capability that a server request needs (MCP 2025-11-25, client features). Requests
// of other methods need none.
func (a *attachment) Serves(m *jsonrpc.Message) bool {
	params := a.session.Params()
	if params == nil { // the gateway does not read the client's own initialize
		return !a.opts.autoInitializes()
	}
	capabilities, _ := rawjson.Member(params, "capabilities")
	return mcp.Required(m.Method, nil) == nil || mcp.Answers(capabilities, m.Method, m.Params())
}

// send sends a message to the server. It reports whether the session took it.
func (a *attachment) send(r *connstate.Request) bool {
	m := r.Message
	a.settings.noteSetting(m)
	a.session.NoteUse(a.usage.noteMessage())
	a.session.Hears(m)
	if m.Kind == jsonrpc.Request && a.lacks(m.Method) {
		changed := jsonrpc.ReasonError(
			a.opts.Server+" no longer has what it had: connect again", "server_changed", false)
		r.Fail(changed, metrics.ErrorServerChanged)
		return true
	}
	if strings.HasPrefix(m.Method, "tasks/") ||
		bytes.Contains(m.Params(), []byte(`"task"`)) && m.Param("task").Value != nil {
		a.usage.stateful.Store(true)
	}
	if m.Kind != jsonrpc.Request {
		a.caller.Forward(m)
		return true
	}
	if !a.opts.autoInitializes() && m.Method == mcp.MethodInitialize {
		a.followInitialize(r)
	}
	r.Backpressure = a.mayWait()
	err := a.caller.Send(r)
	switch { // Send may notice the loss of a session before its reader does
	case err == nil:
		return true
	case errors.Is(err, multiplex.ErrLeft): // the connection is closed, or has another session
		return false
	case !errors.Is(err, jsonrpc.ErrDismissed):
		err = handshake.ErrTakesNoMore
	}
	a.retireAndReport(err)
	return false
}

// followInitialize has the holder told of the answer to the client's own initialize, with which the gateway sends none.
func (a *attachment) followInitialize(r *connstate.Request) {
	var params json.RawMessage
	if sent := r.Message.Params(); len(sent) <= maxParams {
		params = bytes.Clone(sent)
	}
	r.OnAnswer(func(errorType string) {
		if errorType == "" {
			a.holder.initialized(params)
		} else {
			a.holder.initialized(nil)
		}
	})
}

// set sends the server a request for the state of the client, which the client has sent to an earlier session.
func (a *attachment) set(ctx context.Context, method string, params json.RawMessage) (*jsonrpc.Message, error) {
	a.session.HearsState()
	return a.caller.Call(ctx, method, params)
}

// retireAndReport retires a session that takes no messages, and reports its loss, for the reason why unless
// it is over already.
func (a *attachment) retireAndReport(why error) {
	a.retireSession(why)
	a.SessionOver()
}

// retireSession lets the session finish its answers, and ends it for the reason why.
func (a *attachment) retireSession(why error) {
	var gone <-chan struct{} // the other clients of a shared session wait for their answers
	if !a.shares() {
		gone = a.c.Done()
	}
	a.session.Retire(why, gone)
}

// noteMissing notes what the client was told of and the server no longer has.
func (a *attachment) noteMissing(told life.Told, answers *remember.Answers) {
	if told != life.ToldNearest && told != life.ToldLists {
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
