package multiplex_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

var shared = multiplex.Options{Shared: true}

func notification(method, params string) string {
	return `{"jsonrpc":"2.0","method":"` + method + `","params":` + params + `}`
}

func delivery(message string) string { return "deliver " + message }

func discard(w *world) {
	w.conn.take()
	for _, c := range w.clients {
		c.take()
	}
}

func cancelOf(id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
}

// step is one line of a conversation. After each, all goroutines have come to
// rest.
type step func(w *world)

func play(w *world, steps []step) {
	for _, s := range steps {
		s(w)
		synctest.Wait()
	}
}

// from has a client send messages.
func from(client int, msgs ...string) step {
	return func(w *world) {
		for _, m := range msgs {
			msg := parse(w, m)
			if err := w.callers[client].Forward(msg); err != nil {
				w.clients[client].note("not taken %s: %v", msg.ID, err)
			}
		}
	}
}

// forward is from for the first client.
func forward(msgs ...string) step { return from(0, msgs...) }

// server has the server send messages; they need not be valid.
func server(msgs ...string) step {
	return func(w *world) {
		for _, m := range msgs {
			w.conn.in <- incoming{data: []byte(m)}
		}
	}
}

// fault has the server's Recv report an error.
func fault(err error) step {
	return func(w *world) { w.conn.in <- incoming{err: err} }
}

// sending sets the error that Send returns from now on.
func sending(err error) step {
	return func(w *world) {
		w.conn.mu.Lock()
		defer w.conn.mu.Unlock()
		w.conn.sendErr = err
	}
}

// after lets time pass.
func after(d time.Duration) step { return func(*world) { time.Sleep(d) } }

// sent expects exactly these messages to have been sent to the server. A want
// that ends in * is a beginning.
func sent(want ...string) step {
	return func(w *world) {
		w.Helper()
		compare(w, "sent to the server", w.conn.take(), want)
	}
}

// at expects exactly these lines at a client.
func at(client int, want ...string) step {
	return func(w *world) {
		w.Helper()
		compare(w, fmt.Sprintf("client %d got", client), w.clients[client].take(), want)
	}
}

// got is at for the first client.
func got(want ...string) step { return at(0, want...) }

func gotInAnyOrder(want ...string) step {
	return func(w *world) {
		w.Helper()
		compare(w, "client 0 got", slices.Sorted(slices.Values(w.clients[0].take())), slices.Sorted(slices.Values(want)))
	}
}

// dropped expects so many dropped messages in all for a reason.
func dropped(reason string, want int) step {
	return func(w *world) {
		w.Helper()
		ssetest.Want(w, "dropped for "+reason, ssetest.Sum(w, w.metrics, "mcp_sse_messages_dropped_total", reason), want)
	}
}

func compare(w *world, what string, got, want []string) {
	w.Helper()
	equal := slices.EqualFunc(got, want, func(g, wanted string) bool {
		if begin, ok := strings.CutSuffix(wanted, "*"); ok {
			return strings.HasPrefix(g, begin)
		}
		return g == wanted
	})
	if !equal {
		w.Errorf("%s:\n got  %s\n want %s", what, strings.Join(got, "\n      "), strings.Join(want, "\n      "))
	}
}

// matched expects so many responses to have been matched in that way.
func matched(by string, want int) step {
	return func(w *world) {
		w.Helper()
		ssetest.Want(w, "matched by "+by, ssetest.Sum(w, w.metrics, "mcp_sse_responses_matched_total", by), want)
	}
}

// synctestWorld runs a conversation that needs what was seen to go on.
func synctestWorld(t *testing.T, s scenario, talk func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := s.world(t)
		talk(w)
		w.finish()
	})
}
