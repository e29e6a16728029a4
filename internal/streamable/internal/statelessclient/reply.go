package statelessclient

import (
	"net/http"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// reply is the answer to one request, which becomes a stream once something comes before the
// result, and what the handler waits with. One goroutine uses it.
type reply struct {
	*httpanswer.Writer
	w     http.ResponseWriter
	r     *http.Request
	id    jsonrpc.ID
	opts  *Options
	beats <-chan time.Time // moments for heartbeats; nil: none
}

func (a *reply) result(result []byte) { a.end(http.StatusOK, jsonrpc.NewResult(a.id, result)) }

// fail ends the answer with an error. A stream that has begun has status 200.
func (a *reply) fail(status int, e *jsonrpc.Error) { a.end(status, jsonrpc.NewError(a.id, e)) }

func (a *reply) end(status int, message []byte) {
	_ = a.Answer(status, message) // a client that is gone needs no answer
}

// wait sends what was added, and waits for changed or later, or sends a heartbeat. It
// reports false if the client is gone.
func (a *reply) wait(changed <-chan struct{}, later <-chan time.Time) bool {
	_ = a.Flush()
	if a.isOver() {
		return false
	}
	select {
	case <-changed:
	case <-later:
	case <-a.beats:
		if a.Begin() {
			_ = a.Heartbeat()
			a.opts.Metrics.Heartbeat()
		}
	case <-a.r.Context().Done():
	}
	return !a.isOver()
}

func (a *reply) isOver() bool { return a.Err() != nil || a.r.Context().Err() != nil }
