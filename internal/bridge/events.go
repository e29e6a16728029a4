package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/bridge/internal/life"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// This file turns the reports of sessions, starts and memory into events of the table. Messages are in messages.go.

var (
	_ holder             = (*sessionLife)(nil)
	_ gatekeeper         = (*sessionLife)(nil)
	_ starter            = (*sessionLife)(nil)
	_ handshake.Follower = (*sessionLife)(nil)
)

// initialize handles a client's own initialize request. A session that is there answers it, unless the client
// declares more than it was told, and has not used it: then the client gets another one.
func (l *sessionLife) initialize(r *connstate.Request) {
	m := r.Message
	r.Message = nil // its version is all that its answer needs
	l.mu.Lock()
	defer l.unlock()
	w := &waitingInitialize{Request: r, version: handshake.RequestedVersion(m.Params())}
	l.initializes = append(l.initializes, w)
	params := m.Params()
	event := life.OwnInitialize
	switch {
	case l.shares() || len(params) == 0 || len(params) > maxParams:
		event, params = life.OwnUnkept, nil
	case l.declaresMore(params):
		event = life.MoreDeclared
	}
	if life.BeginsAnew(l.state.Phase, event) {
		l.own = bytes.Clone(params) // those of an earlier one count no longer
	}
	l.move(event)
	if slices.Contains(l.initializes, w) {
		w.late = time.AfterFunc(l.opts.Times().InitializeTimeout, func() { l.initializeIsLate(w) })
	}
}

// declaresMore reports whether a client with these params declares more than its session, or the start of one, was
// told.
func (l *sessionLife) declaresMore(params json.RawMessage) bool {
	if l.state.Declared == life.DeclaredRefused {
		return false
	}
	has := l.synthetic()
	if l.session != nil {
		has = l.session.session.Params()
	}
	return handshake.Exceeds(params, has)
}

func (l *sessionLife) initializeIsLate(w *waitingInitialize) {
	l.mu.Lock()
	l.initializes = slices.DeleteFunc(l.initializes, func(other *waitingInitialize) bool { return other == w })
	l.mu.Unlock()
	l.refuse(w.Request, l.overdue(l.opts.Times().InitializeTimeout))
}

// started makes the move that follows from a start that has a session. A start is told something with mu held alone,
// so nothing comes in between.
func (l *sessionLife) started(s *start) bool {
	l.mu.Lock()
	defer l.unlock()
	if len(s.unseen()) > 0 {
		return false
	}
	first := l.state.Told == life.ToldNothing
	s.result.attachment.sent = s.sent
	l.doLater(func() { s.reportUsed(first) })
	if l.start == s {
		l.move(life.Up)
	}
	return true
}

// startFailed makes the move that follows from a start that has failed.
func (l *sessionLife) startFailed(s *start) {
	worked := s.supplier.Worked()
	l.mu.Lock()
	defer l.unlock()
	switch {
	case l.start != s:
		return
	case l.supplier.IsReplaced(): // since the start has ended
		l.move(life.Again)
		return
	}
	hopeless := l.failures.cause == string(s.failure.Phase)+s.failure.Reason && l.failures.attempts > 1 && !worked &&
		(s.sent != sentSynthetic || l.state.Declared != life.DeclaredOwn) // else the next start differs from this one
	if s.refusesClient() {
		l.move(life.OwnRefused)
	}
	isOwn := func(e StartEvent) bool { return e == OwnInitialize || e == MoreDeclared }
	begins := slices.ContainsFunc(s.unseen(), isOwn)
	switch {
	case begins: // the client has begun anew since the start has ended
		again := life.OwnInitialize
		if l.own == nil { // its params were too long, or were dropped with those that the server has refused
			again = life.OwnUnkept
		}
		l.move(life.Failed)
		l.move(again)
	case l.failures.attempts >= l.opts.MaxHandshakeAttempts:
		l.move(life.FailedLast)
	case hopeless:
		l.move(life.FailedHopeless)
	default:
		l.move(life.Failed)
	}
}

// startIsLate announces to a client that has been told nothing that its start takes long. The start goes on:
// late is not failed.
func (l *sessionLife) startIsLate(s *start) {
	l.log().Info("session start takes long", "waited", l.opts.Times().InitializationTimeout)
	l.mu.Lock()
	defer l.unlock()
	if l.start != s {
		return
	}
	l.failure = nil
	if l.state.Told == life.ToldNothing {
		l.doLater(func() {
			l.announceFailure(l.lateFailure(s.attempt, l.opts.Times().InitializationTimeout, s.lastWords()))
		})
	}
}

// prepared has the session used.
func (l *sessionLife) prepared(a *attachment) {
	l.mu.Lock()
	defer l.unlock()
	switch {
	case l.session != a:
	case len(l.c.Queued()) > 0:
		l.move(life.PreparedWaits)
	case l.shares() || !l.opts.autoInitializes() || a.sent == sentOwn || l.state.Declared == life.DeclaredRefused:
		l.move(life.PreparedUsed)
	default:
		l.move(life.PreparedUnused)
	}
}

// sessionOver has the life go on without a session that is over.
func (l *sessionLife) sessionOver(a *attachment) {
	l.mu.Lock()
	defer l.unlock()
	if l.session != a {
		return
	}
	why := a.session.Why()
	switch {
	case !l.shares() && errors.Is(why, jsonrpc.ErrDismissed):
		l.move(life.Dismiss)
	case errors.Is(why, handshake.ErrReplaced):
		l.move(life.Replaced)
	case handshake.IsPlanned(why):
		l.move(life.Retired)
	case l.shares() || a.session.Proven():
		l.move(life.Lost)
	case l.failures.attempts >= l.opts.MaxHandshakeAttempts:
		l.move(life.LostLast)
	default:
		l.move(life.LostSoon)
	}
}

// ServerReplaced has the life go on with another server than that of a supplier. An initialize of the client that is
// at the server is let finish: the next session needs its params, once they have worked.
func (l *sessionLife) ServerReplaced(of *handshake.Supplier) {
	l.mu.Lock()
	defer l.unlock()
	if l.supplier == of && !l.initializeIsOut() {
		l.move(life.Replaced)
	}
}

// initializeIsOut reports whether an initialize of the client is at the server as it is.
func (l *sessionLife) initializeIsOut() bool {
	if l.opts.autoInitializes() || l.session == nil {
		return false
	}
	waiting := l.c.Queued()
	return slices.ContainsFunc(l.c.Unanswered(), func(r *connstate.Request) bool {
		return r.Method == mcp.MethodInitialize && !slices.Contains(waiting, r)
	})
}

// initialized notes that the server has answered the client's own initialize. It keeps the params; nil: the answer is
// an error, or they are too long. If the server is to be replaced, and its replacement has waited for this answer, that
// takes place now.
func (l *sessionLife) initialized(params json.RawMessage) {
	l.mu.Lock()
	if params != nil {
		l.own = params
	}
	supplier := l.supplier
	l.mu.Unlock()
	if supplier.IsReplaced() {
		l.ServerReplaced(supplier)
	}
}

// MemoryHasNews has the life look whether what memory has learned is for its client.
func (l *sessionLife) MemoryHasNews(of *handshake.Supplier) {
	l.mu.Lock()
	defer l.unlock()
	switch {
	case l.supplier != of:
	case l.state.Phase == life.Waking:
		l.move(life.Renewed)
	case l.state.Phase == life.Asleep:
		if q := l.questionNow(); q.memory != nil {
			l.doLater(func() { q.askMemory(l.client, l.renewed) })
		}
	}
}

// SelectionChanged tells the client that it gets other lists of these kinds now, if it was promised to be told.
func (l *sessionLife) SelectionChanged(kinds []string) {
	l.mu.Lock()
	defer l.unlock()
	var promised *handshake.Result
	switch {
	case l.session != nil:
		promised = l.session.session.Result()
	case l.answers != nil:
		promised = handshake.ResultOf(l.answers)
	}
	if promised != nil {
		l.doLater(func() {
			l.notifyListsChanged(promised, func(kind string) bool { return slices.Contains(kinds, kind) })
		})
	}
}

// renewed makes the move of a life that sleeps if memory has something later for its client.
func (l *sessionLife) renewed(q *question) {
	l.mu.Lock()
	defer l.unlock()
	before, now := l.answers, l.usable(q.answer.Exact)
	if l.state.Phase != life.Asleep || l.supplier != q.supplier || !bytes.Equal(l.params(), q.params) ||
		now == nil || !now.Learned.After(before.Learned) {
		return
	}
	l.answers = now
	l.moveFrom(life.Renewed, before)
}
