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
// beginEvents: if its answers come first and at once, they are the response, as JSON. Otherwise
// it is a stream of numbered events, which the client can resume. Its session's mu guards
// it.
type stream struct {
	session *streamSession
	number  int64
	// state is moved by beginEvents and markEnd alone.
	state streamState
	// open counts the requests of the POST without an answer.
	open int
	// batch says that the POST was an array: its answers are one too.
	batch bool

	// asked are the requests of the POST without an answer among the events, and repeats says that
	// all of them may be run twice. waits is what follows from both for the id of the next event.
	asked   []jsonrpc.ID
	repeats bool
	awaited awaitedIDs

	// primer is the id of its first event, which has no data. It is zero if there is none, or nobody
	// gets it.
	primer eventID
	// written is when a response last wrote the stream to its end; zero if none has.
	written time.Time
	// count is the number of the last event, and read that of the last one that a response has
	// taken, or that the client has.
	count, read int64

	// queue are the events for the response, of which beginEvents sets the numbers. bytes are theirs.
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

// streamState says whether a stream is JSON or events, and whether more follows. The stream of a POST begins as
// undecided or jsonAlone, a session's own as eventsOpen.
//
//	state        the response is                              beginEvents  markEnd
//	undecided    not decided: JSON or events                  eventsOpen   jsonEnded
//	jsonAlone    JSON, once all answers are there                          jsonEnded
//	jsonEnded    JSON: the answers that are queued
//	eventsOpen   events, and more may follow                               eventsEnded
//	eventsEnded  events: those that are queued or stored
//
// Where a cell is empty, the state stays.
type streamState uint8

const (
	undecided streamState = iota
	jsonAlone             // the client or the ResponseWriter takes no stream of events
	jsonEnded
	eventsOpen
	eventsEnded
)

// isEvents reports whether the stream is one of events, which the client can resume.
func (s streamState) isEvents() bool { return s == eventsOpen || s == eventsEnded }

// hasEnded reports whether nothing follows what is queued and stored.
func (s streamState) hasEnded() bool { return s == jsonEnded || s == eventsEnded }

// reachable reports whether the client can read what comes beside the answers: it does,
// or it can resume the stream.
func (st *stream) reachable() bool {
	return st.state.isEvents() || st.state == undecided && len(st.responses) > 0
}

// putMessage adds a message. id is the request that it answers, empty if it is no answer.
func (st *stream) putMessage(data []byte, id jsonrpc.ID) {
	if id != "" {
		st.open--
	}
	switch {
	case st.state.isEvents():
		st.addEvent(data, id)
	case len(st.responses) == 0 && st.number > 0: // the client has gone, and knows no event of the stream
	default:
		st.enqueue(event{data: data, answers: id})
	}
	if id == "" {
		st.beginEvents()
	}
	if st.number > 0 && st.open == 0 {
		st.markEnd()
	}
	st.signal()
}

// beginEvents makes the stream one of events, unless it cannot be one.
func (st *stream) beginEvents() {
	if st.state != undecided {
		return
	}
	st.state = eventsOpen
	st.session.streams[st.number] = st
	st.awaited = newAwaitedIDs(st.asked, st.repeats)
	queued := st.queue
	st.dropQueue()
	if primes(st.session.version) {
		st.count, st.read = 1, 1
		if len(st.responses) > 0 {
			st.primer = eventID{st.number, 1, st.awaited}
		}
	}
	for _, e := range queued {
		st.addEvent(e.data, e.answers)
	}
	st.signal()
}

// primes reports whether clients of a version take an event without data, which tells
// them the id to come back with (MCP 2025-11-25).
func primes(version string) bool { return version >= mcp.VersionNewest }

// addEvent numbers an event of a stream that has begun, stores it and queues it.
func (st *stream) addEvent(data []byte, answers jsonrpc.ID) {
	st.count++
	if answers != "" {
		st.asked = slices.DeleteFunc(st.asked, func(id jsonrpc.ID) bool { return id == answers })
		st.awaited = newAwaitedIDs(st.asked, st.repeats)
	}
	e := event{eventID{st.number, st.count, st.awaited}, data, answers}
	st.session.h.store.addEvent(st.session, e)
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
	st.dropQueue()
	st.behind = true
}

func (st *stream) enqueue(e event) {
	st.queue = append(st.queue, e)
	st.bytes += len(e.data)
	st.session.c.CountQueued(len(e.data))
}

func (st *stream) dropQueue() {
	st.session.c.CountQueued(-st.bytes)
	st.queue, st.bytes = nil, 0
}

// cutResponse ends the newest response, because another one goes on.
func (st *stream) cutResponse() {
	last := len(st.responses) - 1
	r := st.responses[last]
	r.out.End()
	r.signal()
	st.responses = st.responses[:last]
}

// markEnd notes that nothing follows what is queued and stored.
func (st *stream) markEnd() {
	switch st.state {
	case undecided, jsonAlone:
		st.state = jsonEnded
	case eventsOpen:
		st.state = eventsEnded
		st.session.noteEndLocked()
	}
	for _, r := range st.responses {
		r.signal()
	}
}

// isOver reports whether nothing follows on the stream of a POST, and nobody reads it.
func (st *stream) isOver() bool {
	return st.number > 0 && st.state.hasEnded() && len(st.responses) == 0
}

// signal wakes the response that gets the events.
func (st *stream) signal() {
	if n := len(st.responses); n > 0 {
		st.responses[n-1].signal()
	}
}

func (st *stream) attach(r *response) { st.responses = append(st.responses, r) }

// detach removes a response. The store has the events that the response has not taken.
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
	kind   stepKind
	events []event // to write
	bytes  int     // of the events, to give back once they are written
}

type stepKind uint8

const (
	stepWait       stepKind = iota // nothing: its stream is undecided
	stepLeave                      // end at once: another response goes on
	stepJSON                       // write the events, which are all answers, as JSON, and end
	stepEvents                     // write the events, if there are any, as a part of the stream
	stepLastEvents                 // write the events, and end
)

// nextStep returns what a response that has been attached is to do.
func (st *stream) nextStep(r *response) step {
	st.session.mu.Lock()
	defer st.session.mu.Unlock()
	place := slices.Index(st.responses, r)
	switch {
	case place < 0:
		return step{kind: stepLeave}
	case st.state == undecided, st.state == jsonAlone:
		return step{kind: stepWait}
	}
	n := step{kind: stepEvents}
	newest := place == len(st.responses)-1
	if newest {
		n.events, n.bytes = st.takeEvents()
	}
	switch {
	case st.state == jsonEnded:
		n.kind = stepJSON
	case st.state == eventsEnded && !(newest && st.behind):
		n.kind = stepLastEvents
	}
	return n
}

// takeEvents returns the next events for the newest response, and their bytes.
func (st *stream) takeEvents() (events []event, size int) {
	events, size = st.queue, st.bytes
	st.queue, st.bytes = nil, 0
	if st.behind {
		events, size = st.refill()
	}
	if len(events) > 0 {
		st.read = events[len(events)-1].number
	}
	return events, size
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
