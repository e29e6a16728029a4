package bridge

import (
	"slices"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/bridge/internal/life"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// This file tells a client what its server has while there is no session, and corrects that when a session says
// otherwise.

// fromMemory returns what answers a request for a list from what the client was told, nil if that does not.
func (l *sessionLife) fromMemory(r *connstate.Request) (answer func()) {
	if r.ID == "" || !l.state.AnswersLists() {
		return nil
	}
	told := l.answers
	if told.Lacks(r.Method) { // as the server would say, perhaps after a long start
		return func() {
			r.Fail(jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "the server has no %s", r.Method), "-32601")
		}
	}
	result, ok := told.Answer(r.Message)
	if !ok {
		return nil
	}
	return func() {
		l.opts.Metrics.AnsweredFromMemory()
		r.Backpressure = false // a session may have had it: nobody waits for the client here
		r.Answer(jsonrpc.NewResult(r.ID, result), "")
	}
}

// tellMemory answers the waiting messages for which memory has an answer. Messages that need the server may wait
// longer from then on.
func (l *sessionLife) tellMemory(s step) {
	answers, supplier, params := l.answers, l.supplier, l.params()
	l.changed = nil
	result := handshake.ResultOf(answers)
	l.c.Prolong()
	l.answerInitializes(result)
	l.doLater(func() { l.c.SawServer(connstate.Server(result.Server())) })
	for _, r := range l.c.Queued() { // nobody lets them through meanwhile
		if answer := l.fromMemory(r); answer != nil && l.c.Release(r) {
			l.doLater(answer)
		}
	}
	if s.before.Told == life.ToldNothing {
		l.doLater(func() { l.announce(result.Response(l.autoID())) })
	}
	if l.start != nil {
		l.start.tellEvent(ListsTold)
	}
	if s.event != life.KnownNearly && l.isOld(answers) && supplier.LearnsAlone() {
		l.doLater(func() { supplier.LearnInBackground(params, l.who()) })
	}
}

// tellIfDifferent tells a client which lists are others now than it was told: all, if nobody knows what that was.
func (l *sessionLife) tellIfDifferent(s step) {
	before, now := s.answers, l.answers
	if s.before.Told == life.ToldUncertain {
		l.doLater(func() { l.notifyListsChanged(handshake.ResultOf(now), func(string) bool { return true }) })
		return
	}
	l.doLater(func() {
		l.notifyListsChanged(handshake.ResultOf(before), func(kind string) bool {
			return slices.Contains(s.changed, kind) || before.Has(kind) && !before.SameLists(now, kind)
		})
	})
}

// tellCompared tells the client which lists of its session differ from what it was told.
func (l *sessionLife) tellCompared(s step) {
	before, now, a := s.answers, l.session.session.Looked(), l.session
	l.doLater(func() {
		if !before.Partial && before.Initialize != now.Initialize { // after the nearest memory a difference is expected
			l.limited().Warn("the server answers initialize otherwise than remembered", a.session.ServerAttrs()...)
		}
		differs := func(kind string) bool {
			return !slices.Contains(s.changed, kind) && before.Has(kind) && !before.SameLists(now, kind)
		}
		for _, kind := range remember.Kinds() {
			if differs(kind) {
				l.log().Info("a list differs from what is remembered", "list", kind)
			}
		}
		l.notifyListsChanged(handshake.ResultOf(before), differs)
	})
}

// tellAllChanged tells the client that lists may have changed: those of its new session, or, if they cannot be
// read, those that it was told of.
func (l *sessionLife) tellAllChanged(s step) {
	switch before, result := s.answers, l.session.session.Result(); {
	case s.event == life.Up && result != nil:
		l.doLater(func() { l.notifyListsChanged(result, func(string) bool { return true }) })
	case s.event == life.NotLooked:
		l.doLater(func() { l.notifyListsChanged(handshake.ResultOf(before), before.Has) })
	case s.event == life.Unlookable:
		l.doLater(func() { l.notifyListsChanged(handshake.ResultOf(before), func(string) bool { return true }) })
	}
}
