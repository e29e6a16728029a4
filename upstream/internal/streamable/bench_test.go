package streamable_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/upstreamtest"
	"github.com/mcp-sse/mcp-sse/upstream/remote"
)

// BenchmarkRemoteCall measures one call after the other with a server that does
// nothing, answered as JSON.
func BenchmarkRemoteCall(b *testing.B) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, _ := jsonrpc.Parse(body)
		upstreamtest.AnswerJSON(w, string(jsonrpc.NewResult(m.ID, json.RawMessage("{}"))))
	})
	s := httptest.NewServer(answer)
	defer s.Close()
	for name, up := range map[string]jsonrpc.Dialer{
		"socket": remote.URL{Address: s.URL, Transport: remote.TransportStreamable}, "in process": inProcessURL(answer),
	} {
		b.Run(name, func(b *testing.B) {
			conn, err := up.Dial(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			b.ReportAllocs()
			for b.Loop() {
				if err := conn.Send([]byte(upstreamtest.Call2)); err != nil {
					b.Fatal(err)
				}
				if _, err := conn.Recv(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func inProcessURL(h http.Handler) remote.URL {
	up := remote.HTTPHandler(h).(remote.URL)
	up.Transport = remote.TransportStreamable
	return up
}
