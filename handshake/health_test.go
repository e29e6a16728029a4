package handshake

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Starts and probes decide whether a session can be started, as the table of verdicts says.
func TestVerdictsOnStarts(t *testing.T) {
	none := errors.New("there is none")
	started := func(s *Supplier, _ *scripted) { s.NoteStart() }
	failed := func(s *Supplier, _ *scripted) { s.NoteFailure(none) }
	refused := func(s *Supplier, _ *scripted) { s.NoteFailure(&Failure{Reason: metrics.ReasonDenied, Err: none}) }
	// The context of t is of another bubble.
	ready := func(s *Supplier, _ *scripted) { _ = s.Ready(context.Background()) }
	unready := func(s *Supplier, server *scripted) {
		server.fails = none
		_ = s.Ready(context.Background())
	}
	for _, tc := range []struct {
		name   string
		before startVerdict
		event  func(*Supplier, *scripted)
		after  startVerdict
		probes int
	}{
		{"nothing has decided, a start works", startsUndecided, started, startsWork, 0},
		{"nothing has decided, a start fails", startsUndecided, failed, startsDoubted, 0},
		{"nothing has decided, a client is refused", startsUndecided, refused, startsUndecided, 0},
		{"nothing has decided, a probe works", startsUndecided, ready, startsWork, 1},
		{"nothing has decided, a probe fails", startsUndecided, unready, startsFail, 1},
		{"starts work, one works", startsWork, started, startsWork, 0},
		{"starts work, one fails", startsWork, failed, startsDoubted, 0},
		{"starts work, a client is refused", startsWork, refused, startsWork, 0},
		{"starts work, and somebody asks", startsWork, unready, startsWork, 0},
		{"starts are doubted, one works", startsDoubted, started, startsWork, 0},
		{"starts are doubted, one fails", startsDoubted, failed, startsDoubted, 0},
		{"starts are doubted, a probe works", startsDoubted, ready, startsWork, 1},
		{"starts are doubted, a probe fails", startsDoubted, unready, startsFail, 1},
		{"starts fail, one works", startsFail, started, startsWork, 0},
		{"starts fail, one fails", startsFail, failed, startsFail, 0},
		{"starts fail, a probe works", startsFail, ready, startsWork, 1},
		{"starts fail, a probe fails", startsFail, unready, startsFail, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := &scripted{}
			s := NewSupplier(server, SupplierOptions{Forwards: true,
				StartTimeout: time.Minute, InitializationTimeout: time.Minute,
				Session: multiplex.Options{Logger: slog.New(slog.DiscardHandler)}})
			s.record.starts = tc.before
			tc.event(s, server)
			synctest.Wait()
			ssetest.Want(t, tc.name, s.record.starts, tc.after)
			ssetest.Want(t, "probes: "+tc.name, server.starts, tc.probes)
			failing := tc.after == startsDoubted || tc.after == startsFail
			ssetest.Want(t, "health: "+tc.name, s.Health().Failing, failing)
			s.Close()
			s.Wait()
		})
	}
}
