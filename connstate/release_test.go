package connstate_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A message that the session does not take goes back to the front of the gate. It waits for the next session
// there, beside the requests that come back from a lost one.
func TestWhatIsNotTakenGoesBackToTheFront(t *testing.T) {
	w := newWorld(t, connstate.Options{GateQueue: 2}, connstate.Client{})
	m := request(t, "3", "a")
	lost := &connstate.Request{ID: m.ID, Message: m}
	w.c.Passed(lost)
	w.wait(request(t, "1", "a"), "waits")
	w.wait(request(t, "2", "a"), "waits")
	must(t, w.c.PutBack(w.c.Next(), false))
	w.checkGate(2, nil)
	must(t, w.c.Enqueue(lost, false)) // beyond the bound for new messages
	equal(t, "released", w.release(), []string{"a#1", "a#2", "a#3"})
}

// Its wait goes on: it has no new timeout.
func TestWhatIsPutBackHasNoNewTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connstate.Options{}, connstate.Client{}) // 5 s by default
		w.wait(request(t, "1", "a"), "waits")
		time.Sleep(3 * time.Second)
		next := w.c.Next()
		time.Sleep(time.Second)
		must(t, w.c.PutBack(next, false))
		time.Sleep(time.Second)
		synctest.Wait()
		equal(t, "refused", w.handler.refusals(), []string{"a#1: " + connstate.ErrGateTimeout.Error()})
	})
}

// After a drain nothing waits, nor goes back.
func TestNothingGoesBackAfterADrain(t *testing.T) {
	w := newWorld(t, connstate.Options{}, connstate.Client{})
	w.wait(request(t, "1", "a"), "waits")
	next := w.c.Next()
	_, err := w.c.Drain()
	must(t, err)
	ssetest.WantError(t, "PutBack", w.c.PutBack(next, false), connstate.ErrDraining)
}
