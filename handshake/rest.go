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

// principal returns the client's principal if the server sees it.
func (b *Bridge) principal() string {
	if b.opts.Supplier().opts().Forwards {
		return b.c.Client().Principal
	}
	return ""
}

// remembered returns what the server said to clients that sent these params of initialize, nil if that
// is unknown.
func (b *Bridge) remembered(params json.RawMessage) *remember.Answers {
	memory := b.opts.Supplier().opts().Memory
	if memory == nil || params == nil {
		return nil
	}
	return memory.Answers(remember.DeclaredBy(params, b.principal()))
}

// answerFromMemory answers a request for a list while there is no session, if it can.
func (b *Bridge) answerFromMemory(r *connstate.Request) bool {
	told := b.told.Load()
	if told == nil {
		return false
	}
	switch b.c.State() {
	case connstate.Resting, connstate.Initializing, connstate.Failed:
	default:
		return false
	}
	if told.Lacks(r.Method) { // as the server would say, perhaps after a long start
		r.Fail(jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "the server has no %s", r.Method), "-32601")
		return true
	}
	result, ok := told.Answer(r.Message)
	if ok {
		b.opts.Metrics.AnsweredFromMemory()
		r.Answer(jsonrpc.NewResult(r.ID, result), "")
	}
	return ok
}

// tell makes what is remembered what the client is told while there is no session.
func (r *run) tell(answers *remember.Answers) {
	r.told.Store(answers)
	r.c.SawServer(connstate.Server(resultOf(answers).Server()))
}

// resultOf returns the result of initialize that is remembered.
func resultOf(answers *remember.Answers) *Result {
	raw := json.RawMessage(answers.Initialize)
	version, _ := jsonrpc.MemberText(raw, "protocolVersion")
	return &Result{Raw: raw, Version: version}
}

// rest lets the connection rest, if what the server said to clients like this one is remembered and
// nothing needs the server yet. It returns when a session has to be started, and reports false if the
// connection is closed or drains.
func (r *run) rest() bool {
	answers := r.recall()
	if answers == nil || r.needed.Load() {
		return true
	}
	r.tell(answers)
	if r.c.Move(connstate.Resting) != nil { // it drains
		return false
	}
	if r.follows == first {
		r.follows = afterRest
		r.announce(resultOf(answers).Response(r.autoID()))
	}
	r.renew(answers)
	return r.awaitNeed() && r.c.Move(connstate.Initializing) == nil
}

// params returns the params with which the next session is initialized.
func (r *run) params() json.RawMessage {
	if r.own != nil {
		return r.own
	}
	return r.synthetic()
}

// recall returns what is remembered for the client, nil for nothing. Where something is remembered for
// others, it gives the client a moment for its own initialize, which may declare what they do.
func (r *run) recall() *remember.Answers {
	memory := r.supplier.opts().Memory
	if memory == nil {
		return nil
	}
	over := time.After(r.opts.Times().AnnounceDelay)
	for {
		answers := r.remembered(r.params())
		if answers != nil || r.own != nil || r.needed.Load() || !memory.HasAny() {
			return answers
		}
		select {
		case <-r.wake:
			if came, _ := r.takeInitializes(); came && r.own == nil { // its params cannot be used
				return nil
			}
		case <-over:
			return nil
		case <-r.ctx.Done():
			return nil
		}
	}
}

// awaitNeed waits until a resting connection needs a session. It answers the client's own initialize
// meanwhile. It reports false if the connection is closed.
func (r *run) awaitNeed() bool {
	for {
		r.takeInitializes()
		if len(r.waiting) > 0 && !r.answerInitializes() {
			return true
		}
		if r.needed.Load() || len(r.c.Waiting()) > 0 {
			return true
		}
		select {
		case <-r.wake:
		case <-r.supplier.Replaced():
			r.follows = afterReplacement
			return true
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
		return false
	}
	r.renew(answers)
	r.answerWaiting(answers)
	return true
}

// answerWaiting tells the client what is remembered, as the answer to its own initialize.
func (r *run) answerWaiting(answers *remember.Answers) {
	r.tell(answers)
	result := resultOf(answers)
	for _, w := range r.takeWaiting() {
		w.Answer(result.Answer(w.ID, w.version), "")
	}
}

// answerDuringStart answers the client's own initialize from memory, if it came too late for a rest: the
// start goes on.
func (r *run) answerDuringStart() {
	answers := r.remembered(r.params())
	if answers == nil {
		return
	}
	r.follows = afterRest
	r.answerWaiting(answers)
}
