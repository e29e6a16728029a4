package streamable

import (
	"context"
	"net/http"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// serveGet is GET /mcp: the session's own stream, or the rest of one that was cut.
func (h *Handler) serveGet(q *request) *httpcheck.Refusal {
	last, refusal := h.checkGet(q)
	if refusal != nil {
		return refusal
	}
	s := h.enter(q.c)
	switch {
	case s != nil:
	case h.forward(q):
		return nil
	case last != nil && last.stream > 0 && h.isOurs(q): // it needs no session
		h.tellLost(q, *last)
		return nil
	default:
		ctx, refusal := h.Passed(q.r, q.principal)
		if refusal == nil {
			s, _, refusal = h.reopen(q, ctx)
		}
		if refusal != nil {
			return refusal
		}
	}
	defer s.releaseRequest()
	s.saw(q.version)
	x := h.newResponse(q, httpanswer.FormEvents, s)
	refusal = s.resume(x, last)
	switch {
	case refusal != nil:
	case x.st == nil:
		h.tellLost(q, *last)
	default: // the stream does not keep the head of its request
		ctx, end := context.WithCancel(q.r.Context())
		defer end()
		defer h.lease(q, s, end)()
		q.r = (&http.Request{Method: q.r.Method, ProtoMajor: q.r.ProtoMajor}).WithContext(ctx)
		x.r = q.r
		x.writeToEnd()
	}
	return refusal
}

// lease ends the response to a GET with its token. The caller must call stop when it has
// ended.
func (h *Handler) lease(q *request, s *streamSession, end func()) (stop func()) {
	credentials := h.Credentials(q.r)
	if h.opts.LeaseStream == nil || credentials == "" {
		return func() {}
	}
	return h.opts.LeaseStream(credentials, q.principal, s.c.ShortID(), end)
}

// checkGet refuses a GET that names no session, or is wrong otherwise. It returns the event
// that the client has read last, nil if the GET names none.
func (h *Handler) checkGet(q *request) (last *eventID, _ *httpcheck.Refusal) {
	if !httpcheck.AcceptOf(q.r).TakesEvents() {
		return nil, httpcheck.Refused(http.StatusNotAcceptable, metrics.RejectedBadRequest,
			"the Accept header must list text/event-stream")
	}
	if refusal := h.CheckStream(q.w, q.r); refusal != nil {
		return nil, refusal
	}
	if refusal := checkSingle(q.r); refusal != nil {
		return nil, refusal
	}
	if text := q.r.Header.Get(headerLastEventID); text != "" {
		id, ok := parseEventID(text)
		if !ok {
			return nil, noEvent()
		}
		last = &id
	}
	return last, nil
}

func noEvent() *httpcheck.Refusal {
	return httpcheck.Refused(http.StatusBadRequest, metrics.RejectedBadRequest,
		"the Last-Event-ID names no event that this session still has")
}

// resume attaches a GET to the stream that it is for: after the event that the client has
// read last, or after those that any client has. It does not attach it to the stream of a
// POST that is gone, or that the client has read to its end.
func (s *streamSession) resume(x *response, last *eventID) *httpcheck.Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == sessionOver {
		return unknownSession()
	}
	st := s.standingLocked()
	read := st.read
	if last != nil {
		known := s.streams[last.stream]
		switch {
		case known == nil && (s.earlier > 0 || last.awaited != ""):
			return nil
		case known == st && s.earlier > 0 && (last.number <= s.earlier || last.number > st.count):
			// an event of the session before: nothing of it is left
		case known == nil || last.number > known.count:
			return noEvent()
		case known.number > 0 && known.state == eventsEnded && last.number == known.count:
			return nil
		default:
			st, read = known, last.number
		}
	}
	if len(st.responses) >= maxStanding {
		return httpcheck.Refused(http.StatusConflict, metrics.RejectedBadRequest,
			"the session has %d open GETs: close one first", maxStanding)
	}
	st.read = read
	for st.number > 0 && len(st.responses) > 0 { // what this one continues is gone, or about to be
		st.cutResponse()
	}
	st.fallBehind()
	st.attach(x)
	x.st = st
	st.signal()
	return nil
}

// tellLost answers a GET for the stream of a POST that nobody has any more, because the
// process is new or has dropped it: each request that the client waits for gets an error. If
// there is none, 204 tells the client not to come back (WHATWG HTML, server-sent events).
func (h *Handler) tellLost(q *request, last eventID) {
	ids, repeats, _ := last.awaited.read()
	if len(ids) == 0 {
		q.w.WriteHeader(http.StatusNoContent)
		return
	}
	e := jsonrpc.ReasonError("the answer is lost: the gateway was started again, or the client came back too late",
		"events_lost", repeats)
	out := h.answer(q, httpanswer.FormEvents)
	for _, id := range ids {
		last.number++
		last.awaited = "" // the client must not come back for it
		out.Message(last.String(), jsonrpc.NewError(id, e))
		h.opts.Metrics.Dropped(metrics.DroppedClientGone)
	}
	_ = out.Flush() // a client that is gone needs no answer
	out.End()
}

func (h *Handler) serveDelete(q *request) *httpcheck.Refusal {
	if refusal := checkDelete(q); refusal != nil {
		return refusal
	}
	s := h.enter(q.c)
	if s == nil && h.forward(q) {
		return nil
	}
	if s == nil && !h.isOurs(q) {
		return unknownSession()
	}
	h.registry.IDs().End(q.id)
	if s != nil {
		defer s.releaseRequest()
		s.c.Close(connstate.ClosedClient)
	}
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}

// checkDelete refuses a DELETE that names no session, or is wrong otherwise.
func checkDelete(q *request) *httpcheck.Refusal {
	switch {
	case httpcheck.HasBody(q.r):
		return httpcheck.Refused(http.StatusBadRequest, metrics.RejectedBadRequest, "%v", httpcheck.ErrBody)
	case q.id == "":
		return httpcheck.Refused(http.StatusBadRequest, metrics.RejectedBadRequest,
			"a DELETE needs a session: send its id as Mcp-Session-Id")
	}
	return checkSingle(q.r)
}
