package bridge

import (
	"bytes"
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/bridge/internal/life"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// waitingInitialize is an initialize request of the client that waits for memory or a session.
type waitingInitialize struct {
	*connstate.Request
	version string      // that it requests
	late    *time.Timer // answers it with an error
}

// initialize handles a client's own initialize request. A session that is there answers it, unless the client
// declares more than it was told, and has not used it: then the client gets another one.
func (l *sessionLife) initialize(r *connstate.Request) {
	m := r.Message
	r.Message = nil // its version is all that its answer needs
	l.mu.Lock()
	defer l.unlock()
	w := &waitingInitialize{Request: r, version: handshake.RequestedVersion(m.Params())}
	l.initializes = append(l.initializes, w)
	event := life.OwnInitialize
	if l.declaresMore(m) {
		event = life.MoreDeclared
	}
	if params := m.Params(); life.BeginsAnew(l.state.Phase, event) && !l.shares() && len(params) > 0 && len(params) <= maxParams {
		l.own = bytes.Clone(params)
	}
	l.move(event)
	if slices.Contains(l.initializes, w) {
		w.late = time.AfterFunc(l.opts.Times().InitializeTimeout, func() { l.initializeIsLate(w) })
	}
}

// declaresMore reports whether a client declares more than its session, or the start of one, was told. Shared
// sessions use the params of no client.
func (l *sessionLife) declaresMore(m *jsonrpc.Message) bool {
	if l.shares() || len(m.Params()) > maxParams || l.state.Declared == life.DeclaredRefused {
		return false
	}
	has := l.synthetic()
	if l.session != nil {
		has = l.session.session.Params()
	}
	return handshake.Exceeds(m.Params(), has)
}

func (l *sessionLife) initializeIsLate(w *waitingInitialize) {
	l.mu.Lock()
	l.initializes = slices.DeleteFunc(l.initializes, func(other *waitingInitialize) bool { return other == w })
	l.mu.Unlock()
	l.Refused(w.Request, l.overdue())
}

// takeInitializes removes and returns the initialize requests that wait.
func (l *sessionLife) takeInitializes() []*waitingInitialize {
	all := l.initializes
	l.initializes = nil
	for _, w := range all {
		if w.late != nil {
			w.late.Stop()
		}
	}
	return all
}

// answerInitializes answers the initialize requests that wait from what the server said.
func (l *sessionLife) answerInitializes(result *handshake.Result) {
	if result == nil {
		return
	}
	for _, w := range l.takeInitializes() {
		l.later(func() { w.Answer(result.Answer(w.ID, w.version), "") })
	}
}

// answerRefusal answers them with the server's refusal.
func (l *sessionLife) answerRefusal(refusal *jsonrpc.Message) {
	l.own = nil
	for _, w := range l.takeInitializes() {
		l.later(func() { w.Answer(refusal.WithID(w.ID), metrics.ErrorInitialization) })
	}
}

func (l *sessionLife) refuseInitializes(why error) {
	for _, w := range l.takeInitializes() {
		l.later(func() { l.Refused(w.Request, why) })
	}
}
