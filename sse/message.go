package sse

import (
	"errors"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// headerVersion carries the protocol version a client has negotiated.
const headerVersion = "Mcp-Protocol-Version"

// serveMessage is POST /sse/{id}/message.
func (h *Handler) serveMessage(w http.ResponseWriter, r *http.Request, id string) {
	principal, ok := h.admit(w, r, http.MethodPost)
	if !ok {
		return
	}
	c, ok := h.registry.Find(id)
	if !ok || c.Client().Principal != principal {
		h.refuseClient(w, r, http.StatusNotFound, metrics.PostUnknownConnection, "no such connection: open a new one with GET "+h.streamPath(r))
		return
	}
	body, refusal := h.readBody(w, r, c)
	defer c.ReleaseBody(body.held)
	var m *jsonrpc.Message
	if refusal == nil {
		m, refusal = parseMessage(body.bytes, c)
	}
	if refusal == nil {
		ctx, status, err := h.passed(r, principal)
		if err != nil {
			refusal = refused(status, metrics.PostBadRequest, "%v", err)
		} else {
			m.Context = ctx
		}
	}
	if refusal != nil {
		h.refuseMessage(w, r, refusal)
		return
	}
	if c.State() == connstate.Closed {
		message := "the connection is closed: open a new one with GET " + h.streamPath(r)
		h.refusals.refused(h, r, http.StatusNotFound, metrics.PostClosed, message)
		refuseRead(w, http.StatusNotFound, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s", message))
		return
	}
	c.Observe(m, r.Header.Get(headerVersion))
	c.Receive(m)
	w.WriteHeader(http.StatusAccepted)
}

// refusal is why a POST gets no 202.
type refusal struct {
	status int
	reason string
	err    *jsonrpc.Error
	unread bool // the body has not been read to its end
}

func refused(status int, reason, format string, args ...any) *refusal {
	return &refusal{status: status, reason: reason, err: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, format, args...)}
}

// busyRetry is the Retry-After of requests that are refused because of the budget.
const busyRetry = time.Second

// refusedBusy is the refusal of work for which the budget has no bytes.
func refusedBusy(err error) *refusal {
	e := jsonrpc.ReasonError(err.Error()+": try again later", "server_busy", true)
	return &refusal{status: http.StatusServiceUnavailable, reason: metrics.PostBudget, err: e}
}

func (h *Handler) refuseMessage(w http.ResponseWriter, r *http.Request, why *refusal) {
	h.opts.Metrics.PostRejected(why.reason)
	if why.unread {
		abandonBody(w, r)
	}
	if why.status == http.StatusServiceUnavailable {
		setRetryAfter(w, busyRetry)
	}
	refuseRead(w, why.status, why.err)
}

// parseMessage returns the message in a body. The connection refuses new requests
// while the budget is used up.
func parseMessage(body []byte, c *connstate.Connection) (*jsonrpc.Message, *refusal) {
	m, err := jsonrpc.Parse(body)
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		reason := metrics.PostInvalidRequest
		if e.Code == jsonrpc.CodeParseError {
			reason = metrics.PostInvalidJSON
		}
		return nil, &refusal{status: http.StatusBadRequest, reason: reason, err: e}
	}
	if m.Kind == jsonrpc.Response && m.ID == jsonrpc.Null {
		return nil, refused(http.StatusBadRequest, metrics.PostInvalidRequest, "the id of a response must not be null")
	}
	if err := c.Takes(m); err != nil {
		return nil, refusedBusy(err)
	}
	return m, nil
}

func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	t, params, err := mime.ParseMediaType(contentType)
	suffixed := strings.HasPrefix(t, "application/") && strings.HasSuffix(t, "+json")
	if err != nil || t != "application/json" && !suffixed {
		return false
	}
	charset, ok := params["charset"]
	return !ok || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8")
}
