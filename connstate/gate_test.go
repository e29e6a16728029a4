package connstate_test

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// checkGate compares how many messages wait now, and how many were refused for
// each reason since the beginning.
func (w *world) checkGate(waiting int, refused map[string]float64) {
	w.t.Helper()
	all := ssetest.Series(w.t, w.prom)
	equal(w.t, "messages that wait, by the gauge", all["mcp_sse_gate_depth"], float64(waiting))
	equal(w.t, "the snapshot says that messages wait", w.c.Snapshot().Queued, waiting)
	for _, reason := range []string{metrics.GateFull, metrics.GateBudget, metrics.GateTimeout, metrics.GateFailed, metrics.GateCanceled, metrics.GateClosed, "other"} {
		equal(w.t, "messages refused for "+reason, all[`mcp_sse_gate_rejected_total{reason="`+reason+`"}`], refused[reason])
	}
}

func TestGateTimesEachMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connstate.Options{}, connstate.Client{}) // 5 s by default
		w.wait(request(t, "1", "a"), "waits")
		time.Sleep(2 * time.Second)
		w.wait(request(t, "2", "b"), "waits")
		time.Sleep(time.Nanosecond)
		w.wait(notification(t, "c"), "waits")
		time.Sleep(3*time.Second - 2*time.Nanosecond)
		synctest.Wait()
		w.checkGate(3, nil)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		w.checkGate(2, map[string]float64{metrics.GateTimeout: 1})
		time.Sleep(2*time.Second + time.Nanosecond)
		synctest.Wait()
		w.checkGate(0, map[string]float64{metrics.GateTimeout: 3})
		late := ": " + connstate.ErrGateTimeout.Error()
		equal(t, "refused", w.handler.refusals(), []string{"a#1" + late, "b#2" + late, "c#" + late})
		// Late is not failed: the gate goes on as before.
		w.wait(request(t, "3", "d"), "waits")
		time.Sleep(4 * time.Second)
		equal(t, "released", w.release(), []string{"d#3"})
		time.Sleep(time.Hour)
		synctest.Wait()
		w.checkGate(0, map[string]float64{metrics.GateTimeout: 3})
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

// A request that has passed just before the handler learns of the drain is in flight, and is waited for: the
// handler learns of it before anybody looks.
func TestNoRequestPassesOnceADrainIsQuiet(t *testing.T) {
	w := newWorld(t, connstate.Options{}, connstate.Client{})
	w.release()
	var passing *connstate.Request
	w.handler.drained = func() { passing = w.ask("1", "a") }
	quiet, err := w.c.Drain()
	must(t, err)
	select {
	case <-quiet:
		t.Fatal("quiet with a request in flight")
	default:
	}
	finish(passing, "")
	<-quiet
}

func TestGateIsBounded(t *testing.T) {
	const bound = 3
	w := newWorld(t, connstate.Options{GateQueue: bound}, connstate.Client{})
	first := w.wait(request(t, "0", "a"), "waits")
	for i := 1; i < bound; i++ {
		w.wait(request(t, fmt.Sprint(i), "a"), "waits")
	}
	w.wait(request(t, "-1", "a"), connstate.ErrGateFull.Error())
	w.checkGate(bound, map[string]float64{metrics.GateFull: 1})
	if !w.c.Withdraw(first) {
		t.Error("not withdrawn")
	}
	w.wait(request(t, "-2", "a"), "waits")
	if got := w.release(); len(got) != bound || got[bound-1] != "a#-2" {
		t.Errorf("got %q", got)
	}
}

// A few large messages are as much as many. One that is larger waits alone.
func TestGateIsBoundedInBytes(t *testing.T) {
	w := newWorld(t, connstate.Options{}, connstate.Client{})
	large := func(size int, want string) *connstate.Request {
		t.Helper()
		params := append(append([]byte(`{"x":"`), bytes.Repeat([]byte("x"), size)...), `"}`...)
		return w.wait(parse(t, string(jsonrpc.NewRequest("1", "m", params))), want)
	}
	full := connstate.ErrGateFull.Error()
	alone := large(9<<20, "waits")
	large(1, full)
	w.c.Withdraw(alone)
	large(5<<20, "waits")
	large(2<<20, "waits")
	large(2<<20, full)
	large(100, "waits")
}

// A start that has failed for good gives back what waited for it, for its caller to answer.
func TestWhatWaitedForAFailedStartIsGivenBack(t *testing.T) {
	w := newWorld(t, connstate.Options{}, connstate.Client{})
	w.wait(request(t, "1", "a"), "waits")
	w.wait(notification(t, "b"), "waits")
	waited := w.c.TakeRefused()
	if len(waited) != 2 || label(waited[0].Message) != "a#1" || label(waited[1].Message) != "b#" {
		t.Errorf("got %v", waited)
	}
	if got := w.handler.refusals(); got != nil {
		t.Errorf("got %q refused: the caller answers", got)
	}
	w.checkGate(0, map[string]float64{metrics.GateFailed: 2})
	w.wait(request(t, "3", "d"), "waits")
	equal(t, "released", w.release(), []string{"d#3"})
}

// A client that has lists waits for an answer, not for its tools: it may wait longer, also with what waits already, and
// for more.
func TestAClientThatHasListsWaitsLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connstate.Options{GateQueue: 1, MaxPending: 1}, connstate.Client{}) // 5 and 60 s by default
		w.wait(request(t, "1", "a"), "waits")
		must(t, w.c.Enqueue(&connstate.Request{ID: "2", Message: request(t, "2", "b")}, true))
		third := w.c.Enqueue(&connstate.Request{ID: "3", Message: request(t, "3", "c")}, true)
		ssetest.WantError(t, "a third one", third, connstate.ErrGateFull)
		w.c.Prolong()
		time.Sleep(60*time.Second - time.Nanosecond)
		synctest.Wait()
		w.checkGate(2, map[string]float64{metrics.GateFull: 1})
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		w.checkGate(0, map[string]float64{metrics.GateFull: 1, metrics.GateTimeout: 2})
	})
}

func TestDrainRefusesAndWaits(t *testing.T) {
	w := newWorld(t, connstate.Options{}, connstate.Client{})
	first, second := w.ask("1", "a"), w.ask("2", "b")
	w.wait(request(t, "1", "a"), "waits")
	quiet, err := w.c.Drain()
	must(t, err)
	equal(t, "refused", w.handler.refusals(), []string{"a#1: " + connstate.ErrDraining.Error()})
	w.checkGate(0, map[string]float64{metrics.GateClosed: 1})
	w.wait(request(t, "3", "c"), connstate.ErrDraining.Error())
	w.wait(notification(t, "d"), connstate.ErrDraining.Error()) // there is no session
	finish(first, metrics.ErrorDraining)
	select {
	case <-quiet:
		t.Fatal("quiet with a request in flight")
	default:
	}
	finish(second, "")
	<-quiet
	if _, err := w.c.Drain(); err == nil {
		t.Error("drained twice")
	}
}

// A draining connection is quiet only when its last answer is in the outbox, so that
// closing it gracefully then loses nothing.
func TestQuietComesAfterTheLastAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connstate.Options{OutboxBytes: 1}, connstate.Client{Dialect: connstate.EventMessage})
		w.attach(100)
		r := w.ask("1", "tools/call")
		r.Backpressure = true
		must(t, w.c.Push(connstate.Event{Name: "fills the outbox", Data: []byte("{}")}))
		quiet, err := w.c.Drain()
		must(t, err)
		go finish(r, "")
		synctest.Wait() // it waits for room
		select {
		case <-quiet:
			t.Error("quiet while an answer waits for room")
		default:
		}
		w.stream.write(1)
		<-quiet
		if got := w.stream.got(); len(got) != 2 || finish(r, "") {
			t.Errorf("got %q, want the answer as well, once", got)
		}
	})
}

// A request is repeated once, also after it has passed the gate again.
func TestARequestIsRepeatedOnce(t *testing.T) {
	w := newWorld(t, connstate.Options{}, connstate.Client{})
	r := w.wait(request(t, "1", "a"), "waits")
	w.release()
	equal(t, "repeated", w.c.Repeat(r), true)
	w.c.Passed(r)
	must(t, w.c.Enqueue(r, false))
	w.release()
	equal(t, "repeated again", w.c.Repeat(r), false)
}
