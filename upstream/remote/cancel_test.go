package remote_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/upstream/internal/upstreamtest"
)

// gauge counts the requests that a server works on.
type gauge struct{ now, most, all atomic.Int64 }

// enter counts one more, until the returned function is called.
func (g *gauge) enter() (leave func()) {
	g.all.Add(1)
	now := g.now.Add(1)
	for most := g.most.Load(); now > most && !g.most.CompareAndSwap(most, now); most = g.most.Load() {
	}
	return func() { g.now.Add(-1) }
}

// stalling is a server that never answers tools/call, and takes a cancellation after
// the time that slow returns, if anybody waits that long.
type stalling struct {
	calls, cancels gauge
	slow           time.Duration
}

func (s *stalling) handle(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
	switch {
	case m == nil:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case m.Method == "notifications/cancelled":
		defer s.cancels.enter()()
		select {
		case <-r.Context().Done():
			panic(http.ErrAbortHandler) // or it would count as taken
		case <-time.After(s.slow):
		}
		w.WriteHeader(http.StatusAccepted)
	case m.Method == "tools/call":
		defer s.calls.enter()()
		<-r.Context().Done()
	default:
		upstreamtest.AnswerJSON(w, string(jsonrpc.NewResult(m.ID, json.RawMessage("{}"))))
	}
}

// cancelMany makes calls, and cancels them once they are at the server.
func cancelMany(k *upstreamtest.Talk, n int) {
	for id := range n {
		k.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x"}}`, id+10))
	}
	synctest.Wait()
	for id := range n {
		k.Send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id+10))
	}
}

// A server that is slow to take cancellations delays nothing else, and holds few
// connections for them. Those that it does not take in time are dropped and counted.
func TestSlowCancellationsDelayNothing(t *testing.T) {
	const n = 500
	synctest.Test(t, func(t *testing.T) {
		s := &stalling{slow: time.Hour}
		reg := prometheus.NewRegistry()
		up := upstreamtest.Streamable(upstreamtest.ServeHere(upstreamtest.Session(s.handle)))
		up.Metrics = metrics.New(reg)
		k := upstreamtest.Open(t, up)
		cancelMany(k, n)
		begun := time.Now()
		k.Ping(2)
		if took := time.Since(begun); took != 0 {
			t.Errorf("a healthy call took %s", took)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if open := s.calls.now.Load(); open != 0 {
			t.Errorf("%d cancelled calls hold a connection after 2 s", open)
		}
		if now, most := s.cancels.now.Load(), s.cancels.most.Load(); now != 8 || most != 8 {
			t.Errorf("%d cancellations are on their way, up to %d at a time, want 8", now, most)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if now := s.cancels.now.Load(); now != 0 {
			t.Errorf("%d cancellations are on their way after 5 s", now)
		}
		if dropped := undelivered(t, reg); dropped != n {
			t.Errorf("%d cancellations are counted as undelivered, want %d", dropped, n)
		}
		k.Ping(3)
	})
}

// undelivered returns how many messages were dropped because a server did not take
// them.
func undelivered(t *testing.T, reg *prometheus.Registry) int {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "mcp_sse_messages_dropped_total" && m.GetLabel()[0].GetValue() == metrics.DroppedUndelivered {
				return int(m.GetCounter().GetValue())
			}
		}
	}
	return 0
}
