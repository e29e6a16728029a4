package bridge

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/internal/bridge/internal/life"
	"github.com/mcp-sse/mcp-sse/internal/remember"
)

// sessionLife gets a client its sessions, one after the other, and lets it rest in between. This file has the
// sessions, starts and timers of now. The table in package life says which event leads to which move: events.go and
// messages.go turn reports and messages into the events of that table, life.go makes the moves, and actions.go does
// what they ask for.
//
// An event makes its move at once, under mu. A move puts its work outside of mu into todo, which one goroutine at a
// time does in order. Nothing in todo waits for a client, a server, memory or a clock: work that waits has a
// goroutine of its own.
type sessionLife struct {
	*client

	// direct gets messages at once; nil in all phases but Awake. It is set under mu.
	direct atomic.Pointer[attachment]

	mu    sync.Mutex // guards what follows; taken before the lock of the connection
	state life.State
	// conditionChanged is closed when the condition changes; nil if nobody waits for that.
	conditionChanged chan struct{}

	// These are the sources of events now. Events of earlier ones are dropped.
	supplier *handshake.Supplier
	start    *start
	session  *attachment
	question *question
	asked    time.Time // when the last one was asked
	timer    *timer    // of the moment or the pause
	learning *learning // in the background
	idle     *time.Timer

	// retiring are on sessions that finish their answers: cancellations, and answers to questions of their
	// servers, still go there.
	retiring []*attachment
	// answers are what the client was told; nil unless state.Told.HasLists.
	answers *remember.Answers
	// changed are the kinds of lists for which the session has sent the client a list_changed.
	changed []string
	// since is the time of the last list_changed. The client is not told what memory has learned before: those lists
	// may be the old ones.
	since time.Time

	// own are the params of the client's own initialize. With auto-initialize they are there in DeclaredOwn alone.
	// Without it they have worked, and are at most maxParams.
	own         json.RawMessage
	initializes []*waitingInitialize
	failures    failures
	// failure is the error for messages that have waited too long; nil: they get one that says that the start goes on.
	failure *handshake.Failure
	// afterLoss says that the next start follows the loss of a session. noteEvent alone moves it: a loss sets it; the
	// next session, a rest and another server take it back.
	afterLoss bool
	pause     time.Duration // before the next start
	retry     time.Time     // in GivenUp: from then on a request causes a start

	todo       []func()
	performing bool // somebody does what is in todo
}

// question is a question to memory: what is there for a client like this one? It may read a file.
type question struct {
	supplier *handshake.Supplier
	memory   *remember.Server // nil: nothing is remembered
	params   json.RawMessage  // of the initialize that the client has sent, or would get

	answer handshake.Recalled
}

// askMemory gets the answer, and then calls done with the question. Without a memory it calls done at once, otherwise
// in the background: memory answers in bounded time.
func (q *question) askMemory(c *client, done func(*question)) {
	if q.memory == nil || q.params == nil {
		done(q)
		return
	}
	q.supplier.Go(func() {
		q.answer = q.supplier.Recall(q.memory, q.params, c.who(), c.c.Client().Version)
		done(q)
	})
}

// newQuestion returns the question of now, for one who does not hold mu.
func (l *sessionLife) newQuestion() *question {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.questionNow()
}

// questionNow returns the question of now.
func (l *sessionLife) questionNow() *question {
	return &question{supplier: l.supplier, memory: l.supplier.Options().Memory, params: l.params()}
}

// equals reports whether another question would get the same answer.
func (q *question) equals(other *question) bool {
	return q.supplier == other.supplier && q.memory == other.memory && bytes.Equal(q.params, other.params)
}

// timer is one run of a timer.
type timer struct{ *time.Timer }

// learning is a start in the background that the life waits for.
type learning struct{ _ int }

// waitingInitialize is an initialize request of the client that waits for memory or a session.
type waitingInitialize struct {
	*connstate.Request
	version string      // that it requests
	late    *time.Timer // answers it with an error
}

// failures are the starts of a connection that have failed in a row.
type failures struct {
	attempts int    // since a session proved itself, with the start that is under way
	cause    string // the phase and the reason of the last failure
	pauses   *backoff.Backoff
}

// step is what the actions of a move need to know of it.
type step struct {
	event   life.Event
	before  life.State
	answers *remember.Answers // those before
	changed []string
	session *attachment // the one before, or nil
}

// doLater has f done outside of mu, after what was put there before.
func (l *sessionLife) doLater(f func()) { l.todo = append(l.todo, f) }

// unlock does what is to be done outside of mu, unless another goroutine is doing so, and unlocks mu.
func (l *sessionLife) unlock() {
	defer l.mu.Unlock()
	if l.performing {
		return
	}
	l.performing = true
	for len(l.todo) > 0 {
		next := l.todo[0]
		l.todo = l.todo[1:]
		l.mu.Unlock()
		next()
		l.mu.Lock()
	}
	l.todo, l.performing = nil, false
}

// hasSource reports whether a source of events is one that the life has now.
func (l *sessionLife) hasSource(source any) bool {
	switch s := source.(type) {
	case *start:
		return l.start == s
	case *attachment:
		return l.session == s
	case *question:
		return l.question == s
	case *timer:
		return l.timer == s
	case *learning:
		return l.learning == s
	case *handshake.Supplier:
		return l.supplier == s
	}
	return true
}

func (l *sessionLife) stopTimer() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
}

// params returns the params with which the next session is initialized, with mu held.
func (l *sessionLife) params() json.RawMessage {
	if l.own != nil {
		return l.own
	}
	return l.synthetic()
}

// nextParams is params without mu held. It also reports whether they are the client's own.
func (l *sessionLife) nextParams() (params json.RawMessage, isOwn bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.params(), l.own != nil
}

// hasLists reports whether the client has lists, perhaps of before: then it calls tools, and takes the wait for a
// slow answer.
func (l *sessionLife) hasLists() bool { return l.state.Told.HasLists() }

func (l *sessionLife) forgetFailures() {
	l.failures = failures{pauses: handshake.NewPauses()}
	l.failure = nil
}

// sessionDone drops a session that has ended.
func (l *sessionLife) sessionDone(a *attachment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retiring = slices.DeleteFunc(l.retiring, func(other *attachment) bool { return other == a })
}

// sessionFor returns the attachment to the retiring session that owns something; if none does, the current one, or nil.
func (l *sessionLife) sessionFor(owns func(*attachment) bool) *attachment {
	l.mu.Lock()
	retiring, current := slices.Clone(l.retiring), l.session
	l.mu.Unlock()
	for _, a := range retiring {
		if owns(a) {
			return a
		}
	}
	return current
}

// phase returns the phase of now.
func (l *sessionLife) phase() life.Phase {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.Phase
}

// condition returns how it is with the server, and a channel that is closed when that changes.
func (l *sessionLife) condition() (is asker.Condition, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conditionChanged == nil {
		l.conditionChanged = make(chan struct{})
	}
	return l.state.Condition(), l.conditionChanged
}

// tellCondition tells those who wait that the condition has changed, with mu held.
func (l *sessionLife) tellCondition() {
	if l.conditionChanged != nil {
		close(l.conditionChanged)
		l.conditionChanged = nil
	}
}

// onMemory reports whether memory answers the client, and no session is there.
func (l *sessionLife) onMemory() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.AnswersLists()
}

// isStateless reports whether the server of the session, or the remembered one, is one of MCP 2026-07-28.
func (l *sessionLife) isStateless() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != nil {
		return l.session.session.Stateless()
	}
	return l.state.Told.HasLists() && l.answers.Stateless
}
