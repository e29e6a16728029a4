package cluster_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/mcp-sse/mcp-sse/cluster"
	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/front"
)

// BenchmarkForward forwards POSTs of the size of a small call, over NATS on TCP, in one
// process. What a client and a server add is not in it.
func BenchmarkForward(b *testing.B) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		b.Fatal(err)
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	var nodes [2]*cluster.Node
	var joining sync.WaitGroup
	for i := range nodes {
		joining.Go(func() {
			n, err := cluster.Join(b.Context(), cluster.Options{URL: "nats://" + s.Addr().String(), Replica: fmt.Sprintf("r%d", i), Key: testKey})
			if err != nil {
				b.Error(err)
				return
			}
			nodes[i] = n
		})
	}
	joining.Wait()
	if b.Failed() {
		b.FailNow()
	}
	defer nodes[0].Close()
	defer nodes[1].Close()
	nodes[1].Attach("", front.Part{
		Handler: http.HandlerFunc(echo), Has: func(string) bool { return true }, Draining: func() bool { return false },
		Usage: func() connstate.Usage { return connstate.Usage{} }, UsedElsewhere: func(connstate.Usage) {},
	})
	forward := func(b *testing.B) {
		body := strings.Repeat("x", 200)
		r, f := request(b.Context(), nodes[1].ID()+".id", body)
		w := httptest.NewRecorder()
		if !nodes[0].Forward(w, r, f) || w.Code != http.StatusAccepted || w.Body.String() != body {
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
