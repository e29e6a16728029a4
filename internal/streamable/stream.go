package streamable

import (
	"cmp"
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// stream is what goes out for one POST, or for the session itself. It is undecided until
// begin: if its answers come first and at once, they are the response, as JSON. Otherwise
// it is a stream of numbered events, which the client can resume. Its session's mu guards
// it.
type stream struct {
	session *session
	number  int64
	// open counts the requests of the POST without an answer.
	open int
	// batch says that the POST was an array: its answers are one too.
	batch bool
	// json says that the response cannot be a stream of events.
	json bool

	// asked are the requests of the POST without an answer among the events, and repeats says that
	// all of them may be run twice. waits is what follows from both for the id of the next event.
	asked   []jsonrpc.ID
	repeats bool
	waits   waits

	// begun says that it is a stream of events, and ended that nothing follows what is queued and
	// stored.
	begun, ended bool
	// primer is the id of its first event, which has no data. It is zero if there is none, or nobody
	// gets it.
	primer eventID
	// written is when a response last wrote the stream to its end; zero if none has.
	written time.Time
	// count is the number of the last event, and read that of the last one that a response has
	// taken, or that the client has.
	count, read int64

	// queue are the events for the response, of which begin sets the numbers. bytes are theirs.
	queue []event
	bytes int
	// behind says that the events after read are in the store, and not in queue.
	behind bool
	// answers are the numbers of the events with answers, by request.
	answers map[jsonrpc.ID]int64
	// responses write the stream, the newest last, which gets the events. Only the
	// session's own stream has several.
	responses []*response
}

// reachable reports whether the client can read what comes beside the answers: it does,
// or it can resume the stream.
func (st *stream) reachable() bool { return !st.json && len(st.responses) > 0 || st.begun }

// put adds a message. id is the request that it answers, empty if it is no answer.
func (st *stream) put(data []byte, id jsonrpc.ID) {
	if id != "" {
		st.open--
	}
	switch {
	case st.begun:
		st.add(data, id)
	case len(st.responses) == 0 && st.number > 0: // the client has gone, and knows no event of the stream
	default:
		st.enqueue(event{data: data, answers: id})
	}
	if id == "" {
		st.begin()
	}
	if st.number > 0 && st.open == 0 {
		st.end()
	}
	st.signal()
}

// begin makes the stream one of events, unless it cannot be one.
func (st *stream) begin() {
	if st.begun || st.ended || st.json {
		return
	}
	st.begun = true
	st.session.streams[st.number] = st
	st.waits = newWaits(st.asked, st.repeats)
	queued := st.queue
	st.release()
	if primes(st.session.version) {
		st.count, st.read = 1, 1
		if len(st.responses) > 0 {
			st.primer = eventID{st.number, 1, st.waits}
		}
	}
	for _, e := range queued {
		st.add(e.data, e.answers)
	}
	st.signal()
}

// primes reports whether clients of a version take an event without data, which tells
// them the id to come back with (MCP 2025-11-25).
func primes(version string) bool { return version >= mcp.VersionNewest }

// add numbers an event of a stream that has begun, stores it and queues it.
func (st *stream) add(data []byte, answers jsonrpc.ID) {
	st.count++
	if answers != "" {
		st.asked = slices.DeleteFunc(st.asked, func(id jsonrpc.ID) bool { return id == answers })
		st.waits = newWaits(st.asked, st.repeats)
	}
	e := event{eventID{st.number, st.count, st.waits}, data, answers}
	st.session.h.store.add(st.session, e)
	if answers != "" {
		if st.answers == nil {
			st.answers = make(map[jsonrpc.ID]int64)
		}
		st.answers[answers] = e.number
	}
	switch {
	case len(st.responses) == 0 || st.behind:
		st.behind = true
	case !st.session.c.QueueHasRoom(st.bytes, len(data), st.session.h.opts.MaxQueuedBytes):
		st.fallBehind()
	default:
		st.enqueue(e)
	}
}

// fallBehind makes the response read the store from here on.
func (st *stream) fallBehind() {
	st.release()
	st.behind = true
}

func (st *stream) enqueue(e event) {
	st.queue = append(st.queue, e)
	st.bytes += len(e.data)
	st.session.c.CountQueued(len(e.data))
}

func (st *stream) release() {
	st.session.c.CountQueued(-st.bytes)
	st.queue, st.bytes = nil, 0
}

// cutResponse ends the newest response, because another one goes on.
func (st *stream) cutResponse() {
	last := len(st.responses) - 1
	r := st.responses[last]
	r.cut = true
	r.out.End()
	r.signal()
	st.responses = st.responses[:last]
}

func (st *stream) end() {
	st.ended = true
	if s := st.session; st.begun {
		s.ended++
		if s.ended >= max(tidyEvery, len(s.streams)/4) && !s.over {
			s.tidyLocked()
		}
	}
	for _, r := range st.responses {
		r.signal()
	}
}

// isOver reports whether nothing follows on the stream of a POST, and nobody reads it.
func (st *stream) isOver() bool { return st.number > 0 && st.ended && len(st.responses) == 0 }

// signal wakes the response that gets the events.
func (st *stream) signal() {
	if n := len(st.responses); n > 0 {
		st.responses[n-1].signal()
	}
}

func (st *stream) attach(r *response) { st.responses = append(st.responses, r) }

// detach removes a response. What it has not taken is in the store.
func (st *stream) detach(r *response) {
	i := slices.Index(st.responses, r)
	if i < 0 {
		return
	}
	newest := i == len(st.responses)-1
	st.responses = slices.Delete(st.responses, i, i+1)
	if newest {
		st.fallBehind()
	}
	st.signal()
}

// step is what a response is to do next.
type step struct {
	events []event // to write
	json   bool    // the events are answers, and all of the response
	begun  bool    // the response is a stream of events
	ended  bool    // with these events, the response is over
	cut    bool    // the response is over at once
	bytes  int     // of the events, to give back once they are written
}

func (st *stream) next(r *response) (n step) {
	st.session.mu.Lock()
	defer st.session.mu.Unlock()
	switch {
	case r.cut:
		return step{cut: true}
	case !st.begun && !st.ended:
		return step{}
	case len(st.responses) == 0 || st.responses[len(st.responses)-1] != r:
		return step{begun: true, ended: st.ended}
	}
	n = step{events: st.queue, bytes: st.bytes, json: !st.begun, begun: st.begun, ended: st.ended}
	st.queue, st.bytes = nil, 0
	if st.behind {
		n.events, n.bytes = st.refill()
		n.ended = st.ended && !st.behind
	}
	if len(n.events) > 0 {
		st.read = n.events[len(n.events)-1].number
	}
	return n
}

// refill returns the next events from the store, and their bytes, as many as may be
// queued. An answer that the store has dropped becomes an error.
func (st *stream) refill() (events []event, size int) {
	events = st.session.h.store.after(st.session, eventID{stream: st.number, number: st.read})
	missing := st.count - st.read - int64(len(events))
	for id, number := range st.answers {
		if missing > 0 && number > st.read &&
			!slices.ContainsFunc(events, func(e event) bool { return e.number == number }) {
			e := jsonrpc.ReasonError("the answer is no longer kept: it is too old, or too much came after it",
				"events_lost", false)
			events = append(events, event{eventID{stream: st.number, number: number}, jsonrpc.NewError(id, e), id})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.number, b.number) })
	if missing > 0 {
		st.session.h.opts.Metrics.Dropped(metrics.DroppedClientGone)
	}
	for i, e := range events {
		if i > 0 && size+len(e.data) > st.session.h.opts.MaxQueuedBytes {
			events = events[:i]
			break
		}
		size += len(e.data)
	}
	if len(events) == 0 || events[len(events)-1].number == st.count {
		st.behind = false
		st.read = st.count
	} else {
		st.signal() // there are more
	}
	st.session.c.CountQueued(size)
	return events, size
}
