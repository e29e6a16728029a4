package streamable

import (
	"net/http"

	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// serveGet is GET /mcp: the session's own stream, or the rest of one that was cut.
func (h *Handler) serveGet(w http.ResponseWriter, r *http.Request, principal string) {
	s, refusal := h.sessionOfGet(w, r, principal)
	if s == nil {
		if refusal != nil {
			h.refuse(w, r, refusal)
		}
		return
	}
	defer s.leave()
	s.saw(r.Header.Get(front.HeaderVersion))
	x := h.newExchange(w, r, s)
	events, refusal := s.resume(x, r.Header.Get(headerLastEventID))
	if refusal != nil {
		h.refuse(w, r, refusal)
		return
	}
	if x.writeEvents(events) {
		x.run()
	} else {
		x.detach()
	}
	x.release()
}

// sessionOfGet checks a GET and returns its session. Without a session and a refusal the
// GET has been answered.
func (h *Handler) sessionOfGet(w http.ResponseWriter, r *http.Request, principal string) (*session, *front.Refusal) {
	id := r.Header.Get(headerSession)
	switch {
	case accepts(r, "text", "event-stream").weight == 0:
		return nil, front.Refused(http.StatusNotAcceptable, metrics.RejectedBadRequest, "the Accept header must list text/event-stream")
	case front.HasBody(r):
		return nil, front.Refused(http.StatusBadRequest, metrics.RejectedBadRequest, "%v", front.ErrBody)
	case id == "":
		return nil, front.Refused(http.StatusBadRequest, metrics.RejectedBadRequest, "a GET needs a session: send its id as Mcp-Session-Id; a client of HTTP+SSE uses another path, /sse")
	case !front.CanFlush(w):
		h.Limited().Error("stream impossible: a middleware hides http.Flusher and has no Unwrap method")
		return nil, front.Refused(http.StatusInternalServerError, metrics.RejectedBadRequest, "streaming is not possible here: a middleware hides http.Flusher; give its ResponseWriter an Unwrap method")
	}
	if refusal := checkVersion(r.Header.Get(front.HeaderVersion)); refusal != nil {
		return nil, refusal
	}
	s := h.find(id, principal)
	if s == nil {
		h.refuseUnknown(w, r)
	}
	return s, nil
}

// refuse answers a request that is not a POST, and counts it.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, why *front.Refusal) {
	h.opts.Metrics.ConnectionRejected(metrics.RejectedBadRequest)
	front.AbandonBody(w, r)
	front.RejectRead(w, why.Status, why.Err)
}

// resume attaches a GET to the stream that it is for, and returns the events that come
// first: those after the event whose id the client has read last, or those that nobody
// has.
func (s *session) resume(x *exchange, lastEventID string) ([]StoredEvent, *front.Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var after EventID
	if lastEventID != "" {
		id, ok := parseEventID(lastEventID)
		if x.st = s.streams[id.Stream]; !ok || x.st == nil || id.Number > x.st.count {
			return nil, front.Refused(http.StatusBadRequest, metrics.RejectedBadRequest, "the Last-Event-ID names no event that this session still has")
		}
		after = id
	} else {
		x.st = s.standingLocked()
		after.Number = x.st.read
	}
	if x.st.number > 0 { // the response that it continues is gone, or about to be
		for len(x.st.responses) > 0 {
			x.st.cutResponse()
		}
	}
	if len(x.st.responses) >= maxStanding {
		return nil, front.Refused(http.StatusConflict, metrics.RejectedBadRequest, "the session has %d open GETs: close one first", maxStanding)
	}
	x.st.attach(&x.out)
	events := s.h.opts.Store.After(s.c.ID(), after)
	x.st.read = x.st.count
	if missed := x.st.count - after.Number; missed > int64(len(events)) {
		s.h.opts.Metrics.Dropped(metrics.DroppedClientGone)
	}
	return events, nil
}

// serveDelete is DELETE /mcp: it ends the session.
func (h *Handler) serveDelete(w http.ResponseWriter, r *http.Request, principal string) {
	id := r.Header.Get(headerSession)
	if id == "" {
		h.refuse(w, r, noSession("a DELETE needs a session: send its id as Mcp-Session-Id"))
		return
	}
	s := h.find(id, principal)
	if s == nil {
		h.refuseUnknown(w, r)
		return
	}
	defer s.leave()
	s.c.Close(metrics.ClosedClient)
	w.WriteHeader(http.StatusNoContent)
}
