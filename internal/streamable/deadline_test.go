package streamable_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/streamable"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
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

// An answer that cannot be a stream may take longer than the write timeout of the http.Server, which ends a
// response over HTTP/2 also while it waits.
func TestLateAnswersAsJSONOutliveTheServersWriteTimeout(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		for _, http2 := range []bool{false, true} {
			bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
				var protocols http.Protocols
				protocols.SetHTTP1(!http2)
				protocols.SetUnencryptedHTTP2(http2)
				f.srv.Stop()
				f.srv = pipetest.Serve(f.handler, &protocols, func(s *http.Server) { s.WriteTimeout = 10 * second })
				f.backend.receive = func(c connstate.ForHandler, m *jsonrpc.Message) {
					time.AfterFunc(time.Minute, func() { answer(c, m.ID, jsonrpc.NewResult(m.ID, []byte(`{"late":true}`)), "") })
				}
				header, body := []string{"Accept", "application/json"}, request("1", "late")
				if version == "2025-11-25" {
					header = append(header, in(f.initialize(version))...)
				} else {
					header = append(header, "MCP-Protocol-Version", version, "Mcp-Method", "never")
					body = strings.Replace(stateless, `"method":"never"`, `"method":"late"`, 1)
					header[len(header)-1] = "late"
				}
				f.post(body, header...).wantStatus(http.StatusOK, `"late":true`)
			})
		}
	}
}
