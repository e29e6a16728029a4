package connstate_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

func TestReleaseOnlyWhereTheTableHasIt(t *testing.T) {
	for _, from := range []connstate.State{connstate.Ready, connstate.Failed, connstate.Draining, connstate.Closed} {
		err := in(t, from).c.Release(func(m *jsonrpc.Message) { t.Errorf("from %v: released %v", from, m) })
		if _, ok := errors.AsType[*connstate.MoveError](err); !ok {
			t.Errorf("from %v: got %v", from, err)
		}
	}
}

// What comes while the gate is being emptied waits behind what is there.
func TestNothingOvertakesDuringRelease(t *testing.T) {
	w := newWorld(t, connstate.Options{}, connstate.Client{})
	w.admit(request(t, "1", "a"), "wait")
	w.admit(request(t, "2", "a"), "wait")
	var got []string
	must(t, w.c.Release(func(m *jsonrpc.Message) {
		if len(got) < 3 {
			w.admit(request(t, fmt.Sprint(3+len(got)), "a"), "wait")
		}
		got = append(got, label(m))
	}))
	if want := []string{"a#1", "a#2", "a#3", "a#4", "a#5"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	w.admit(request(t, "6", "a"), "pass")
}

func TestNothingOvertakesConcurrentArrivals(t *testing.T) {
	const clients, each = 8, 300
	w := newWorld(t, connstate.Options{GateQueue: clients * each}, connstate.Client{})
	var (
		mu  sync.Mutex
		log = make(map[string][]int) // by client
	)
	deliver := func(m *jsonrpc.Message) {
		mu.Lock()
		defer mu.Unlock()
		var n int
		fmt.Sscan(string(m.ID), &n)
		log[m.Method] = append(log[m.Method], n)
	}
	var messages [clients][each]*jsonrpc.Message
	for c := range clients {
		for i := range each {
			messages[c][i] = request(t, fmt.Sprint(i), fmt.Sprint("client", c))
		}
	}
	var arrivals sync.WaitGroup
	half := make(chan struct{}, clients)
	for c := range clients {
		arrivals.Go(func() {
			for i, m := range messages[c] {
				if i == each/4 {
					half <- struct{}{}
				}
				pass, err := w.c.AdmitMessage(m)
				if err != nil {
					t.Errorf("Admit: %v", err)
				}
				if pass {
					deliver(m)
				}
			}
		})
	}
	<-half
	must(t, w.c.Release(deliver))
	arrivals.Wait()
	for c := range clients {
		got := log[fmt.Sprint("client", c)]
		if len(got) != each || !slices.IsSorted(got) {
			t.Errorf("client %d: got %v", c, got)
		}
	}
	w.checkGate(0, nil)
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
			must(t, w.c.Release(func(m *jsonrpc.Message) {
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
					w.c.Close(metrics.ClosedClient)
				default:
					must(t, w.c.Move(leave))
				}
			}))
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

func TestGateShutsWhenTheSessionIsLost(t *testing.T) {
	w := newWorld(t, connstate.Options{}, connstate.Client{})
	w.release()
	w.admit(request(t, "1", "a"), "pass")
	must(t, w.c.Move(connstate.Initializing))
	w.admit(request(t, "2", "a"), "wait")
	w.admit(response(t, "3"), "wait")
	if got, want := w.release(), []string{"a#2", "#3"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
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
	must(t, w.c.Release(func(m *jsonrpc.Message) {
		first = append(first, label(m))
		if len(first) == 1 {
			must(t, w.c.Move(connstate.Initializing))
			must(t, w.c.Release(func(m *jsonrpc.Message) {
				second = append(second, label(m))
				if len(second) == 1 {
					// Lost again, and ready again, with messages left.
					must(t, w.c.Move(connstate.Initializing))
					must(t, w.c.Move(connstate.Ready))
				}
			}))
		}
	}))
	if len(first) != 1 || len(second) != 1 {
		t.Errorf("got %q by the first release and %q by the second, want one each", first, second)
	}
	w.checkGate(2, nil)
}

// Fail changes state and refusal in one step: the refusal of a failed start does not
// outlive the move to the next state.
func TestFailIsOneStep(t *testing.T) {
	w := newWorld(t, connstate.Options{}, connstate.Client{})
	m := request(t, "1", "a")
	for range 2000 {
		var next sync.WaitGroup
		next.Go(func() {
			for w.c.Move(connstate.Initializing) != nil {
				runtime.Gosched()
			}
		})
		if _, err := w.c.Fail(errors.New("refused")); err != nil {
			t.Fatal(err)
		}
		next.Wait()
		if _, err := w.c.AdmitMessage(m); err != nil {
			t.Fatalf("initializing: got %v", err)
		}
		w.c.WithdrawID(m.ID)
	}
}
