package connstate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/scaletest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// However much a client or a server sends, the time for each message does not grow
// with the number of those before.
func TestConnectionsTakeTimeInProportion(t *testing.T) {
	opts := connstate.Options{OutboxBytes: 1 << 30, MaxPending: 1 << 30, GateQueue: 1 << 30}
	requests := func(n int) (all []*jsonrpc.Message) {
		for id := range n {
			all = append(all, request(t, fmt.Sprint(id), "m"))
		}
		return all
	}
	for name, act := range map[string]func(w *world, n int){
		"first messages of any length": func(w *world, n int) {
			m := parse(w.t, `{"jsonrpc":"2.0","id":1,"method":"m","params":["`+strings.Repeat("x", n)+`"]}`)
			w.c.Observe(m, strings.Repeat("2", n))
		},
		"requests and their answers": func(w *world, n int) {
			all := requests(n)
			w.attach(2 * n)
			for _, m := range all {
				w.c.Observe(m, "")
				must(w.t, w.c.Begin(m.ID, m.Method))
			}
			for _, m := range all {
				w.c.AnswerNow(m.ID, []byte(`{}`), "")
			}
			for _, m := range all {
				w.c.AnswerNow(m.ID, []byte(`{}`), "")
			}
		},
		"an outbox of small messages": func(w *world, n int) {
			for range n {
				must(w.t, w.c.Push(connstate.Event{Name: "message", Data: []byte("{}")}))
			}
			w.attach(n)
		},
		"an outbox that is emptied one by one": func(w *world, n int) {
			w.attach(1)
			for range n {
				must(w.t, w.c.Push(connstate.Event{Name: "message", Data: []byte("{}")}))
			}
			for range n {
				w.stream.write(1)
			}
		},
		"the gate": func(w *world, n int) {
			all := requests(n)
			for _, m := range all {
				must(w.t, w.c.Begin(m.ID, m.Method))
				_, err := w.c.Admit(m)
				must(w.t, err)
			}
			must(w.t, w.c.Release(func(*jsonrpc.Message) {}))
		},
		"cancellations of what does not wait": func(w *world, n int) {
			for id := range n {
				w.c.Withdraw(jsonrpc.ID(fmt.Sprint(id)))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			scaletest.Linear(t, 600, func(n int) func() {
				return func() {
					w := newWorld(t, opts, connstate.Client{})
					defer w.c.Close("client")
					act(w, n)
				}
			})
		})
	}
}
