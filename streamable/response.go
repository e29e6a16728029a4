package streamable

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/eventstream"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// response writes a stream as the response to one HTTP request. One goroutine runs it.
type response struct {
	h  *Handler
	w  http.ResponseWriter
	r  *http.Request
	s  *session
	st *stream

	// opens is the initialize request that has opened the session; empty if none has.
	opens    jsonrpc.ID
	answered bool // it has its answer
	failed   bool // it failed

	written bool // as JSON

	wake   chan struct{}       // has an element when there is something to do
	cut    bool                // another response goes on; guarded by session.mu
	events *eventstream.Writer // nil until the response is a stream; set under session.mu
}

func (h *Handler) newResponse(q *request, s *session) *response {
	return &response{h: h, w: q.w, r: q.r, s: s, wake: make(chan struct{}, 1)}
}

func (x *response) signal() {
	select {
	case x.wake <- struct{}{}:
	default: // a signal is pending
	}
}

// run writes the response until it is complete, is cut, or the client is gone. Then it
// leaves the stream, to which the response must be attached.
func (x *response) run() {
	x.write()
	// An empty 200 would be a false answer, which a client that has half-closed would read.
	if x.events == nil && !x.written {
		panic(http.ErrAbortHandler)
	}
}

func (x *response) write() {
	defer x.detach()
	timer := time.NewTimer(x.wait())
	defer timer.Stop()
	for {
		streams := x.events != nil
		if over := x.do(x.st.next(x)); over {
			return
		}
		if !streams && x.events != nil {
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
			if x.opens != "" && !x.answered {
				x.s.c.SawLeave()
			}
			return
		}
	}
}

// wait returns how long the response may stay as it is: undecided, or without a heartbeat.
func (x *response) wait() time.Duration {
	if x.st.number == 0 || x.events != nil {
		return x.h.opts.HeartbeatInterval
	}
	return x.h.streamAfter
}

// do makes a step, and reports whether the response is over.
func (x *response) do(n step) bool {
	defer x.s.c.CountQueued(-n.bytes)
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
		x.st.written = time.Now()
		x.s.mu.Unlock()
	}
	return n.ended
}

// waited makes the response a stream if it is not, or keeps it alive. It reports false if
// the response is over.
func (x *response) waited() bool {
	if x.events == nil {
		x.becomeStream()
		return true
	}
	x.events.Comment("heartbeat")
	if !x.flush() {
		return false
	}
	x.s.c.SawHeartbeat()
	return true
}

// becomeStream makes the response a stream, unless its answers are there.
func (x *response) becomeStream() {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.st.begin() // signals
}

// writeEvents writes events, and the head before the first ones. It reports false if the
// response is over.
func (x *response) writeEvents(events []event) bool {
	if x.events == nil {
		x.s.mu.Lock()
		x.events = eventstream.NewWriter(x.w, x.r, x.h.opts.WriteTimeout)
		primer := x.st.primer
		x.st.primer = eventID{}
		x.s.mu.Unlock()
		x.events.Begin()
		if x.r.Method == http.MethodGet { // every released Java SDK ends the response to a POST at a retry
			x.events.Retry(x.h.opts.ReconnectDelay)
		}
		if primer.number > 0 {
			x.events.Message(primer.String(), nil)
		}
	} else if len(events) == 0 {
		return true
	}
	for _, e := range events {
		x.events.Message(e.String(), e.data)
	}
	return x.flush()
}

// flush writes what was added. It reports false if the response is over.
func (x *response) flush() bool {
	if x.events.Flush() != nil {
		return false
	}
	x.s.c.SawWrite()
	return true
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
	header := x.w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	x.w.WriteHeader(http.StatusOK)
	x.written = true
	_ = httpcheck.WriteAll(x.w, x.r, body, x.h.opts.WriteTimeout) // a client that is gone needs no answer
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
		x.answered = true
		if m.Error() != nil {
			x.failed = true
			x.w.Header().Del(headerSession)
			return
		}
		version, _ := jsonrpc.MemberText(m.Result(), "protocolVersion")
		x.s.negotiated(version)
		httpcheck.SetState(x.w.Header(), x.s.c)
	}
}

// detach leaves the stream, and ends the response.
func (x *response) detach() {
	x.s.mu.Lock()
	x.st.detach(x)
	x.s.mu.Unlock()
	if x.events != nil {
		x.events.Expire() // gives net/http the time of one write to end the body in order
	}
}
