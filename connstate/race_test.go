package connstate_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Every method of a connection beside every other, for the race detector; the
// end comes in the middle of it.
func TestAllMethodsAtOnce(t *testing.T) {
	const rounds = 200
	for range 10 {
		w := newWorld(t, connstate.Options{OutboxBytes: 2000, OutboxWait: time.Millisecond}, connstate.Client{})
		w.attach(4)
		m, note := parse(t, list), parse(t, initialized)
		var all sync.WaitGroup
		run := func(f func(i int)) {
			all.Go(func() {
				for i := range rounds {
					f(i)
				}
			})
		}
		run(func(i int) {
			id := jsonrpc.ID(fmt.Sprint(i))
			_ = w.c.BeginID(id, "tools/list")
			w.c.Finish(id, "")
		})
		run(func(int) { _, _ = w.c.AdmitMessage(m); _, _ = w.c.AdmitMessage(note) })
		run(func(int) { w.c.WithdrawID(m.ID) })
		run(func(int) { _ = w.c.Release(func(*jsonrpc.Message) {}) })
		run(func(int) { _ = w.c.Move(connstate.Initializing); _, _ = w.c.Fail(nil) })
		run(func(int) { _ = w.c.Send("", []byte("x")); w.c.RespondNow("", []byte("y")) })
		run(func(int) { _ = w.c.Push(connstate.Event{Name: "z"}); w.c.Announce([]byte("a"), func(error) {}) })
		run(func(int) { w.stream.writeAll() })
		run(func(int) { w.c.Observe(m, "2025-06-18"); w.c.SawVersion("2025-06-18"); w.c.StartAnnounceDelay() })
		run(func(int) {
			w.c.SawFirstByte()
			w.c.SawWrite()
			w.c.SawHeartbeat()
			w.c.SawAttempt()
			w.c.SawFailure(metrics.PhaseRequestCreation, metrics.ReasonTimeout)
		})
		run(func(int) {
			w.c.Snapshot()
			w.c.Idle()
			w.c.Silence()
			w.c.Unwritten()
			w.c.Dialect()
			w.c.State()
			w.c.Reason()
		})
		run(func(i int) {
			if i == rounds/2 {
				w.c.OnClose(func() {})
				w.c.CloseGracefully(metrics.ClosedShutdown, time.Millisecond)
				w.registry.Remove(w.c)
			}
		})
		all.Wait()
		checkNothingMoves(t, w)
	}
}
