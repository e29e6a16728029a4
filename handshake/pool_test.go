package handshake

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// The pool is in the state that its table says, and keeps what belongs to that.
func TestStatesOfThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		memory := remember.Open("", log).Server(remember.Identity{Server: "s", Place: "p"})
		client, _ := remember.ClientOf(nil, remember.Own)
		memory.Learn(client, &remember.Answers{Initialize: `{"protocolVersion":"2025-11-25"}`, Learned: time.Now()})
		opts := SupplierOptions{Warm: 2, WarmFollowsUse: true, ProcessIdle: time.Hour, Memory: memory,
			Session: multiplex.Options{Logger: log}}
		s := NewSupplier(noServer{}, opts)
		use := func() { s.pool.noteUse(time.Now().UnixNano()) }
		reconfigure := func(change func(*SupplierOptions)) func() {
			return func() { change(&opts); s.Reconfigure(opts) }
		}
		after := func(d time.Duration) func() { return func() { time.Sleep(d) } }
		for _, tc := range []struct {
			name    string
			do      func()
			state   poolState
			keepers int
		}{
			{"a use before Start", use, poolOff, 0},
			{"a check that fails before Start", func() { s.pool.pause(quiet) }, poolOff, 0},
			{"Start during the pause", s.Start, poolPausing, 0},
			{"the end of the pause", after(quiet), poolFull, 2},
			{"a use", use, poolFull, 2},
			{"less than an hour without a use", after(time.Hour - time.Second), poolFull, 2},
			{"an hour", after(time.Second), poolUnused, 0},
			{"a use of what is empty", use, poolFull, 2},
			{"one that must not be missed", func() { time.Sleep(time.Hour - time.Second); use() }, poolFull, 2},
			{"an hour from the first use", after(2 * time.Second), poolFull, 2},
			{"a check that fails", func() { s.pool.pause(2 * time.Hour) }, poolPausing, 0},
			{"a use meanwhile", use, poolPausing, 0},
			{"the end of a pause in which nobody came for an hour", after(2 * time.Hour), poolUnused, 0},
			{"no process-idle", reconfigure(func(o *SupplierOptions) { o.ProcessIdle = 0 }), poolFull, 2},
			{"a day", after(24 * time.Hour), poolFull, 2},
			{"an idle time that is over", reconfigure(func(o *SupplierOptions) { o.ProcessIdle = time.Hour }), poolUnused, 0},
			{"warm whether it is used or not", reconfigure(func(o *SupplierOptions) { o.WarmFollowsUse = false }), poolFull, 2},
			{"a smaller pool", reconfigure(func(o *SupplierOptions) { o.Warm = 1 }), poolFull, 1},
			{"no pool", reconfigure(func(o *SupplierOptions) { o.Warm = 0 }), poolOff, 0},
		} {
			tc.do()
			synctest.Wait()
			s.pool.mu.Lock()
			state, keepers := poolState(s.pool.state.Load()), len(s.pool.keepers)
			s.pool.mu.Unlock()
			ssetest.Want(t, "state after "+tc.name, state, tc.state)
			ssetest.Want(t, "keepers after "+tc.name, keepers, tc.keepers)
		}
		s.Close()
		s.Wait()
	})
}
