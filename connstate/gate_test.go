package connstate_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// nothingOpen is what a scrape says when no connection is left.
func nothingOpen() io.Reader {
	return strings.NewReader(`
# HELP mcp_sse_connection_state Open connections, by state.
# TYPE mcp_sse_connection_state gauge
mcp_sse_connection_state{state="draining"} 0
mcp_sse_connection_state{state="failed"} 0
mcp_sse_connection_state{state="initializing"} 0
mcp_sse_connection_state{state="ready"} 0
# HELP mcp_sse_connections Open connections.
# TYPE mcp_sse_connections gauge
mcp_sse_connections 0
`)
}

// checkGate compares how many messages wait now, and how many were refused for
// each reason since the beginning.
func (w *world) checkGate(waiting int, refused map[string]float64) {
	w.t.Helper()
	all := gather(w.t, w.prom)
	if got := all["mcp_sse_gate_depth"]; got != float64(waiting) {
		w.t.Errorf("the gauge says that %v messages wait, want %d", got, waiting)
	}
	if got := w.c.Snapshot().Queued; got != waiting {
		w.t.Errorf("the snapshot says that %d messages wait, want %d", got, waiting)
	}
	for _, reason := range []string{metrics.GateFull, metrics.GateTimeout, metrics.GateFailed, metrics.GateCanceled, metrics.GateClosed, "other"} {
		if got := all[`mcp_sse_gate_rejected_total{reason="`+reason+`"}`]; got != refused[reason] {
			w.t.Errorf("got %v messages refused for %s, want %v", got, reason, refused[reason])
		}
	}
}

// release opens the gate and returns what came through it, in order.
func (w *world) release() []string {
	w.t.Helper()
	var out []string
	must(w.t, w.c.Release(func(m *jsonrpc.Message) { out = append(out, label(m)) }))
	return out
}

func TestGateHoldsUntilReleased(t *testing.T) {
	w := newWorld(t, connstate.Options{}, connstate.Client{})
	w.admit(request(t, "1", "a"), "wait")
	w.admit(notification(t, "b"), "wait")
	w.admit(response(t, "7"), "wait")
	w.admit(request(t, "2", "c"), "wait")
	w.checkGate(4, nil)
	if got, want := w.release(), []string{"a#1", "b#", "#7", "c#2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	w.checkGate(0, nil)
	w.admit(request(t, "3", "d"), "pass")
	w.checkGate(0, nil)
	if n := w.series("mcp_sse_gate_wait_seconds"); n != 4 {
		t.Errorf("got %v waits observed, want 4: what passes does not wait", n)
	}
}

func TestGateIsBounded(t *testing.T) {
	for _, bound := range []int{0, 3} {
		t.Run(fmt.Sprint(bound), func(t *testing.T) {
			w := newWorld(t, connstate.Options{GateQueue: bound}, connstate.Client{})
			n := bound
			if n == 0 {
				n = 64 // the default
			}
			for i := range n {
				w.admit(request(t, fmt.Sprint(i), "a"), "wait")
			}
			w.admit(request(t, "-1", "a"), connstate.ErrGateFull.Error())
			w.checkGate(n, map[string]float64{metrics.GateFull: 1})
			if !w.c.WithdrawID("0") {
				t.Error("not withdrawn")
			}
			w.admit(request(t, "-2", "a"), "wait")
			if got := w.release(); len(got) != n || got[n-1] != "a#-2" {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestGateTimesEachMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connstate.Options{}, connstate.Client{}) // 5 s by default
		w.admit(request(t, "1", "a"), "wait")
		time.Sleep(2 * time.Second)
		w.admit(request(t, "2", "b"), "wait")
		w.admit(notification(t, "c"), "wait")
		time.Sleep(3*time.Second - time.Nanosecond)
		synctest.Wait()
		w.checkGate(3, nil)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		w.checkGate(2, map[string]float64{metrics.GateTimeout: 1})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		w.checkGate(0, map[string]float64{metrics.GateTimeout: 3})
		late := ": " + connstate.ErrGateTimeout.Error()
		if got, want := w.handler.refusals(), []string{"a#1" + late, "b#2" + late, "c#" + late}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		// Late is not failed: the gate goes on as before.
		w.admit(request(t, "3", "d"), "wait")
		time.Sleep(4 * time.Second)
		if got, want := w.release(), []string{"d#3"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		w.checkGate(0, map[string]float64{metrics.GateTimeout: 3})
	})
}

func TestWithdraw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connstate.Options{}, connstate.Client{})
		w.admit(request(t, "1", "a"), "wait")
		w.admit(response(t, "2"), "wait")
		time.Sleep(time.Second)
		w.admit(request(t, "2", "b"), "wait")
		w.admit(notification(t, "c"), "wait")
		for _, id := range []jsonrpc.ID{"3", "", `"1"`, "1.0"} {
			if w.c.WithdrawID(id) {
				t.Errorf("withdrew %q, which does not wait", id)
			}
		}
		if !w.c.WithdrawID("2") || w.c.WithdrawID("2") {
			t.Error("request 2 was to be withdrawn once")
		}
		w.checkGate(3, map[string]float64{metrics.GateCanceled: 1})
		if !w.c.WithdrawID("1") {
			t.Error("request 1 was not withdrawn")
		}
		// The timer of the first message fires, and finds only younger ones.
		time.Sleep(4 * time.Second)
		synctest.Wait()
		w.checkGate(1, map[string]float64{metrics.GateCanceled: 2, metrics.GateTimeout: 1})
		if got, want := w.release(), []string{"c#"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if w.c.WithdrawID("1") {
			t.Error("withdrew from an open gate")
		}
	})
}

// While another start is due a failed one ends nobody's wait.
func TestFailLeavesWhatWaits(t *testing.T) {
	w := newWorld(t, connstate.Options{}, connstate.Client{})
	w.admit(request(t, "1", "a"), "wait")
	w.admit(notification(t, "b"), "wait")
	waited, err := w.c.Fail(nil)
	must(t, err)
	if waited != nil {
		t.Errorf("got %v, want nothing given back", waited)
	}
	w.checkGate(2, nil)
	w.admit(request(t, "2", "c"), "wait")
	must(t, w.c.Move(connstate.Initializing))
	w.admit(request(t, "3", "d"), "wait")
	if got, want := w.release(), []string{"a#1", "b#", "c#2", "d#3"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The last start that fails gives back what waited, for its caller to answer.
func TestFailGivesBackWhatWaited(t *testing.T) {
	w := newWorld(t, connstate.Options{}, connstate.Client{})
	w.admit(request(t, "1", "a"), "wait")
	w.admit(notification(t, "b"), "wait")
	waited, err := w.c.Fail(errors.New("no more starts"))
	must(t, err)
	if len(waited) != 2 || label(waited[0].Message) != "a#1" || label(waited[1].Message) != "b#" {
		t.Errorf("got %v", waited)
	}
	w.checkGate(0, map[string]float64{metrics.GateFailed: 2})
	if got := w.handler.refusals(); got != nil {
		t.Errorf("got %q refused: Fail's caller answers", got)
	}
}

func TestFailWithRefusalAnswersUntilTheNextStart(t *testing.T) {
	w := newWorld(t, connstate.Options{}, connstate.Client{})
	refusal := errors.New("no more starts")
	_, err := w.c.Fail(refusal)
	must(t, err)
	w.admit(request(t, "1", "a"), refusal.Error())
	w.admit(notification(t, "b"), refusal.Error())
	w.checkGate(0, map[string]float64{metrics.GateFailed: 2})
	must(t, w.c.Move(connstate.Initializing))
	w.admit(request(t, "2", "c"), "wait")
	if _, err := w.c.Fail(nil); err != nil {
		t.Fatal(err)
	}
	w.admit(request(t, "3", "d"), "wait")
}

func TestFailOnlyWhereTheTableHasIt(t *testing.T) {
	for _, from := range []connstate.State{connstate.Ready, connstate.Failed, connstate.Draining, connstate.Closed} {
		w := in(t, from)
		waited, err := w.c.Fail(errors.New("x"))
		if _, ok := errors.AsType[*connstate.MoveError](err); !ok || waited != nil {
			t.Errorf("from %v: got %v, %v", from, waited, err)
		}
	}
}

func TestDrainRefusesAndWaits(t *testing.T) {
	w := newWorld(t, connstate.Options{}, connstate.Client{})
	must(t, w.c.BeginID("1", "a"))
	must(t, w.c.BeginID("2", "b"))
	w.admit(request(t, "1", "a"), "wait")
	quiet, err := w.c.Drain()
	must(t, err)
	if got, want := w.handler.refusals(), []string{"a#1: " + connstate.ErrDraining.Error()}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	w.checkGate(0, map[string]float64{metrics.GateClosed: 1})
	w.admit(request(t, "3", "c"), connstate.ErrDraining.Error())
	w.admit(notification(t, "d"), connstate.ErrDraining.Error()) // there is no session
	w.c.Finish("1", metrics.ErrorDraining)
	select {
	case <-quiet:
		t.Fatal("quiet with a request in flight")
	default:
	}
	w.c.Finish("2", "")
	<-quiet
	w.c.Finish("2", "")
	if _, err := w.c.Drain(); err == nil {
		t.Error("drained twice")
	}
}

// What is in flight may need the client's answers, so those still pass.
func TestDrainOfAReadyConnectionPassesAllButRequests(t *testing.T) {
	w := newWorld(t, connstate.Options{}, connstate.Client{})
	w.release()
	quiet, err := w.c.Drain()
	must(t, err)
	<-quiet
	w.admit(request(t, "1", "a"), connstate.ErrDraining.Error())
	w.admit(response(t, "1"), "pass")
	w.admit(notification(t, "notifications/progress"), "pass")
}

func TestCloseMakesADrainQuiet(t *testing.T) {
	w := newWorld(t, connstate.Options{}, connstate.Client{})
	must(t, w.c.BeginID("1", "a"))
	quiet, err := w.c.Drain()
	must(t, err)
	w.c.Close(metrics.ClosedShutdown)
	<-quiet
}

func TestCloseEmptiesTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connstate.Options{}, connstate.Client{})
		w.admit(request(t, "1", "a"), "wait")
		w.admit(request(t, "2", "b"), "wait")
		w.c.Close(metrics.ClosedClient)
		w.checkGate(0, map[string]float64{metrics.GateClosed: 2})
		w.admit(request(t, "3", "c"), connstate.ErrClosed.Error())
		time.Sleep(time.Hour) // the timer is gone
		synctest.Wait()
		if got := w.handler.refusals(); got != nil {
			t.Errorf("got %q refused: nobody is there to be told", got)
		}
		if w.c.WithdrawID("1") {
			t.Error("withdrew from a closed connection")
		}
		w.checkGate(0, map[string]float64{metrics.GateClosed: 2})
	})
}

// A transport may have to end something of its own when the connection drains.
func TestDrainTellsTheTransport(t *testing.T) {
	w := newWorld(t, connstate.Options{}, connstate.Client{})
	var states []connstate.State
	w.c.OnDrain(func() { states = append(states, w.c.State()) })
	for range 2 {
		_, _ = w.c.Drain() // the second has no effect
	}
	if len(states) != 1 || states[0] != connstate.Draining {
		t.Errorf("told in states %v", states)
	}
}
