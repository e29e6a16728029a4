package streamable

import (
	"net/http"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// serveGet is GET /mcp: the session's own stream, or the rest of one that was cut.
func (h *Handler) serveGet(w http.ResponseWriter, r *http.Request, principal string) {
	s, refusal := h.sessionOfGet(w, r, principal)
	if s == nil {
		if refusal != nil {
			h.RefuseMessage(w, r, refusal)
		}
		return
	}
	defer s.leave()
	s.saw(r.Header.Get(front.HeaderVersion))
	x := h.newResponse(w, r, s)
	if refusal := s.resume(x, r.Header.Get(headerLastEventID)); refusal != nil {
		h.RefuseMessage(w, r, refusal)
		return
	}
	x.run()
}

// sessionOfGet checks a GET and returns its session. Without a session and a refusal the
// GET has been answered.
func (h *Handler) sessionOfGet(w http.ResponseWriter, r *http.Request, principal string) (*session, *front.Refusal) {
	id := r.Header.Get(headerSession)
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
	if refusal := checkVersion(r.Header.Get(front.HeaderVersion)); refusal != nil {
		return nil, refusal
	}
	s := h.find(id, principal)
	switch {
	case s != nil:
		return s, nil
	case !h.opts.AdoptSessions:
		h.refuseUnknown(w, r)
		return nil, nil
	}
	ctx, status, err := h.Passed(r, principal)
	if err != nil {
		return nil, front.Refused(status, metrics.RejectedBadRequest, "%v", err)
	}
	s, _ = h.adopt(w, r, principal, id, ctx)
	return s, nil
}

// resume attaches a GET to the stream that it is for: after the event whose id the client
// has read last, or after those that any client has.
func (s *session) resume(x *response, lastEventID string) *front.Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return front.Refused(http.StatusNotFound, metrics.RejectedUnknownConnection, "%s", unknownSession)
	}
	st := s.standingLocked()
	if lastEventID != "" {
		id, ok := parseEventID(lastEventID)
		if s.adopted && (s.streams[id.stream] == nil || id.number > s.streams[id.stream].count) {
			id = eventID{number: st.read} // of the session before, whose events are gone
		}
		if st = s.streams[id.stream]; !ok || st == nil || id.number > st.count {
			return front.Refused(http.StatusBadRequest, metrics.RejectedBadRequest, "the Last-Event-ID names no event that this session still has")
		}
		st.read = id.number
	}
	if len(st.responses) >= maxStanding {
		return front.Refused(http.StatusConflict, metrics.RejectedBadRequest, "the session has %d open GETs: close one first", maxStanding)
	}
	for st.number > 0 && len(st.responses) > 0 { // what this one continues is gone, or about to be
		st.cutResponse()
	}
	st.fallBehind()
	st.attach(x)
	x.st = st
	st.signal()
	return nil
}

func (h *Handler) serveDelete(w http.ResponseWriter, r *http.Request, principal string) {
	if refusal := checkDelete(r); refusal != nil {
		h.RefuseMessage(w, r, refusal)
		return
	}
	s := h.find(r.Header.Get(headerSession), principal)
	if s == nil {
		h.refuseUnknown(w, r)
		return
	}
	defer s.leave()
	s.c.Close(connstate.ClosedClient)
	w.WriteHeader(http.StatusNoContent)
}

// checkDelete refuses a DELETE that names no session, or is wrong otherwise.
func checkDelete(r *http.Request) *front.Refusal {
	switch {
	case front.HasBody(r):
		return front.Refused(http.StatusBadRequest, metrics.RejectedBadRequest, "a DELETE must not have a body")
	case r.Header.Get(headerSession) == "":
		return front.Refused(http.StatusBadRequest, metrics.RejectedBadRequest, "a DELETE needs a session: send its id as Mcp-Session-Id")
	}
	if refusal := checkSingle(r); refusal != nil {
		return refusal
	}
	return checkVersion(r.Header.Get(front.HeaderVersion))
}
