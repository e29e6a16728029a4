package connstate_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// What comes while the gate is being emptied waits behind what is there.
func TestNothingOvertakesDuringRelease(t *testing.T) {
	w := newWorld(t, connstate.Options{}, connstate.Client{})
	w.admit(request(t, "1", "a"), "wait")
	w.admit(request(t, "2", "a"), "wait")
	var got []string
	w.releaseTo(func(m *jsonrpc.Message) {
		if len(got) < 3 {
			w.admit(request(t, fmt.Sprint(3+len(got)), "a"), "wait")
		}
		got = append(got, label(m))
	})
	if want := []string{"a#1", "a#2", "a#3", "a#4", "a#5"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	w.admit(request(t, "6", "a"), "pass")
}

// The session is lost while the gate is being emptied: the rest waits for the
// next one, before what comes later.
func TestReleaseStopsWhenTheConnectionLeavesReady(t *testing.T) {
	for _, leave := range []connstate.State{connstate.Initializing, connstate.Draining, connstate.Closed} {
		t.Run(leave.String(), func(t *testing.T) {
			w := newWorld(t, connstate.Options{}, connstate.Client{})
			for i := range 4 {
				w.admit(request(t, fmt.Sprint(i), "a"), "wait")
			}
			var got []string
			w.releaseTo(func(m *jsonrpc.Message) {
				got = append(got, label(m))
				if len(got) < 2 {
					return
				}
				switch leave {
				case connstate.Draining:
					if _, err := w.c.Drain(); err != nil {
						t.Error(err)
					}
				case connstate.Closed:
					w.c.Close(connstate.ClosedClient)
				default:
					must(t, w.c.Move(leave))
				}
			})
			if want := []string{"a#0", "a#1"}; !slices.Equal(got, want) {
				t.Fatalf("got %q, want %q", got, want)
			}
			if leave != connstate.Initializing {
				w.checkGate(0, map[string]float64{metrics.GateClosed: 2})
				return
			}
			w.checkGate(2, nil)
			w.admit(request(t, "4", "a"), "wait")
			if got, want := w.release(), []string{"a#2", "a#3", "a#4"}; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// A release that was interrupted does not go on beside the next one: its
// messages would go to the session that was lost.
func TestAnInterruptedReleaseStaysInterrupted(t *testing.T) {
	w := newWorld(t, connstate.Options{}, connstate.Client{})
	for i := range 4 {
		w.admit(request(t, fmt.Sprint(i), "a"), "wait")
	}
	var first, second []string
	w.releaseTo(func(m *jsonrpc.Message) {
		first = append(first, label(m))
		if len(first) == 1 {
			must(t, w.c.Move(connstate.Initializing))
			w.releaseTo(func(m *jsonrpc.Message) {
				second = append(second, label(m))
				if len(second) == 1 {
					// Lost again, and ready again, with messages left.
					must(t, w.c.Move(connstate.Initializing))
					must(t, w.c.Move(connstate.Ready))
				}
			})
		}
	})
	if len(first) != 1 || len(second) != 1 {
		t.Errorf("got %q by the first release and %q by the second, want one each", first, second)
	}
	w.checkGate(2, nil)
}

// What a session does not take goes back to the front, and waits for the next one beside
// what comes back from a lost session.
func TestWhatIsNotTakenGoesBackToTheFront(t *testing.T) {
	w := newWorld(t, connstate.Options{GateQueue: 2}, connstate.Client{})
	w.admit(request(t, "1", "a"), "wait")
	w.admit(request(t, "2", "a"), "wait")
	release, err := w.c.Open()
	must(t, err)
	release(func(*connstate.Request) bool { return false })
	w.checkGate(2, nil)
	must(t, w.c.Move(connstate.Initializing))
	if pass, err := w.c.Readmit(&connstate.Request{Message: request(t, "3", "a")}); pass || err != nil {
		t.Errorf("beyond the bound for new messages: got %v, %v, want it to wait", pass, err)
	}
	if got, want := w.release(), []string{"a#1", "a#2", "a#3"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
