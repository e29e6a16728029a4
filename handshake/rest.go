package handshake

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
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

// errIdle is the reason of a session that has ended because its client has not used it for long.
var errIdle = errors.New("the session was idle")

// startingEvery is the time between two reports of progress to a client that waits for a start.
const startingEvery = 3 * time.Second

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
	r.tell(answers)
	r.renew(answers)
	for _, w := range r.takeWaiting() {
		w.Answer(resultOf(answers).Answer(w.ID, w.version), "")
	}
	return true
}

// answerDuringStart answers the client's own initialize from memory, if it came too late for a rest: the
// start goes on.
func (r *run) answerDuringStart() {
	answers := r.remembered(r.params())
	if answers == nil {
		return
	}
	r.tell(answers)
	r.follows = afterRest
	for _, w := range r.takeWaiting() {
		w.Answer(resultOf(answers).Answer(w.ID, w.version), "")
	}
}

// learnForNext has the server say what the next client like this one, which has left before the server was
// ready, gets from memory.
func (r *run) learnForNext() {
	opts := r.supplier.opts()
	if opts.Memory != nil && !opts.Forwards && !r.shares() && r.remembered(r.params()) == nil {
		r.supplier.renew(r.params())
	}
}

// renew has the server say everything again if that is long ago.
func (r *run) renew(answers *remember.Answers) {
	if time.Since(answers.Learned) < r.supplier.opts().RememberFor {
		return
	}
	if r.supplier.opts().Forwards || r.shares() {
		r.needed.Store(true) // by the client's own session
		return
	}
	r.supplier.renew(r.params())
}

// renewPause is the time after a failed renewal before the next one.
const renewPause = time.Minute

// renew starts a session in the background to learn what the server says to clients with these params,
// unless one does so already.
func (s *Supplier) renew(params json.RawMessage) {
	declared := remember.DeclaredBy(params, "")
	if _, runs := s.renewing.LoadOrStore(declared, true); runs {
		return
	}
	s.Go(func() { // ends with the start, the look, and the supplier
		defer s.renewing.Delete(declared)
		session, _, err := s.start(s.life, openOptions{AnyServer: true, Params: given(params)})
		if err != nil {
			s.NoteFailure(err)
			s.limited.Warn("the server could not be asked again for what is remembered", "err", err)
			_ = backoff.Wait(s.life, renewPause)
			return
		}
		defer session.Close(errNotNeeded)
		if session.look == nil { // a reload has switched it off
			return
		}
		session.startLook() // it has no client that could get the answers
		select {
		case <-session.look.done:
		case <-s.life.Done():
		}
	})
}

// lookFirst is how long the messages of a client that has rested wait for the look at its session.
const lookFirst = time.Second

// lookBefore looks at a session before its client's messages can change what it says.
func (r *run) lookBefore(a *attachment) {
	look := a.session.look
	if look == nil { // a reload has switched it off
		return
	}
	a.session.startLook()
	select {
	case <-look.done:
	case <-time.After(lookFirst):
	case <-a.session.Over():
	case <-r.ctx.Done():
	}
}

// compare tells the client if the lists of a session that comes into use differ from what it was told, now
// or once they have been read.
func (r *run) compare(a *attachment) {
	look := a.session.look
	switch {
	case look == nil:
	case look.isOver():
		r.tellDifferences(a, look.answers)
	default:
		r.supplier.Go(func() { // ends with the look, the session and the connection
			select {
			case <-look.done:
				if r.current.Load() == a {
					r.tellDifferences(a, look.answers)
				}
			case <-a.session.Done():
			case <-r.ctx.Done():
			}
		})
	}
}

// tellDifferences tells the client which lists of its session, if they could be read, differ from what it
// was told.
func (r *run) tellDifferences(a *attachment, now *remember.Answers) {
	told := r.told.Load()
	switch {
	case now == nil:
		return
	case told == nil:
		r.told.Store(now)
		return
	}
	if told.Initialize != now.Initialize {
		r.limited().Warn("the server answers initialize otherwise than remembered", a.session.ServerAttrs()...)
	}
	tell := *now
	tell.Initialize = told.Initialize // the client knows nothing else
	r.told.Store(&tell)
	for _, kind := range remember.Kinds() {
		if !told.SameLists(now, kind) && resultOf(told).Advertises(kind, "listChanged") {
			r.log().Info("a list differs from what is remembered", "list", kind)
			a.pass("", jsonrpc.NewNotification("notifications/"+kind+"/list_changed", nil))
		}
	}
}

// noteMissing notes what the client was told of and the server no longer has.
func (a *attachment) noteMissing() {
	told := a.bridge.told.Load()
	if told == nil {
		return
	}
	for _, kind := range remember.Kinds() {
		if resultOf(told).Advertises(kind) && !a.session.Result().Advertises(kind) {
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

// reportStarting tells the clients of requests that wait for a start that it goes on, as far as they
// ask for progress. n is the number of the report.
func (r *run) reportStarting(n int) {
	for _, waits := range r.c.Waiting() {
		token := waits.Message.Token.Value
		if waits.ID == "" || token == nil || len(token) > jsonrpc.MaxIDBytes {
			continue
		}
		// Progress must grow, and the server's own begins with whatever it likes: this is close to 0.
		params := `{"progressToken":` + string(token) + `,"progress":` + strconv.Itoa(n) + `e-6,"message":"starting the server"}`
		waits.SendProgress(jsonrpc.NewNotification(mcp.MethodProgress, json.RawMessage(params)), false)
	}
}

// usage is how a client uses a session, as far as it decides whether the session may end when it is
// idle.
type usage struct {
	last atomic.Int64 // when the last message passed, in Unix nanoseconds
	// stateful says that the server has something of this session that no other one would have: a task,
	// or lists that it has changed.
	stateful atomic.Bool
}

func (u *usage) note() { u.last.Store(time.Now().UnixNano()) }

// idleFor returns the time since the last message. The start of the session counts as one.
func (u *usage) idleFor() time.Duration { return time.Since(time.Unix(0, u.last.Load())) }

// checksInIdle is how often a session is looked at in the time after which it is idle.
const checksInIdle = 4

// awaitIdle returns a channel on which it is time to look whether the session is idle; nil if it never
// ends for that.
func (r *run) awaitIdle() <-chan time.Time {
	if limit := r.supplier.opts().ProcessIdle; limit > 0 && !r.shares() {
		return time.After(limit / checksInIdle)
	}
	return nil
}

// isIdle reports whether a session may end until its client needs the server again.
func (r *run) isIdle(a *attachment) bool {
	if r.c.InFlight() > 0 || a.session.Asks() {
		a.usage.note()
	}
	return r.remembered(r.params()) != nil && !a.usage.stateful.Load() && !r.state.hasSubscriptions() &&
		a.usage.idleFor() >= r.supplier.opts().ProcessIdle
}
