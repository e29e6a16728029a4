package sse

import (
	"net/http"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// serveMessage is POST /sse/{id}/message.
func (h *Handler) serveMessage(w http.ResponseWriter, r *http.Request, id string) *httpcheck.Refusal {
	principal, ok := h.admit(w, r, http.MethodPost)
	if !ok {
		return nil
	}
	found, ok := h.registry.Find(id)
	if !ok && h.IsForeign(r, h.registry, id, principal) && h.forward(w, r, id, principal) {
		return nil
	}
	// The session of another transport has no stream here.
	if !ok || found.Client().Transport != connstate.TransportSSE || found.Client().Principal != principal {
		return httpcheck.Denied(http.StatusNotFound, metrics.RejectedUnknownConnection,
			"no such connection: open a new one with GET "+h.streamPath(r))
	}
	c := connstate.ForTransport{Connection: found}
	h.Renew(c, r)
	if refusal := h.CheckNarrow(found, r); refusal != nil {
		return refusal
	}
	body, refusal := h.ReadBody(w, r, c.Sender().ReserveBody)
	defer c.Sender().ReleaseBody(body.Held)
	var m *jsonrpc.Message
	if refusal == nil {
		m, refusal = h.parse(r, body.Bytes, c)
	}
	if refusal != nil {
		return refusal
	}
	select {
	case <-c.Done():
		return httpcheck.Denied(http.StatusNotFound, metrics.PostClosed,
			"the connection is closed: open a new one with GET "+h.streamPath(r))
	default:
	}
	if m.Kind == jsonrpc.Request {
		left, ok := c.Arrive(m)
		if !ok { // on the stream the client would take an error for the answer to the first
			return httpcheck.Refused(http.StatusBadRequest, metrics.PostInvalidRequest,
				"a request with this id is in flight: use another one")
		}
		defer left()
	}
	c.SetCredentials(m, h.Credentials(r))
	c.SetParent(m, r.Header)
	c.Observe(m, r.Header.Get(httpcheck.HeaderVersion))
	c.Receive(m)
	httpcheck.SetState(w.Header(), c)
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// forward sends a message to the replica that holds its connection. It reports false, and
// writes nothing, if this replica has to answer.
func (h *Handler) forward(w http.ResponseWriter, r *http.Request, id, principal string) bool {
	sender := h.registry.Sender(principal, h.ClientAddr(r))
	body, refusal := h.ReadBody(w, r, sender.ReserveBody)
	defer sender.ReleaseBody(body.Held)
	if refusal != nil {
		h.RefuseMessage(w, r, refusal)
		return true
	}
	return h.Forward(w, r, httpcheck.Forward{ID: id, Principal: principal, Body: body.Bytes})
}

// parse returns the message in a body. The connection refuses new requests while the
// budget is used up.
func (h *Handler) parse(r *http.Request, body []byte, c connstate.ForTransport) (*jsonrpc.Message, *httpcheck.Refusal) {
	m, refusal := httpcheck.ParseMessage(body)
	if refusal != nil {
		return nil, refusal
	}
	if err := c.CheckBudget(m); err != nil {
		return nil, httpcheck.RefusedBusy(err)
	}
	m.Context, refusal = h.Passed(r, c.Client().Principal)
	return m, refusal
}
