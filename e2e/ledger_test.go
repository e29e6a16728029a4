package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// ledger is the oracle of a chaos run: it has a page for each stream, on which
// each request and each event stands, and says what breaks a promise. It is safe
// for concurrent use.
type ledger struct {
	bound time.Duration    // of an answer, from its 202
	now   func() time.Time // a fake clock in the tests of the ledger

	mu     sync.Mutex
	pages  int      // guarded by mu
	faults []string // guarded by mu
	tally  tally    // guarded by mu
}

// tally counts what happened in a run.
type tally struct {
	streams, requests, results, cancelled int
	// None of these may happen:
	unanswered, doubled, crossed, cut, wrong int
	errors                                   map[string]int
}

// maxFaults is how many faults a ledger keeps, with their histories.
const maxFaults = 10

func newLedger(bound time.Duration) *ledger {
	return &ledger{bound: bound, now: time.Now, tally: tally{errors: map[string]int{}}}
}

// page is what happened on one stream.
type page struct {
	ledger *ledger
	number int
	names  []string // under which each answer must come, once under each
	// forgets: what the client cancels needs no answer. It is set before the first request.
	forgets bool

	mu      sync.Mutex
	entries map[string]*entry // by id; guarded by mu
	changed chan struct{}     // guarded by mu; closed and replaced with each answer
}

// entry is one request.
type entry struct {
	nonce     string // in its params, and in each result but those without content
	silent    bool   // its result need not hold the nonce
	accepted  time.Time
	cancelled bool
	answers   map[string]int // by event name
	outcome   string         // "result", or the kind of the error
	history   []string
}

// open begins the page of a stream whose answers come once under each name.
func (l *ledger) open(names ...string) *page {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pages++
	l.tally.streams++
	return &page{ledger: l, number: l.pages, names: names, entries: map[string]*entry{}, changed: make(chan struct{})}
}

func (e *entry) note(at time.Time, format string, args ...any) {
	e.history = append(e.history, at.Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// ask notes a request before it is sent, and returns the nonce that it must carry.
// silent says that its result holds no nonce.
func (p *page) ask(id, method string, silent bool) (nonce string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := &entry{nonce: fmt.Sprintf("<%d.%d>", p.number, len(p.entries)), silent: silent, answers: map[string]int{}}
	e.note(p.ledger.now(), "asked %s %s", method, e.nonce)
	p.entries[id] = e
	return e.nonce
}

// accept notes the 202 of a request: from now on an answer is due.
func (p *page) accept(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[id]
	e.accepted = p.ledger.now()
	e.note(e.accepted, "got 202")
}

// refuse notes that a POST failed: the request may be answered, at most once.
func (p *page) refuse(id string, why any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.entries[id].note(p.ledger.now(), "was not accepted: %v", why)
}

// forfeit notes that the client can no longer get the answer to a request that was
// accepted.
func (p *page) forfeit(id string, why any) {
	p.mu.Lock()
	e := p.entries[id]
	e.accepted = time.Time{}
	e.note(p.ledger.now(), "cannot be answered any more: %v", why)
	p.mu.Unlock()
	p.announceChange()
}

// cancel notes that the client cancels a request.
func (p *page) cancel(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.entries[id].cancelled = true
	p.entries[id].note(p.ledger.now(), "cancelled")
}

// lacks reports whether a request is to be answered and is not.
func (p *page) lacks(e *entry) bool {
	return !e.accepted.IsZero() && len(e.answers) < len(p.names) && !(p.forgets && e.cancelled)
}

// waiting returns the ids of the requests that are to be answered.
func (p *page) waiting() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for id, e := range p.entries {
		if p.lacks(e) {
			all = append(all, id)
		}
	}
	slices.Sort(all) // the choice of a seeded client must not depend on the map
	return all
}

// settle waits until nothing is to be answered, or the bound has passed.
func (p *page) settle() {
	deadline := time.After(p.ledger.bound)
	for {
		p.mu.Lock()
		changed := p.changed
		p.mu.Unlock()
		if len(p.waiting()) == 0 {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			return
		}
	}
}

// outcome returns how a request was answered, "" if it is not.
func (p *page) outcome(id string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.entries[id].outcome
}

// answer is what the ledger reads of a message.
type answer struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code int `json:"code"`
		Data struct {
			Reason string `json:"reason"`
			Type   string `json:"type"`
		} `json:"data"`
	} `json:"error"`
}

// kind names an error in a few words.
func (a answer) kind() string {
	return cmp.Or(a.Error.Data.Reason, a.Error.Data.Type, fmt.Sprint("code ", a.Error.Code))
}

var nonces = regexp.MustCompile(`<(\d+)\.\d+>`)

// got notes an event of the stream and returns its message, if it is one that the
// client did not ask for.
func (p *page) got(name, data string) (unasked answer) {
	var a answer
	if err := json.Unmarshal([]byte(data), &a); err != nil {
		p.fault(wrong, nil, "an event is not a JSON-RPC message: %.200s", data)
		return answer{}
	}
	if a.Method != "" {
		p.own(data, nil)
		return a
	}
	p.mu.Lock()
	e := p.entries[string(a.ID)]
	if e != nil {
		e.answers[name]++
		e.note(p.ledger.now(), "got %s: %.200s", name, data)
		defer p.announceChange()
	}
	p.mu.Unlock()
	switch {
	case e == nil && strings.HasPrefix(string(a.ID), `"auto-initialize-`):
	case e == nil:
		p.fault(wrong, nil, "an answer to an id that was never asked: %.200s", data)
	default:
		p.check(e, a, name, data)
	}
	return answer{}
}

// announceChange wakes those who settle.
func (p *page) announceChange() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.changed)
	p.changed = make(chan struct{})
}

// check checks one answer to a request.
func (p *page) check(e *entry, a answer, name, data string) {
	p.mu.Lock()
	accepted, times := e.accepted, e.answers[name]
	p.mu.Unlock()
	switch late := p.ledger.now().Sub(accepted); {
	case !slices.Contains(p.names, name):
		p.fault(wrong, e, "an answer came as %s", name)
	case times > 1:
		p.fault(doubled, e, "answered %d times as %s", times, name)
	case !accepted.IsZero() && late > p.ledger.bound:
		p.fault(wrong, e, "answered after %v, the bound is %v", late.Round(time.Millisecond), p.ledger.bound)
	}
	p.own(data, e)
	outcome := "result"
	if a.Error != nil {
		outcome = a.kind()
	} else if !e.silent && !strings.Contains(data, e.nonce) {
		p.fault(crossed, e, "the result does not hold %s", e.nonce)
	}
	p.mu.Lock()
	e.outcome = outcome
	p.mu.Unlock()
}

// own checks that all nonces in a text are of this stream, and of the request that
// it answers, if it does.
func (p *page) own(data string, e *entry) {
	for _, found := range nonces.FindAllStringSubmatch(data, -1) {
		switch {
		case found[1] != fmt.Sprint(p.number):
			p.fault(crossed, e, "stream %d got %s of another one: %.200s", p.number, found[0], data)
		case e != nil && found[0] != e.nonce:
			p.fault(crossed, e, "the answer holds %s of another request", found[0])
		}
	}
}

// end closes the page, once nothing more can come. alive says that the stream was
// open until the client had waited for all answers: then every request that got a
// 202 must have its own. cut says that the gateway ended the stream.
func (p *page) end(alive bool, cut error) {
	if cut != nil {
		p.fault(cutOff, nil, "the gateway cut the stream: %v", cut)
	}
	for _, id := range slices.Sorted(maps.Keys(p.entries)) {
		if e := p.entries[id]; alive && p.lacks(e) {
			p.fault(unanswered, e, "request %s has %d answers, want one under each of %q", id, len(e.answers), p.names)
		}
	}
	p.ledger.count(p.entries)
}

func (l *ledger) count(entries map[string]*entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range entries {
		l.tally.requests++
		if e.cancelled {
			l.tally.cancelled++
		}
		switch e.outcome {
		case "":
		case "result":
			l.tally.results++
		default:
			l.tally.errors[e.outcome]++
		}
	}
}

// The kinds of faults.
func unanswered(t *tally) { t.unanswered++ }
func doubled(t *tally)    { t.doubled++ }
func crossed(t *tally)    { t.crossed++ }
func cutOff(t *tally)     { t.cut++ }
func wrong(t *tally)      { t.wrong++ }

// fault notes what breaks a promise, with the history of the request.
func (p *page) fault(kind func(*tally), e *entry, format string, args ...any) {
	text := fmt.Sprintf("stream %d: ", p.number) + fmt.Sprintf(format, args...)
	if e != nil {
		p.mu.Lock()
		text += "\n    " + strings.Join(e.history, "\n    ")
		p.mu.Unlock()
	}
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	kind(&p.ledger.tally)
	if len(p.ledger.faults) < maxFaults {
		p.ledger.faults = append(p.ledger.faults, text)
	}
}

// report returns the counts, and the first faults.
func (l *ledger) report() (tally, []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tally, slices.Clone(l.faults)
}

func (t tally) String() string {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(t.errors)) {
		kinds = append(kinds, fmt.Sprintf("%s %d", kind, t.errors[kind]))
	}
	return fmt.Sprintf("streams %d, requests %d, results %d, cancelled %d, unanswered %d, doubled %d, crossed %d, streams cut %d, wrong %d; errors: %s",
		t.streams, t.requests, t.results, t.cancelled, t.unanswered, t.doubled, t.crossed, t.cut, t.wrong, strings.Join(kinds, ", "))
}
