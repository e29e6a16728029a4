package sse

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/clip"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// serveStream is GET /sse. Its goroutine writes the stream until the end.
//
// Its stack lives as long as the stream, for each of many idle clients. So the work
// of the beginning and of the end is in functions that return, and nothing uses the
// request after the stream, which would keep its head.
func (h *Handler) serveStream(w http.ResponseWriter, r *http.Request) {
	c, refusal := h.open(w, r)
	if refusal != nil {
		h.RefuseMessage(w, r, refusal)
	}
	if c.Connection == nil {
		return
	}
	defer h.endConnection(c)
	stop := h.startConnection(w, r, c)
	defer stop()
	h.engine.serve(w, r, c, h.endpoint(r, c.ID()))
	c.Close(connstate.ClosedClient)
}

// open returns a connection for the client, or why there is none; neither if the request has
// been answered.
func (h *Handler) open(w http.ResponseWriter, r *http.Request) (connstate.ForTransport, *httpcheck.Refusal) {
	principal, ok := h.admit(w, r, http.MethodGet)
	if !ok {
		return connstate.ForTransport{}, nil
	}
	client, refusal := h.client(r, principal)
	if refusal == nil {
		refusal = h.CheckStream(w, r)
	}
	if refusal == nil {
		client.Context, refusal = h.Passed(r, principal)
	}
	if refusal != nil {
		return connstate.ForTransport{}, refusal
	}
	return h.Open(h.registry, client, "", nil)
}

// startConnection starts the backend of a connection, and its timers, which the returned
// function stops.
func (h *Handler) startConnection(w http.ResponseWriter, r *http.Request, c connstate.ForTransport) (stop func()) {
	// The server's own deadlines are for requests that end. Not every
	// ResponseWriter has deadlines; then there are none to lift.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	_ = r.Body.Close() // HTTP/2 would keep what comes of a body that has no announced length
	if version := r.Header.Get(httpcheck.HeaderVersion); version != "" {
		c.SawVersion(clip.Long(version))
	}
	if !c.Client().Quiet {
		data := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/connection","params":`+
			`{"connectionId":%q,"state":%q,"heartbeatSeconds":%g}}`,
			c.ID(), c.State(), max(0, h.opts.HeartbeatInterval.Seconds()))
		_ = c.Push(connstate.Event{ // the outbox is empty: there is room
			Name: connstate.EventConnection, Data: data, Retry: int(h.opts.ReconnectDelay.Milliseconds()),
		})
	}
	c.Bind(h.backend.Accept(c.Connection))
	return h.keepAlive(c)
}

func (h *Handler) endConnection(c connstate.ForTransport) {
	c.Close(connstate.ClosedError) // only counts when something has panicked
	h.registry.Remove(c.Connection)
	h.LogClosed(c.Connection)
}

// client reads what the GET says about the client. It ignores query parameters that
// are not ours.
func (h *Handler) client(r *http.Request, principal string) (connstate.Client, *httpcheck.Refusal) {
	query := r.URL.Query()
	client := h.Client(r, principal, connstate.TransportSSE)
	var refusal *httpcheck.Refusal
	if client.Narrow, refusal = h.Narrow(r); refusal != nil {
		return client, refusal
	}
	program, _ := clients.Named(clients.Product(r.UserAgent()))
	client.Dialect, client.Quiet = h.opts.Dialect, h.opts.Quiet || program.Quiet
	if event := query.Get("event"); event != "" {
		if err := checkDialect(event); err != nil {
			return client, httpcheck.Refused(http.StatusBadRequest, metrics.RejectedBadRequest, "query: %v", err)
		}
		client.Dialect = connstate.Dialect(event)
	}
	if auto := query.Get("auto"); auto != "" {
		on, err := strconv.ParseBool(auto)
		if err != nil {
			return client, httpcheck.Refused(http.StatusBadRequest, metrics.RejectedBadRequest,
				"query: auto must be 0 or 1")
		}
		client.Quiet = client.Quiet || !on
	}
	return client, nil
}
