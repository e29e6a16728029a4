package streamable

import (
	"github.com/mcp-sse/mcp-sse/internal/mcp"
)

// stream is what goes out for one POST, or for the session itself. It is undecided until
// begin: if its answers come first and at once, they are the response, as JSON. Otherwise
// it is a stream of numbered events, which the client can resume. Its session's mu guards
// it.
type stream struct {
	session *session
	number  int64
	open    int  // requests of the POST without an answer
	batch   bool // the POST was an array

	begun bool  // it is a stream of events
	ended bool  // nothing follows what is queued
	count int64 // events, once begun
	read  int64 // events that a response has taken, or that came before it

	queue []StoredEvent // for the response; the numbers are set by begin
	bytes int           // of queue
	// responses write the stream, the newest last, which gets the events. Only the
	// session's own stream has several.
	responses []*response

	event  [1]StoredEvent // room for the first of queue
	writer [1]*response   // room for the first of responses
}

// response writes a stream as the response to one HTTP request.
type response struct {
	wake chan struct{} // has an element when there is something to do
	cut  bool          // another response goes on, or the client did not read
}

func (r *response) signal() {
	select {
	case r.wake <- struct{}{}:
	default: // a signal is pending
	}
}

// reachable reports whether the client can read what comes: it does, or it can resume
// the stream.
func (st *stream) reachable() bool { return len(st.responses) > 0 || st.begun }

// put adds a message.
func (st *stream) put(data []byte, answer bool) {
	if answer {
		st.open--
	}
	switch {
	case st.begun:
		st.add(data)
	case len(st.responses) == 0 && st.number > 0: // the client has gone, and knows no event of the stream
	default:
		st.hold(StoredEvent{Data: data})
	}
	if !st.begun && !answer {
		st.begin()
	}
	if st.number > 0 && st.open == 0 {
		st.end()
	}
	st.signal()
}

// begin makes the stream one of events.
func (st *stream) begin() {
	if st.begun || st.ended {
		return
	}
	st.begun = true
	st.session.addStreamLocked(st)
	queued := st.queue
	st.release()
	if primes(st.session.version) {
		st.add(nil)
	}
	for _, e := range queued {
		st.add(e.Data)
	}
	st.signal()
}

// primes reports whether clients of a version take an event without data, which tells
// them the id to come back with (MCP 2025-11-25).
func primes(version string) bool { return version >= mcp.VersionNewest }

// add numbers an event of a stream that has begun, stores it and queues it.
func (st *stream) add(data []byte) {
	st.count++
	e := StoredEvent{EventID{st.number, st.count}, data}
	if len(data) > 0 {
		st.session.h.opts.Store.Append(st.session.c.ID(), e)
	}
	if len(st.responses) == 0 {
		return
	}
	if st.bytes > 0 && st.bytes+len(data) > st.session.h.opts.MaxQueuedBytes {
		st.cutResponse()
		return
	}
	st.hold(e)
}

// hold queues an event.
func (st *stream) hold(e StoredEvent) {
	st.queue = append(st.queue, e)
	st.bytes += len(e.Data)
	st.session.c.HoldQueued(len(e.Data))
}

// release empties the queue.
func (st *stream) release() {
	st.session.c.HoldQueued(-st.bytes)
	st.queue, st.bytes = nil, 0
}

// cutResponse ends the newest response, whose client does not read; the client can come
// back for the rest.
func (st *stream) cutResponse() {
	st.release()
	last := len(st.responses) - 1
	st.responses[last].cut = true
	st.responses[last].signal()
	st.responses = st.responses[:last]
}

// end says that nothing follows.
func (st *stream) end() {
	st.ended = true
	for _, r := range st.responses {
		r.signal()
	}
}

// signal wakes the response that gets the events.
func (st *stream) signal() {
	if n := len(st.responses); n > 0 {
		st.responses[n-1].signal()
	}
}

// attach makes r the response that gets the events.
func (st *stream) attach(r *response) { st.responses = append(st.responses, r) }

// detach removes a response.
func (st *stream) detach(r *response) {
	for i, other := range st.responses {
		if other == r {
			newest := i == len(st.responses)-1
			st.responses = append(st.responses[:i:i], st.responses[i+1:]...)
			if newest {
				st.release() // what it has not taken is in the store
			}
			return
		}
	}
}

// step is what a response is to do next.
type step struct {
	events []StoredEvent // to write
	json   bool          // the events are answers, and all of the response
	begun  bool          // the response is a stream of events
	ended  bool          // with these events, the response is over
	cut    bool          // the response is over at once
	bytes  int           // of the events, to give back once they are written
}

// next takes what r is to do.
func (st *stream) next(r *response) (n step) {
	st.session.mu.Lock()
	defer st.session.mu.Unlock()
	switch {
	case r.cut:
		return step{cut: true}
	case !st.begun:
		if !st.ended {
			return step{}
		}
		n = step{events: st.queue, json: true, ended: true}
	case len(st.responses) == 0 || st.responses[len(st.responses)-1] != r:
		return step{begun: true, ended: st.ended}
	default:
		n = step{events: st.queue, begun: true, ended: st.ended}
	}
	if len(n.events) > 0 {
		st.read = n.events[len(n.events)-1].Number
	}
	n.bytes, st.queue, st.bytes = st.bytes, nil, 0
	return n
}
