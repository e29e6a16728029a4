package handshake

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake/internal/life"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// question is a question to memory: what is there for a client like this one? It may read a file.
type question struct {
	supplier *Supplier
	memory   *remember.Server // nil: nothing is remembered
	params   json.RawMessage  // of the initialize that the client has sent, or would get
	now      bool             // the client gets no moment for its own initialize; guarded by sessionLife.mu

	// The answer.
	exact    *remember.Answers // for a client that declares the same
	earlier  *remember.Answers // for a client that goes on with a session of before, by its version
	nearest  *remember.Answers
	hasAny   bool
	mayRenew bool // a start in the background may begin
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
	q := &question{supplier: l.supplier, memory: l.supplier.opts().Memory, params: l.params(), now: now}
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
	client, plain := remember.ClientOf(q.params, b.who())
	if q.supplier.opts().Forwards {
		client = client.Alone()
	}
	q.mayRenew = q.supplier.background.mayBegin()
	if !plain { // it has something that others have not sent: it is told of nothing
		q.hasAny = q.memory.HasAny()
		return
	}
	if q.exact = q.memory.Answers(client); q.exact != nil {
		return
	}
	q.hasAny = q.memory.HasAny()
	if version := b.c.Client().Version; version != "" {
		who, _ := remember.ClientOf(nil, b.who())
		if q.supplier.opts().Forwards {
			who = who.Alone()
		}
		q.earlier = q.memory.AnswersAt(version, who)
	}
	if !q.supplier.Shares() {
		q.nearest = q.memory.Nearest(client)
	}
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

// memoryHasNews has the life look whether what memory has learned is for its client.
func (l *sessionLife) memoryHasNews(of *Supplier) {
	l.mu.Lock()
	defer l.unlock()
	switch {
	case l.supplier != of:
	case l.state.Phase == life.Waking:
		l.move(life.Renewed)
	case l.state.Phase == life.Asleep:
		q := &question{supplier: l.supplier, memory: l.supplier.opts().Memory, params: l.params()}
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
	before, now := l.answers, l.usable(q.exact)
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
	known := l.usable(q.exact)
	if told == life.ToldLists && l.answers != nil && !l.answers.Partial && (known == nil || len(l.answers.Pages) > 0 && l.answers.Learned.After(known.Learned)) {
		known = l.answers
	}
	waits := len(l.c.Waiting()) > 0 || len(l.initializes) > 0
	if known == nil && q.hasAny && !q.now && told == life.ToldNothing && declared == life.DeclaredNothing && !waits {
		return life.Unsure, nil
	}
	if known == nil && l.own == nil {
		known = l.usable(q.earlier)
	}
	switch {
	case known != nil && l.isWanted(known):
		return life.KnownNeeded, known
	case known != nil && l.isOld(known) && (told == life.ToldNothing || told == life.ToldResult) && !q.supplier.learnsAlone() && q.mayRenew:
		return life.KnownOld, known
	case known != nil:
		return life.Known, known
	case l.usable(q.nearest) != nil && (told == life.ToldNothing || told == life.ToldResult || told == life.ToldNearest):
		return life.KnownNearly, q.nearest
	case l.state.Phase == life.Recalling && !q.now && told == life.ToldOutdated && !l.isWanted(nil) && q.supplier.learnsAlone():
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
	return time.Since(answers.Learned) >= l.supplier.opts().RememberFor
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
