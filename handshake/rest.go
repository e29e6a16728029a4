package handshake

import (
	"encoding/json"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// A connection rests while it has no session and needs none: what is remembered of the server
// answers its initialize and its requests for lists. The first message that needs the server ends the
// rest, and waits at the gate for the session that it starts. When that is there, its lists are
// compared with what the client was told.
//
//	             what the server said is remembered
//	initializing ──────────────────────────────────▶ resting
//	     ▲  ▲    a message needs the server             │
//	     │  └───────────────────────────────────────────┘
//	     │ no message for process-idle
//	   ready

// who is the client, for what is remembered.
func (b *Bridge) who() string { return remember.Principal(b.c.Client().Principal) }

// asks returns the client that sent these params of initialize. It reports false if they have something that
// others have not sent: then the client is told of nothing.
func (b *Bridge) asks(params json.RawMessage) (client remember.Client, plain bool) {
	client, plain = remember.ClientOf(params, b.who())
	if b.opts.Supplier().opts().Forwards {
		client = client.Alone()
	}
	return client, plain
}

// remembered returns what the server said to clients that sent these params of initialize, nil if that
// is unknown.
func (b *Bridge) remembered(params json.RawMessage) *remember.Answers {
	memory := b.opts.Supplier().opts().Memory
	client, plain := b.asks(params)
	if memory == nil || params == nil || !plain {
		return nil
	}
	return memory.Answers(client)
}

// nearest returns what the server said that is nearest to what it says to such clients, nil if there is nothing.
func (b *Bridge) nearest(params json.RawMessage) *remember.Answers {
	memory := b.opts.Supplier().opts().Memory
	client, plain := b.asks(params)
	if memory == nil || params == nil || !plain || b.shares() {
		return nil
	}
	return memory.Nearest(client)
}

// fromMemory returns what answers a request for a list while there is no session; nil if only a session
// can.
func (b *Bridge) fromMemory(r *connstate.Request) (answer func()) {
	told := b.told.Load()
	if told == nil {
		return nil
	}
	switch b.c.State() {
	case connstate.Resting, connstate.Initializing, connstate.Failed:
	default:
		return nil
	}
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
		b.opts.Metrics.AnsweredFromMemory()
		r.Answer(jsonrpc.NewResult(r.ID, result), "")
	}
}

// answerGate answers the requests at the gate that memory can answer: they came before it was known what
// the client is told.
func (r *run) answerGate() {
	if r.told.Load() == nil {
		return
	}
	for _, waits := range r.c.Waiting() { // nobody else lets them through meanwhile
		if waits.ID == "" {
			continue
		}
		if answer := r.fromMemory(waits); answer != nil && r.c.Release(waits) {
			answer()
		}
	}
}

// tell makes what is remembered what the client is told while there is no session: it answers the client's
// own initialize, and the requests at the gate that wait for no more.
func (r *run) tell(answers *remember.Answers) {
	result := resultOf(answers)
	r.c.SawServer(connstate.Server(result.Server()))
	for _, w := range r.takeWaiting() { // before lists, which told answers
		w.Answer(result.Answer(w.ID, w.version), "")
	}
	r.told.Store(answers)
	r.c.Told()
	r.answerGate()
}

// resultOf returns the result of initialize that is remembered.
func resultOf(answers *remember.Answers) *Result {
	raw := json.RawMessage(answers.Initialize)
	version, _ := jsonrpc.MemberText(raw, "protocolVersion")
	return &Result{Raw: raw, Version: version}
}

// restUntilNeeded lets the connection rest, if what the server said to clients like this one is remembered and
// nothing needs the server yet. It returns when a session has to be started, and reports false if the
// connection is closed or drains.
func (r *run) restUntilNeeded() bool {
	before := r.told.Load()
	if r.supplier != r.opts.Supplier() {
		r.startAnew()
	}
	answers := r.recall()
	if answers == nil && r.follows == afterRest && before != nil && !before.Partial {
		answers = before // what its last session said
	}
	if answers == nil && (r.follows == first || r.follows == afterInitialize) {
		isFirst := r.follows == first
		if nearest := r.tellNearest(); nearest != nil && isFirst {
			r.announce(resultOf(nearest).Response(r.autoID()))
		}
		return true
	}
	if answers == nil || r.needed.Load() && r.follows != first {
		return true
	}
	r.tell(answers)
	r.needed.Store(false) // by what was answered just now; awaitNeed looks at the rest
	if r.c.Move(connstate.Resting) != nil {
		return false // it drains
	}
	switch r.follows {
	case first:
		r.announce(resultOf(answers).Response(r.autoID()))
	case afterInitialize: // the client has just asked
	case afterLoss: // the session may have had other lists
		r.tellChanged(nil, answers)
	default:
		r.tellChanged(before, answers)
	}
	r.follows = afterRest
	r.renewIfOld(answers)
	return r.awaitNeed() && r.c.Move(connstate.Initializing) == nil
}

// tellNearest tells the client what is nearest to what it will get, and returns that; nil if nothing is. Its
// session has to start at once, and is compared with it.
func (r *run) tellNearest() *remember.Answers {
	answers := r.nearest(r.params())
	if answers != nil {
		r.tell(answers)
		r.follows = afterRest
	}
	return answers
}

// tellChanged tells a client which lists are others now than it was told; before is nil if that is unknown.
func (r *run) tellChanged(before, now *remember.Answers) {
	promised := now
	if before != nil {
		promised = before
	}
	r.notifyListsChanged(resultOf(promised), func(kind string) bool {
		return before == nil || before.Has(kind) && !before.SameLists(now, kind)
	})
}

// params returns the params with which the next session is initialized.
func (r *run) params() json.RawMessage {
	if r.own != nil {
		return r.own
	}
	return r.synthetic()
}

// recall returns what is remembered for the client, nil for nothing. Where something is remembered for
// others, it gives the client a moment for its own initialize, which may declare what they do. A client
// that goes on with a session of before a restart sends none.
func (r *run) recall() *remember.Answers {
	memory := r.supplier.opts().Memory
	if memory == nil {
		return nil
	}
	over := time.After(r.opts.Times().AnnounceDelay)
	for isOver := false; ; {
		needed := r.needed.Load()                                 // before a look at what came before that
		if came, _ := r.takeInitializes(); came && r.own == nil { // its params cannot be used
			return nil
		}
		answers := r.remembered(r.params())
		switch {
		case answers != nil || r.own != nil || !memory.HasAny():
			return answers
		case needed || isOver:
			return r.toldBefore(memory)
		}
		select {
		case <-r.wake:
		case <-over:
			isOver = true
		case <-r.ctx.Done():
			return nil
		}
	}
}

// toldBefore returns what a client that goes on with an earlier session was told in it, as far as that is
// known: what clients of its version were told last. If its own was something else, it learns so when its
// server has started.
func (r *run) toldBefore(memory *remember.Server) *remember.Answers {
	version := r.c.Client().Version
	if version == "" {
		return nil
	}
	client, _ := r.asks(nil)
	return memory.AnswersAt(version, client)
}

// awaitNeed waits until a resting connection needs a session. It answers the client's own initialize
// meanwhile. It reports false if the connection is closed.
func (r *run) awaitNeed() bool {
	for {
		r.takeInitializes()
		if len(r.waiting) > 0 && !r.answerInitializes() {
			return true
		}
		r.answerGate()
		if r.needed.Load() || len(r.c.Waiting()) > 0 {
			r.needed.Store(true) // so the start waits for nothing else
			return true
		}
		select {
		case <-r.wake:
		case <-r.supplier.Replaced():
			if !r.restAtNext() {
				return r.ctx.Err() == nil
			}
		case <-r.ctx.Done():
			return false
		}
	}
}

// restAtNext makes a resting connection one of the server that has taken the place of the one before. That
// is started once for all that rest, to say what it has, unless it is known. The client learns which lists
// have changed. It reports false if the connection needs a session, or is closed.
func (r *run) restAtNext() bool {
	before := r.told.Load()
	r.startAnew()
	now := r.remembered(r.params())
	if now == nil {
		if !r.supplier.learnsAlone() || !r.awaitLearned() {
			return false
		}
		now = r.remembered(r.params())
	}
	if now == nil {
		return false
	}
	r.follows = afterRest
	r.tell(now)
	r.tellChanged(before, now)
	r.renewIfOld(now)
	return true
}

// awaitLearned has the server say what it says to such a client, and waits until that is known, or cannot be
// known. It reports false if the connection needs a session first, or is closed, or if there is yet another
// server.
func (r *run) awaitLearned() bool {
	learned := r.supplier.learnInBackground(r.params(), r.who())
	for {
		select {
		case <-learned:
			return true
		case <-r.wake:
			came, _ := r.takeInitializes()
			if came || r.needed.Load() || len(r.c.Waiting()) > 0 {
				return false
			}
		case <-r.supplier.Replaced():
			return false
		case <-r.ctx.Done():
			return false
		}
	}
}

// answerInitializes answers the client's own initialize from memory. It reports false if what the server
// says to such a client is unknown: then the session that has to be started answers it.
func (r *run) answerInitializes() bool {
	answers := r.remembered(r.params())
	if answers == nil {
		r.told.Store(nil)
		r.follows = afterInitialize
		r.tellNearest()
		return false
	}
	r.renewIfOld(answers)
	r.tell(answers)
	return true
}

// answerDuringStart answers the client's own initialize from memory, if it came too late for a rest: the
// start goes on.
func (r *run) answerDuringStart() {
	answers := r.remembered(r.params())
	if answers == nil {
		r.tellNearest()
		return
	}
	r.follows = afterRest
	r.tell(answers)
}
