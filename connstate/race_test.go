package connstate_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
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
			if r, err := w.c.Begin(request(t, fmt.Sprint(i), "tools/list")); err == nil {
				finish(r, "")
			}
		})
		r := &connstate.Request{Message: m}
		run(func(int) { _, _ = w.c.Admit(r); _, _ = w.c.Admit(&connstate.Request{Message: note}) })
		run(func(int) { w.c.Withdraw(r) })
		run(func(int) {
			if release, err := w.c.Open(); err == nil {
				release(func(*connstate.Request) bool { return true })
			}
		})
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
