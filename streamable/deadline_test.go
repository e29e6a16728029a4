package streamable_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/streamable"
)

// bounded is a ResponseWriter that counts the writes without a deadline.
type bounded struct {
	http.ResponseWriter
	deadline  time.Time
	unbounded int
}

func (b *bounded) Unwrap() http.ResponseWriter { return b.ResponseWriter }

func (b *bounded) SetWriteDeadline(at time.Time) error {
	b.deadline = at
	return http.NewResponseController(b.ResponseWriter).SetWriteDeadline(at)
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.deadline.IsZero() {
		b.unbounded++
	}
	return b.ResponseWriter.Write(p)
}

// A client that does not read cannot hold a short answer as JSON for ever either.
func TestShortAnswersHaveADeadline(t *testing.T) {
	bubble(t, streamable.Options{Options: httpcheck.Options{WriteTimeout: 10 * second}}, connstate.Limits{}, func(f *fixture) {
		unbounded := make(chan int, 1)
		f.srv.Stop()
		f.srv = pipetest.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b := &bounded{ResponseWriter: w}
			f.handler.ServeHTTP(b, r)
			unbounded <- b.unbounded
		}), nil, nil)
		id := f.initialize("2025-11-25")
		ssetest.Want(f.t, "writes without a deadline", <-unbounded, 0)
		for _, body := range []string{request("1", "echo"), request("2", "ping")} {
			f.post(body, in(id)...).wantStatus(http.StatusOK)
			ssetest.Want(f.t, "writes without a deadline", <-unbounded, 0)
		}
	})
}
