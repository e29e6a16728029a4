package sse

import (
	"errors"
	"fmt"
	"io"
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
	m, refusal := h.readMessage(w, r)
	if refusal != nil {
		h.opts.Metrics.PostRejected(refusal.reason)
		if !refusal.read {
			abandonBody(w, r)
		}
		refuseRead(w, refusal.status, refusal.err)
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
	read   bool // the body has been read
}

func refused(status int, reason, format string, args ...any) *refusal {
	return &refusal{status: status, reason: reason, err: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, format, args...)}
}

func (h *Handler) readMessage(w http.ResponseWriter, r *http.Request) (*jsonrpc.Message, *refusal) {
	if t := r.Header.Get("Content-Type"); !isJSON(t) {
		return nil, refused(http.StatusUnsupportedMediaType, metrics.PostMediaType, "the Content-Type must be application/json")
	}
	if r.Header.Get("Content-Encoding") != "" {
		return nil, refused(http.StatusUnsupportedMediaType, metrics.PostMediaType, "the body must not have a Content-Encoding")
	}
	body, err := h.readBody(w, r)
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, refused(http.StatusRequestEntityTooLarge, metrics.PostTooLarge,
				"the message is over %d bytes", h.opts.MaxMessageBytes)
		}
		return nil, refused(http.StatusBadRequest, metrics.PostBadRequest, "the body could not be read to its end")
	}
	m, err := jsonrpc.Parse(body)
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		reason := metrics.PostInvalidRequest
		if e.Code == jsonrpc.CodeParseError {
			reason = metrics.PostInvalidJSON
		}
		return nil, &refusal{http.StatusBadRequest, reason, e, true}
	}
	if m.Kind == jsonrpc.Response && m.ID == jsonrpc.Null {
		refusal := refused(http.StatusBadRequest, metrics.PostInvalidRequest, "the id of a response must not be null")
		refusal.read = true
		return nil, refusal
	}
	return m, nil
}

// readBody reads a body of at most MaxMessageBytes, within ReadTimeout.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	limit := h.opts.MaxMessageBytes
	if r.ContentLength > limit {
		return nil, &http.MaxBytesError{Limit: limit}
	}
	// Not every ResponseWriter has deadlines; without one the server's own count.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.opts.ReadTimeout))
	if n := r.ContentLength; n >= 0 && n <= 64<<10 {
		body := make([]byte, n)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			return nil, fmt.Errorf("read body: %w", err)
		}
		return body, nil
	}
	return io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
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
