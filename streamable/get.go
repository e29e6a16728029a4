package streamable

import (
	"net/http"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/internal/eventstream"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// serveGet is GET /mcp: the session's own stream, or the rest of one that was cut.
func (h *Handler) serveGet(w http.ResponseWriter, r *http.Request, principal string) {
	last, refusal := h.checkGet(w, r)
	if refusal != nil {
		h.RefuseMessage(w, r, refusal)
		return
	}
	id := r.Header.Get(headerSession)
	s := h.find(id, principal)
	switch {
	case s != nil:
	case last != nil && last.stream > 0 && h.isOurs(id, principal): // it needs no session
		h.tellLost(w, r, *last)
		return
	default:
		ctx, status, err := h.Passed(r, principal)
		if err != nil {
			h.RefuseMessage(w, r, front.Refused(status, metrics.RejectedBadRequest, "%v", err))
			return
		}
		if s, _ = h.reopen(w, r, principal, id, ctx); s == nil {
			return
		}
	}
	defer s.leave()
	s.saw(r.Header.Get(front.HeaderVersion))
	x := h.newResponse(w, r, s)
	switch refusal := s.resume(x, last); {
	case refusal != nil:
		h.RefuseMessage(w, r, refusal)
	case x.st == nil:
		h.tellLost(w, r, *last)
	default:
		x.run()
	}
}

// checkGet refuses a GET that names no session, or is wrong otherwise. It returns the event
// that the client has read last, nil if the GET names none.
func (h *Handler) checkGet(w http.ResponseWriter, r *http.Request) (last *eventID, _ *front.Refusal) {
	events, _ := accepts(r, "text", "event-stream")
	switch {
	case events == 0:
		return nil, front.Refused(http.StatusNotAcceptable, metrics.RejectedBadRequest, "the Accept header must list text/event-stream")
	case front.HasBody(r):
		return nil, front.Refused(http.StatusBadRequest, metrics.RejectedBadRequest, "%v", front.ErrBody)
	case !front.CanFlush(w):
		h.Limited().Error("stream impossible: a middleware hides http.Flusher and has no Unwrap method")
		return nil, front.Refused(http.StatusInternalServerError, metrics.RejectedBadRequest, "streaming is not possible here: a middleware hides http.Flusher; give its ResponseWriter an Unwrap method")
	}
	if refusal := checkSingle(r); refusal != nil {
		return nil, refusal
	}
	if text := r.Header.Get(headerLastEventID); text != "" {
		id, ok := parseEventID(text)
		if !ok {
			return nil, noEvent()
		}
		last = &id
	}
	return last, checkVersion(r.Header.Get(front.HeaderVersion))
}

func noEvent() *front.Refusal {
	return front.Refused(http.StatusBadRequest, metrics.RejectedBadRequest, "the Last-Event-ID names no event that this session still has")
}

// resume attaches a GET to the stream that it is for: after the event that the client has
// read last, or after those that any client has. It does not attach it to the stream of a
// POST that is gone, or of which the client has all.
func (s *session) resume(x *response, last *eventID) *front.Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return front.Refused(http.StatusNotFound, metrics.RejectedUnknownConnection, "%s", unknownSession)
	}
	st := s.standingLocked()
	read := st.read
	if last != nil {
		known := s.streams[last.stream]
		switch {
		case known == nil && (s.earlier > 0 || last.waits != ""):
			return nil
		case known == st && s.earlier > 0 && (last.number <= s.earlier || last.number > st.count):
			// an event of the session before, of which nothing is left
		case known == nil || last.number > known.count:
			return noEvent()
		case known.number > 0 && known.ended && last.number == known.count:
			return nil
		default:
			st, read = known, last.number
		}
	}
	if len(st.responses) >= maxStanding {
		return front.Refused(http.StatusConflict, metrics.RejectedBadRequest, "the session has %d open GETs: close one first", maxStanding)
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
func (h *Handler) tellLost(w http.ResponseWriter, r *http.Request, last eventID) {
	ids, repeats, _ := last.waits.read()
	if len(ids) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	e := jsonrpc.ReasonError("the answer is lost: the gateway was started again, or the client came back too late", "events_lost", repeats)
	events := eventstream.NewWriter(w, r, h.opts.WriteTimeout)
	events.Begin()
	for _, id := range ids {
		last.number++
		last.waits = "" // the client must not come back for it
		events.Message(last.String(), jsonrpc.NewError(id, e))
		h.opts.Metrics.Dropped(metrics.DroppedClientGone)
	}
	_, _ = events.Flush() // a client that is gone needs no answer
	events.Expire()
}

func (h *Handler) serveDelete(w http.ResponseWriter, r *http.Request, principal string) {
	if refusal := checkDelete(r); refusal != nil {
		h.RefuseMessage(w, r, refusal)
		return
	}
	id := r.Header.Get(headerSession)
	s := h.find(id, principal)
	if s == nil && !h.isOurs(id, principal) {
		h.refuseUnknown(w, r)
		return
	}
	h.registry.End(id)
	if s != nil {
		defer s.leave()
		s.c.Close(connstate.ClosedClient)
	}
	w.WriteHeader(http.StatusNoContent)
}

// checkDelete refuses a DELETE that names no session, or is wrong otherwise.
func checkDelete(r *http.Request) *front.Refusal {
	switch {
	case front.HasBody(r):
		return front.Refused(http.StatusBadRequest, metrics.RejectedBadRequest, "%v", front.ErrBody)
	case r.Header.Get(headerSession) == "":
		return front.Refused(http.StatusBadRequest, metrics.RejectedBadRequest, "a DELETE needs a session: send its id as Mcp-Session-Id")
	}
	if refusal := checkSingle(r); refusal != nil {
		return refusal
	}
	return checkVersion(r.Header.Get(front.HeaderVersion))
}
