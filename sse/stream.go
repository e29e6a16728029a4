package sse

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// serveStream is GET /sse. Its goroutine writes the stream until the end.
//
// Its stack lives as long as the stream, for each of many idle clients. So the work
// of the beginning and of the end is in functions that return.
func (h *Handler) serveStream(w http.ResponseWriter, r *http.Request) {
	c := h.open(w, r)
	if c == nil {
		return
	}
	defer h.end(c)
	stop := h.begin(w, r, c)
	defer stop()
	h.engine.serve(w, r, c, h.endpoint(r, c.ID()))
	c.Close(metrics.ClosedClient)
}

// errBody is why a request that needs no body is refused: net/http would keep what
// comes of it, and wait for the rest.
var errBody = errors.New("a GET must not have a body")

// open returns a connection for the client, or refuses the request.
func (h *Handler) open(w http.ResponseWriter, r *http.Request) *connstate.Connection {
	principal, ok := h.admit(w, r, http.MethodGet)
	if !ok {
		return nil
	}
	client, err := h.client(r, principal)
	if err == nil && hasBody(r) {
		err = errBody
	}
	if err != nil {
		h.opts.Metrics.ConnectionRejected(metrics.RejectedBadRequest)
		refuse(w, r, http.StatusBadRequest, err.Error())
		return nil
	}
	if !canFlush(w) {
		h.opts.Metrics.ConnectionRejected(metrics.RejectedBadRequest)
		h.limited.Error("stream impossible: a middleware hides http.Flusher and has no Unwrap method")
		refuse(w, r, http.StatusInternalServerError, "streaming is not possible here: a middleware hides http.Flusher; give its ResponseWriter an Unwrap method")
		return nil
	}
	c, err := h.registry.Open(client)
	if err != nil {
		h.refuseConnection(w, r, err)
		return nil
	}
	if !h.pass(w, r, c, principal) {
		return nil
	}
	h.opts.Logger.Info("connection opened", "connectionId", c.ShortID(), "remote", client.Addr.String(),
		"userAgent", clip(client.UserAgent), "principal", clip(client.Principal))
	return c
}

// pass gives a connection what is passed on of its GET, or refuses that.
func (h *Handler) pass(w http.ResponseWriter, r *http.Request, c *connstate.Connection, principal string) bool {
	ctx, status, err := h.passed(r, principal)
	if err != nil {
		c.Close(metrics.ClosedError)
		h.registry.Remove(c)
		refuse(w, r, status, err.Error())
		return false
	}
	c.SetContext(ctx)
	return true
}

// begin starts the backend of a connection, and its timers, which the returned
// function stops.
func (h *Handler) begin(w http.ResponseWriter, r *http.Request, c *connstate.Connection) (stop func()) {
	// The server's own deadlines are for requests that end. Not every
	// ResponseWriter has deadlines; then there are none to lift.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	_ = r.Body.Close() // HTTP/2 would keep what comes of a body that has no announced length
	if version := r.Header.Get(headerVersion); version != "" {
		c.SawVersion(clip(version))
	}
	if !c.Client().Quiet {
		_ = c.Push(h.connectionEvent(c)) // the outbox is empty: there is room
	}
	c.Bind(h.backend.Accept(c))
	return h.keepAlive(c)
}

func (h *Handler) end(c *connstate.Connection) {
	c.Close(metrics.ClosedError) // only counts when something has panicked
	h.registry.Remove(c)
	start := c.Start()
	attrs := []any{
		"connectionId", c.ShortID(), "reason", c.Reason(), "duration", time.Since(c.Opened()),
		"reached", start.Reached.String(), "attempts", start.Attempts, "failures", start.Failures,
	}
	if last := start.LastFailure; last != nil {
		attrs = append(attrs, "lastFailure", last.Phase+" "+last.Reason)
	}
	h.opts.Logger.Info("connection closed", attrs...)
}

// chosen returns copies of the headers of those names, nil for none.
func chosen(names []string, from http.Header) map[string][]string {
	var kept map[string][]string
	for _, name := range names {
		if values := from.Values(name); len(values) > 0 {
			if kept == nil {
				kept = make(map[string][]string)
			}
			for _, value := range values { // not parts of the whole head
				kept[http.CanonicalHeaderKey(name)] = append(kept[http.CanonicalHeaderKey(name)], strings.Clone(value))
			}
		}
	}
	return kept
}

// client reads what the GET says about the client. It ignores query parameters that
// are not ours.
func (h *Handler) client(r *http.Request, principal string) (connstate.Client, error) {
	query := r.URL.Query()
	client := connstate.Client{
		Addr: h.clientAddr(r), Principal: principal, UserAgent: strings.Clone(clip(r.UserAgent())),
		Dialect: h.opts.Dialect, Quiet: h.opts.Quiet || diesOfUnknownEvents(r.UserAgent()),
		Local: h.isLocal(r), Header: chosen(h.opts.ForwardHeaders, r.Header),
	}
	if event := query.Get("event"); event != "" {
		if err := checkDialect(event); err != nil {
			return client, fmt.Errorf("query: %w", err)
		}
		client.Dialect = connstate.Dialect(event)
	}
	if auto := query.Get("auto"); auto != "" {
		on, err := strconv.ParseBool(auto)
		if err != nil {
			return client, errors.New("query: auto must be 0 or 1")
		}
		client.Quiet = client.Quiet || !on
	}
	return client, nil
}

// diesOfUnknownEvents reports whether a client ends its session at an event
// name that it does not know: the Java SDK does, from 0.11.0 to 2.0.1 at least.
func diesOfUnknownEvents(userAgent string) bool {
	return strings.HasPrefix(userAgent, "Java-http-client/")
}

func (h *Handler) refuseConnection(w http.ResponseWriter, r *http.Request, err error) {
	limit, ok := errors.AsType[*connstate.LimitError](err)
	if !ok {
		refuse(w, r, http.StatusInternalServerError, "the connection could not be opened")
		return
	}
	status := http.StatusTooManyRequests
	switch limit.Reason {
	case metrics.RejectedMaxConnections, metrics.RejectedBudget, metrics.RejectedDraining:
		status = http.StatusServiceUnavailable
	}
	h.opts.Logger.Debug("connection refused", "reason", limit.Reason)
	setRetryAfter(w, limit.RetryAfter)
	refuse(w, r, status, limit.Message)
}

// connectionEvent tells the client about the connection, and how long to wait
// before it reconnects.
func (h *Handler) connectionEvent(c *connstate.Connection) connstate.Event {
	data := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/connection","params":{"connectionId":%q,"state":%q,"heartbeatSeconds":%g}}`,
		c.ID(), c.State(), max(0, h.opts.HeartbeatInterval.Seconds()))
	return connstate.Event{Name: connstate.EventConnection, Data: data, Retry: int(h.opts.ReconnectDelay.Milliseconds())}
}

// canFlush reports whether a ResponseWriter, or one that it wraps, can flush.
func canFlush(w http.ResponseWriter) bool {
	for {
		switch t := w.(type) {
		case interface{ FlushError() error }, http.Flusher:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return false
		}
	}
}

// clip bounds what a client can put into a log line.
func clip(s string) string { return s[:min(128, len(s))] }
