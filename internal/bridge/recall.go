package bridge

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/bridge/internal/life"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// question is a question to memory: what is there for a client like this one? It may read a file.
type question struct {
	supplier *handshake.Supplier
	memory   *remember.Server // nil: nothing is remembered
	params   json.RawMessage  // of the initialize that the client has sent, or would get
	now      bool             // the client gets no moment for its own initialize; guarded by sessionLife.mu

	answer handshake.Recalled
}

// who is the client, for what is remembered.
func (b *Bridge) who() string { return remember.Principal(b.c.Client().Principal) }

// synthetic returns the params of the synthetic initialize: with the version of a client
// that has negotiated one earlier.
func (b *Bridge) synthetic() json.RawMessage {
	params, version := b.opts.Params, b.c.Client().Version
	if params == nil || version == "" {
		return params
	}
	return jsonrpc.SetMember(params, json.RawMessage(strconv.Quote(version)), "protocolVersion")
}

// params returns the params with which the next session is initialized, with mu held.
func (l *sessionLife) params() json.RawMessage {
	if l.own != nil && l.state.Declared != life.DeclaredRefused {
		return l.own
	}
	return l.synthetic()
}

// ask asks memory, with mu held. A question that is under way and equal is joined.
func (l *sessionLife) ask(now bool) {
	q := &question{supplier: l.supplier, memory: l.supplier.Options().Memory, params: l.params(), now: now}
	if old := l.question; old != nil && old.supplier == q.supplier && old.memory == q.memory && bytes.Equal(old.params, q.params) {
		old.now = old.now || now
		return
	}
	l.question, l.asked = q, time.Now()
	if q.memory == nil || q.params == nil {
		l.later(func() { l.answered(q) })
		return
	}
	l.later(func() {
		q.supplier.Go(func() { // ends once memory has answered, which is bounded
			q.recall(l.Bridge)
			l.answered(q)
		})
	})
}

// recall answers the question.
func (q *question) recall(b *Bridge) {
	q.answer = q.supplier.Recall(q.memory, q.params, b.who(), b.c.Client().Version)
}

// answered makes the move that follows from the answer to a question.
func (l *sessionLife) answered(q *question) {
	l.mu.Lock()
	defer l.unlock()
	if l.question != q {
		return
	}
	l.question = nil
	event, answers := l.decide(q)
	before := l.answers
	if answers != nil {
		l.answers = answers
	}
	l.moveFrom(event, before)
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
		q := &question{supplier: l.supplier, memory: l.supplier.Options().Memory, params: l.params()}
		if q.memory != nil {
			l.later(func() {
				q.supplier.Go(func() { // as in ask
					q.recall(l.Bridge)
					l.renewed(q)
				})
			})
		}
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

// decide returns the event that the answer to a question is, and what the client is told.
func (l *sessionLife) decide(q *question) (life.Event, *remember.Answers) {
	told, declared := l.state.Told, l.state.Declared
	known := l.usable(q.answer.Exact)
	if told == life.ToldLists && l.answers != nil && !l.answers.Partial && (known == nil || len(l.answers.Pages) > 0 && l.answers.Learned.After(known.Learned)) {
		known = l.answers
	}
	waits := len(l.c.Waiting()) > 0 || len(l.initializes) > 0
	if known == nil && q.answer.HasAny && !q.now && told == life.ToldNothing && declared == life.DeclaredNothing && !waits {
		return life.Unsure, nil
	}
	if known == nil && l.own == nil {
		known = l.usable(q.answer.Earlier)
	}
	switch {
	case known != nil && l.isWanted(known):
		return life.KnownNeeded, known
	case known != nil && l.isOld(known) && (told == life.ToldNothing || told == life.ToldResult) && !q.supplier.LearnsAlone() && q.answer.MayLearn:
		return life.KnownOld, known
	case known != nil:
		return life.Known, known
	case l.usable(q.answer.Nearest) != nil && (told == life.ToldNothing || told == life.ToldResult || told == life.ToldNearest):
		return life.KnownNearly, q.answer.Nearest
	case l.state.Phase == life.Recalling && !q.now && told == life.ToldOutdated && !l.isWanted(nil) && q.supplier.LearnsAlone():
		return life.Learnable, nil
	}
	return life.Unknown, nil
}

// usable returns answers that count for this client, else nil.
func (l *sessionLife) usable(answers *remember.Answers) *remember.Answers {
	if answers == nil || !answers.Learned.After(l.since) {
		return nil
	}
	return answers
}

func (l *sessionLife) isOld(answers *remember.Answers) bool {
	return time.Since(answers.Learned) >= l.supplier.Options().RememberFor
}

// isWanted reports whether something needs the server that these answers, which may be nil, do not answer: a
// message that waits at the gate, or a subscription.
func (l *sessionLife) isWanted(answers *remember.Answers) bool {
	for _, r := range l.c.Waiting() {
		if r.ID == "" || answers == nil || !canAnswer(answers, r) {
			return true
		}
	}
	return l.clientState.hasSubscriptions()
}

func canAnswer(answers *remember.Answers, r *connstate.Request) bool {
	_, ok := answers.Answer(r.Message)
	return ok || answers.Lacks(r.Method)
}
