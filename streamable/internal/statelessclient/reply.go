package statelessclient

import (
	"net/http"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/eventstream"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// reply is the response to one request: one JSON object, or a stream of events once
// something comes before the result. One goroutine uses it.
type reply struct {
	w    http.ResponseWriter
	r    *http.Request
	id   jsonrpc.ID
	opts *Options

	written bool                // a part of the response
	beats   <-chan time.Time    // moments for heartbeats; nil: none
	form    httpcheck.Form      // of the answer; notifications need a stream
	stream  *eventstream.Writer // nil: the stream has not begun
	err     error               // of a write; the client is gone then
}

// begin begins the stream. It reports false if the response cannot be one.
func (a *reply) begin() bool {
	if a.stream == nil {
		if a.form == httpcheck.FormJSON || !httpcheck.CanFlush(a.w) {
			return false
		}
		a.stream, a.written = eventstream.NewWriter(a.w, a.r, a.opts.WriteTimeout), true
		a.stream.Begin()
	}
	return true
}

// event adds a notification to the stream. flush sends it.
func (a *reply) event(message []byte) {
	if a.begin() {
		a.stream.Message("", message)
	}
}

// beat shows the client, and what is between, that the request is alive.
func (a *reply) beat() {
	if a.begin() {
		a.stream.Comment("heartbeat")
		a.flush()
		a.opts.Metrics.Heartbeat()
	}
}

func (a *reply) flush() {
	if a.stream != nil && a.err == nil && a.stream.Buffered() > 0 {
		a.err = a.stream.Flush()
	}
}

func (a *reply) result(result []byte) {
	a.end(http.StatusOK, jsonrpc.NewResult(a.id, result))
}

// fail ends the response with an error. A stream that has begun has status 200.
func (a *reply) fail(status int, e *jsonrpc.Error) { a.end(status, jsonrpc.NewError(a.id, e)) }

func (a *reply) end(status int, message []byte) {
	if a.form == httpcheck.FormEvents && status == http.StatusOK { // others have their status
		a.begin()
	}
	if a.stream != nil {
		a.stream.Message("", message)
		a.flush()
		return
	}
	a.written = true
	a.err = httpcheck.WriteJSON(a.w, a.r, status, message, a.opts.WriteTimeout)
}

// wait sends what was added, and waits for changed or later, or sends a heartbeat. It
// reports false if the client is gone.
func (a *reply) wait(changed <-chan struct{}, later <-chan time.Time) bool {
	a.flush()
	if a.over() {
		return false
	}
	select {
	case <-changed:
	case <-later:
	case <-a.beats:
		a.beat()
	case <-a.r.Context().Done():
	}
	return !a.over()
}

func (a *reply) over() bool { return a.err != nil || a.r.Context().Err() != nil }
