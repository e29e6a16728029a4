package streamable

import (
	"bytes"
	"net/http"
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// response writes a stream as the response to one HTTP request. One goroutine runs it.
type response struct {
	h   *Handler
	out *httpanswer.Writer
	r   *http.Request
	s   *streamSession
	st  *stream

	// opening is what has become of the initialize request that has opened the session, and opens is its id.
	opening opening
	opens   jsonrpc.ID

	wake chan struct{} // has an element when there is something to do
}

// opening is what has become of the initialize request in a POST that has opened the session.
type opening uint8

const (
	opensNothing   opening = iota // the POST has none: the session was there, or another request has opened it
	opensWaiting                  // it has no answer yet
	opensConfirmed                // the server has answered it
	opensRefused                  // the answer is an error: there is no session
)

func (h *Handler) newResponse(q *request, form httpanswer.Form, s *streamSession) *response {
	return &response{h: h, out: h.answer(q, form), r: q.r, s: s, wake: make(chan struct{}, 1)}
}

func (x *response) signal() {
	select {
	case x.wake <- struct{}{}:
	default: // a signal is pending
	}
}

// writeToEnd writes the response until it is complete, another one goes on, or the client is gone. Then it
// leaves the stream, to which the response must be attached.
func (x *response) writeToEnd() {
	x.write()
	// An empty 200 would be a false answer, which a client that has half-closed would read.
	if !x.out.Written() {
		panic(http.ErrAbortHandler)
	}
}

func (x *response) write() {
	defer x.detach()
	timer := time.NewTimer(x.wait())
	defer timer.Stop()
	for {
		streams := x.out.Streams()
		if over := x.doStep(x.st.nextStep(x)); over {
			return
		}
		if !streams && x.out.Streams() {
			timer.Reset(x.wait())
		}
		select {
		case <-x.wake:
		case <-timer.C:
			if !x.waited() {
				return
			}
			timer.Reset(x.h.opts.HeartbeatInterval)
		case <-x.r.Context().Done():
			if x.opening == opensWaiting {
				x.s.c.SawLeave()
			}
			return
		}
	}
}

// wait returns how long the response may stay as it is: undecided, or without a heartbeat.
func (x *response) wait() time.Duration {
	if x.st.number == 0 || x.out.Streams() {
		return x.h.opts.HeartbeatInterval
	}
	return x.h.streamAfter
}

// doStep makes a step, and reports whether the response is over.
func (x *response) doStep(n step) bool {
	defer x.s.c.CountQueued(-n.bytes)
	if x.opening == opensWaiting {
		x.noteInitialize(n.events)
	}
	switch n.kind {
	case stepWait:
		return false
	case stepLeave:
		return true
	case stepJSON:
		x.writeJSON(n.events)
		return true
	}
	if !x.writeEvents(n.events) {
		return true
	}
	if n.kind == stepEvents {
		return false
	}
	x.s.mu.Lock()
	x.st.written = time.Now()
	x.s.mu.Unlock()
	return true
}

// waited makes the response a stream if it is not, or keeps it alive. It reports false if
// the response is over.
func (x *response) waited() bool {
	if !x.out.Streams() {
		x.becomeStream()
		return true
	}
	if x.out.Heartbeat() != nil {
		return false
	}
	x.s.c.SawWrite()
	x.s.c.SawHeartbeat()
	return true
}

// becomeStream makes the response a stream, unless its answers are there.
func (x *response) becomeStream() {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.st.beginEvents() // signals
}

// writeEvents writes events, and the head before the first ones. It reports false if the
// response is over.
func (x *response) writeEvents(events []event) bool {
	if !x.out.Streams() {
		x.beginStream()
	} else if len(events) == 0 {
		return true
	}
	for _, e := range events {
		x.out.Message(e.String(), e.data)
	}
	if x.out.Flush() != nil {
		return false
	}
	x.s.c.SawWrite()
	return true
}

// beginStream adds what comes before the first event.
func (x *response) beginStream() {
	x.s.mu.Lock()
	primer := x.st.primer
	x.st.primer = eventID{}
	x.s.mu.Unlock()
	x.out.Begin()
	if x.r.Method == http.MethodGet { // every released Java SDK ends the response to a POST at a retry
		x.out.Retry(x.h.opts.ReconnectDelay)
	}
	if primer.number > 0 {
		x.out.Message(primer.String(), nil)
	}
}

// writeJSON writes the answers as JSON: the one, or an array.
func (x *response) writeJSON(events []event) {
	body := events[0].data
	if x.st.batch {
		all := make([][]byte, len(events))
		for i, e := range events {
			all[i] = e.data
		}
		body = slices.Concat([]byte("["), bytes.Join(all, []byte(",")), []byte("]"))
	}
	_ = x.out.JSON(http.StatusOK, body) // a client that is gone needs no answer
	x.s.c.SawWrite()
}

// noteInitialize reads the answer to the initialize that has opened the session, if it is
// among the events. If that failed, there is no session.
func (x *response) noteInitialize(events []event) {
	for _, e := range events {
		m, err := jsonrpc.Parse(e.data)
		if err != nil || m.Kind != jsonrpc.Response || m.ID != x.opens {
			continue
		}
		if m.Error() != nil {
			x.opening = opensRefused
			x.out.Header().Del(headerSession)
			return
		}
		x.opening = opensConfirmed
		version, _ := rawjson.MemberText(m.Result(), "protocolVersion")
		x.s.negotiated(version)
		httpcheck.SetState(x.out.Header(), x.s.c)
		return
	}
}

// detach leaves the stream, and ends the response.
func (x *response) detach() {
	x.s.mu.Lock()
	x.st.detach(x)
	x.s.mu.Unlock()
	x.out.End()
}
