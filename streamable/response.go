package streamable

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/internal/eventstream"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// heartbeat is the text of the comments that keep a stream alive.
const heartbeat = "heartbeat"

// exchange is one HTTP request and the response to it, which writes a stream.
type exchange struct {
	h  *Handler
	w  http.ResponseWriter
	r  *http.Request
	s  *session
	st *stream
	p  *post // nil: it is no POST

	out    *response
	events *eventstream.Writer // nil until the response is a stream
	// opens is the initialize request that has opened the session; empty if none has.
	opens  jsonrpc.ID
	failed bool // it failed

	// Guarded by the session's mu:
	taking   bool             // the goroutine of the request may take the handling of it
	handling jsonrpc.Handling // what it has taken
	returned bool             // the handler has returned
	relieved bool             // another goroutine writes the response, or has done so

	relief sync.WaitGroup // that goroutine
	// That goroutine sets these; after its end, the goroutine of the request reads them.
	panicked any  // what has ended it; nil: nothing
	ended    bool // the response has been taken from net/http
}

// run writes the response until it is complete, is cut, or the client is gone. Then it
// leaves the stream, to which the response must be attached.
func (x *exchange) run() {
	defer x.detach()
	if over := x.do(x.st.next(x.out)); over {
		return
	}
	streams := x.events != nil
	timer := time.NewTimer(x.wait())
	defer timer.Stop()
	for {
		select {
		case <-x.out.wake:
		case <-timer.C:
			if !x.waited() {
				return
			}
			timer.Reset(x.h.heartbeats())
		case <-x.r.Context().Done():
			return
		}
		if over := x.do(x.st.next(x.out)); over {
			return
		}
		if !streams && x.events != nil {
			streams = true
			timer.Reset(x.wait())
		}
	}
}

// wait returns how long the response may stay as it is: undecided, or without a heartbeat.
func (x *exchange) wait() time.Duration {
	if x.h.opts.StreamAfter < 0 || x.st.number == 0 || x.events != nil {
		return x.h.heartbeats()
	}
	return x.h.opts.StreamAfter
}

// do makes a step, and reports whether the response is over.
func (x *exchange) do(n step) bool {
	defer x.s.c.HoldQueued(-n.bytes)
	if x.opens != "" {
		x.noteInitialize(n.events)
	}
	switch {
	case n.cut:
		return true
	case n.json:
		x.writeJSON(n.events)
		return true
	case !n.begun:
		return false
	}
	if !x.writeEvents(n.events) {
		return true
	}
	if n.ended {
		x.s.mu.Lock()
		x.st.done = true
		x.s.mu.Unlock()
	}
	return n.ended
}

// waited makes the response a stream if it is not, or keeps it alive. It reports false if
// the response is over.
func (x *exchange) waited() bool {
	if x.events == nil {
		x.becomeStream()
		return true
	}
	x.events.Comment(heartbeat)
	if !x.flush() {
		return false
	}
	x.s.c.SawHeartbeat()
	return true
}

// becomeStream makes the response a stream, unless its answers are there.
func (x *exchange) becomeStream() {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.st.begin() // signals
}

// writeEvents writes events, and the head before the first ones. It reports false if the
// response is over.
func (x *exchange) writeEvents(events []StoredEvent) bool {
	if x.events == nil {
		x.events = eventstream.NewWriter(x.w, x.r, x.h.opts.WriteTimeout)
		x.s.mu.Lock()
		x.out.expire = x.events.Expire
		x.s.mu.Unlock()
		x.events.Begin()
		if x.st.primed && x.r.Method == http.MethodPost {
			x.events.Retry(x.h.opts.ReconnectDelay)
			x.events.Message(EventID{x.st.number, 1}.String(), nil)
		}
	} else if len(events) == 0 {
		return true
	}
	for _, e := range events {
		x.events.Message(e.String(), e.Data)
	}
	return x.flush()
}

// flush writes what was added. It reports false if the response is over.
func (x *exchange) flush() bool {
	if _, err := x.events.Flush(); err != nil {
		return false
	}
	x.s.c.SawWrite()
	return true
}

// chunk is the length from which an answer is written with a deadline, in bytes: a
// shorter one fits into the buffers on the way.
const chunk = 16 << 10

// writeJSON writes the answers as JSON.
func (x *exchange) writeJSON(events []StoredEvent) {
	body := answers(events, x.st.batch)
	header := x.w.Header()
	header["Content-Type"] = jsonType
	header["Cache-Control"] = notStored
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	if x.relieved {
		header["Connection"] = closed // until the handler returns, nobody reads from it
	}
	x.w.WriteHeader(http.StatusOK)
	if len(body) < chunk && x.h.opts.StreamAfter > 0 && !x.st.json { // soon after the request, within the server's own deadline
		_, _ = x.w.Write(body) // a client that is gone needs no answer
	} else {
		_, _ = front.WriteAll(x.w, x.r, body, x.h.opts.WriteTimeout)
	}
	x.s.c.SawWrite()
}

// Values of headers, so that no answer makes them anew.
var (
	jsonType  = []string{"application/json"}
	notStored = []string{"no-store"}
	closed    = []string{"close"}
)

// answers returns the body of a response: the one answer, or an array.
func answers(events []StoredEvent, batch bool) []byte {
	if !batch {
		return events[0].Data
	}
	body := []byte{'['}
	for i, e := range events {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, e.Data...)
	}
	return append(body, ']')
}

// noteInitialize reads the answer to the initialize that has opened the session, if it is
// among the events. If that failed, there is no session.
func (x *exchange) noteInitialize(events []StoredEvent) {
	for _, e := range events {
		m, err := jsonrpc.Parse(e.Data)
		if err != nil || m.Kind != jsonrpc.Response || m.ID != x.opens {
			continue
		}
		if m.Error() != nil {
			x.failed = true
			x.w.Header().Del(headerSession)
			return
		}
		raw, _ := jsonrpc.Member(m.Result(), "protocolVersion")
		version, _ := jsonrpc.Text(raw)
		x.s.negotiated(version)
	}
}

// detach leaves the stream, and ends the response.
func (x *exchange) detach() {
	x.s.mu.Lock()
	x.st.detach(x.out)
	x.s.mu.Unlock()
	if x.events != nil {
		x.events.Expire() // gives net/http the time of one write to end the body in order
	}
}
