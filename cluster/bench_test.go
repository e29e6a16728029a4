package cluster_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// BenchmarkForward forwards POSTs of the size of a small call, over TLS on loopback, in one
// process. It measures neither the client nor the server.
func BenchmarkForward(b *testing.B) {
	broker := startBroker(b, func(o *server.Options) {
		o.DontListen, o.Host, o.Port, o.MaxPayload = false, "127.0.0.1", server.RANDOM_PORT, 0
	})
	all := joinAll(b, broker, echo, "one", "two")
	forward := func(b *testing.B) {
		body := strings.Repeat("x", 200)
		r, f := request(b.Context(), all[1].ID()+".id", body)
		w := httptest.NewRecorder()
		if !all[0].Forward(w, r, f) || w.Code != http.StatusAccepted || w.Body.String() != body {
			b.Errorf("status %d: %s", w.Code, w.Body)
		}
	}
	b.Run("1", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			forward(b)
		}
	})
	b.Run("64", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(64)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				forward(b)
			}
		})
	})
}
