package connstate_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// What comes while the gate is being emptied waits behind what is there. If the session is
// lost meanwhile, all of it waits for the next one, and the release that was interrupted
// does not go on beside the next.
func TestReleaseStopsWhenTheConnectionLeavesReady(t *testing.T) {
	for _, moves := range [][]connstate.State{{connstate.Initializing}, {connstate.Initializing, connstate.Ready}} {
		w := newWorld(t, connstate.Options{}, connstate.Client{})
		for i := range 4 {
			w.admit(request(t, fmt.Sprint(i), "a"), "wait")
		}
		var first []string
		w.releaseTo(func(m *jsonrpc.Message) {
			first = append(first, label(m))
			if len(first) == 1 {
				w.admit(request(t, "4", "a"), "wait")
				return
			}
			for _, to := range moves {
				must(t, w.c.Move(to))
			}
		})
		_ = w.c.Move(connstate.Initializing)
		if second := w.release(); !slices.Equal(first, []string{"a#0", "a#1"}) || !slices.Equal(second, []string{"a#2", "a#3", "a#4"}) {
			t.Errorf("got %q, then %q", first, second)
		}
	}
}

// What a session does not take goes back to the front, and waits for the next one beside
// what comes back from a lost session.
func TestWhatIsNotTakenGoesBackToTheFront(t *testing.T) {
	w := newWorld(t, connstate.Options{GateQueue: 2}, connstate.Client{})
	w.release()
	lost := w.admit(request(t, "3", "a"), "pass")
	must(t, w.c.Move(connstate.Initializing))
	w.admit(request(t, "1", "a"), "wait")
	w.admit(request(t, "2", "a"), "wait")
	release, err := w.c.Open()
	must(t, err)
	release(func(*connstate.Request) bool { return false })
	w.checkGate(2, nil)
	must(t, w.c.Move(connstate.Initializing))
	if pass, err := w.c.Admit(lost); pass || err != nil {
		t.Errorf("beyond the bound for new messages: got %v, %v, want it to wait", pass, err)
	}
	equal(t, "released", w.release(), []string{"a#1", "a#2", "a#3"})
}
