package multiplex

import (
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// reading is what a response says of the request that it answers.
type reading struct {
	id     int64 // 0: it names none; -1: one that no request of a session has
	quoted bool  // the id is a string
	failed bool  // it is an error
	// unread: it is the error of a server that could not read a message. JSON-RPC has it
	// without an id.
	unread bool
}

func read(m *jsonrpc.Message) reading {
	r := reading{id: numberOf(m.ID), failed: m.Error() != nil}
	if text, ok := jsonrpc.Text([]byte(m.ID)); ok {
		if n, ok := jsonrpc.Integer([]byte(text)); ok {
			r.id, r.quoted = n, true
		}
	}
	if r.id == 0 && r.failed {
		code, _ := jsonrpc.Member(m.Error(), "code")
		r.unread = string(code) == "-32700" || string(code) == "-32600"
	}
	return r
}

// numberOf returns the id of a message of the server as a number: 0 if it has none, -1 if
// it is not one of the session's.
func numberOf(id jsonrpc.ID) int64 {
	if id == jsonrpc.Null {
		return 0
	}
	n, ok := jsonrpc.Integer([]byte(id))
	if !ok {
		return -1
	}
	return n
}

// serial reports whether the server gets one request at a time.
func (t *table) serial() bool { return t.opts.MaxInFlight == 1 || t.opts.Habits.omits() }

// nameless reports whether the server has named no answer of this session, and is known to
// omit ids.
func (t *table) nameless() bool { return !t.sawID && t.opts.Habits.omits() }

// found is how a response was matched.
type found struct {
	e      *entry   // the request that it answers; nil: unknown
	by     string   // one of the metrics.Matched constants
	fault  fault    // of its id, if news
	news   bool     // it is the server's first of this kind
	doubt  string   // why a response that may answer a request was not matched
	failed []*entry // requests that were given up because a response without an id may answer each
}

// blame records a fault of the response's id.
func (t *table) blame(f *found, what fault) { f.fault, f.news = what, t.opts.Habits.note(what) }

// find finds the request that a response answers. The caller must remove it.
//
// A response without an id is matched only if it can answer a single request: one is out,
// none was given up, and it is not about a notification. On a shared session, a second
// answer to another request would reach the wrong client, so the server must never have
// named an answer there. An id that the session has not given out is taken for none, if the
// server gets one request at a time and has never named an answer.
func (t *table) find(r reading) (f found) {
	f.by = metrics.MatchedOrphan
	e := t.byID[r.id]
	switch {
	case r.id == 0:
		t.findUnnamed(r, &f)
	case e != nil && e.sent():
		f.e, f.by = e, metrics.MatchedID
		if !t.sawID { // those without an id were answers to requests that were given up
			t.sawID, t.unnamed = true, 0
		}
		if r.quoted {
			f.by = metrics.MatchedString
			t.blame(&f, quoted)
		}
	case r.id > 0 && r.id <= t.lastID: // it comes late, or again
		delete(t.abandoned, r.id)
		t.settleAbandoned()
	default:
		what := unknown
		if t.sawID {
			what = stray
		}
		t.blame(&f, what)
		if f.e = t.onlyCandidate(); t.serial() && !t.sawID && f.e != nil {
			f.by = metrics.MatchedFIFO
			break
		}
		f.e, f.doubt = nil, "it has an id that no request has had"
	}
	if f.e != nil && f.e.id >= t.notified {
		t.notified = 0
	}
	return f
}

// findUnnamed is find for a response without an id. If it answers one of several requests,
// they fail as soon as none of them can be told apart.
func (t *table) findUnnamed(r reading, f *found) {
	f.e = t.onlyCandidate()
	switch {
	case t.out == 0 && len(t.abandoned) == 0: // it answers nothing
		return
	case t.aboutNotification(r):
		f.e, f.doubt = nil, "it may be about a notification"
		return
	case r.unread && f.e == nil:
		f.doubt = "it may be about any of several messages"
		return
	case !r.unread:
		t.blame(f, missing)
	}
	if f.e != nil {
		f.by = metrics.MatchedFIFO
		return
	}
	t.unnamed++
	t.settleUnnamed(f)
}

// settleUnnamed gives up the requests that are out if responses without ids must belong to
// them: the server names no answers here, or has named those to all others.
func (t *table) settleUnnamed(f *found) {
	if t.unnamed == 0 || t.sawID && t.out > t.unnamed {
		return
	}
	for _, e := range oldestFirst(t.byID) {
		if e.sent() {
			t.abandon(e)
			f.failed = append(f.failed, e)
		}
	}
	if t.sawID {
		t.unnamed = 0
	}
	t.settleAbandoned()
}

// aboutNotification reports whether a response without an id may be the answer of a server
// that answers notifications. With MaxInFlight 1 the operator says that it is none.
func (t *table) aboutNotification(r reading) bool {
	return t.notified > 0 && t.opts.MaxInFlight != 1 && (r.failed || t.sawID && !t.opts.Habits.omits())
}

// onlyCandidate returns the one request that a response can answer which names none; nil
// if there are others, or may be.
func (t *table) onlyCandidate() *entry {
	if len(t.abandoned) > 0 || t.opts.Shared && t.sawID {
		return nil
	}
	return t.onlySent()
}

// onlySent returns the one request that the server has; nil if there are others.
func (t *table) onlySent() *entry {
	if t.out != 1 {
		return nil
	}
	for _, e := range t.byID {
		if e.sent() {
			return e
		}
	}
	return nil
}

// settleAbandoned forgets the requests that were given up once all are answered, by
// responses that named none of them.
func (t *table) settleAbandoned() {
	if _, over := t.abandoned[0]; over || t.sawID || t.unnamed < len(t.abandoned) {
		return
	}
	t.abandoned, t.unnamed = nil, 0
	t.stopOverdue()
}

func (t *table) stopOverdue() {
	if t.overdue != nil {
		t.overdue.Stop()
		t.overdue = nil
	}
}

// abandonedGrace is how long a server that omits ids may take to answer a request that was
// given up. Until then the next ones wait, because nobody could tell the answers apart.
const abandonedGrace = 10 * time.Second
