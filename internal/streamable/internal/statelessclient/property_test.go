package statelessclient_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/streamable/internal/statelessclient"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Whatever happens, each client gets only what belongs to its own requests: it calls,
// asks, logs and reports under the caller's mark, while clients leave and connections end.
func TestNothingCrosses(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			o := statelessclient.Options{Options: quiet.Options, IdleTimeout: 10 * time.Second}
			bubble(t, o, func(t *testing.T, f *fixture) {
				f.SetLimits(3, 12)
				w := &marked{random: rand.New(rand.NewPCG(seed, 1)), calls: make(map[jsonrpc.ID]*markedCall)}
				f.server.serve, f.server.responded = w.serve, w.responded
				var clients sync.WaitGroup
				for i := range 6 {
					random := rand.New(rand.NewPCG(seed, uint64(i+2)))
					clients.Go(func() { client(t, f, random, fmt.Sprintf("p%d", i%3)) })
				}
				for range 5 {
					time.Sleep(w.wait(4 * time.Second))
					all := f.server.connections()
					all[w.pick(len(all))].Close("server")
				}
				clients.Wait()
				pause(10 * time.Minute) // what the server still sends
			})
		})
	}
}

// marked is a server that marks all that it sends with the mark of the call.
type marked struct {
	mu     sync.Mutex // guards all below
	random *rand.Rand
	last   int
	calls  map[jsonrpc.ID]*markedCall // by the ids of the server's requests
}

type markedCall struct {
	m    *jsonrpc.Message
	mark string
}

func (w *marked) pick(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

func (w *marked) wait(most time.Duration) time.Duration { return time.Duration(w.pick(int(most))) }

func (w *marked) serve(c *conn, m *jsonrpc.Message) {
	mark, _ := rawjson.MemberText(m.Params(), "arguments", "mark")
	w.next(c, &markedCall{m, mark})
}

// next does one more thing for a call, later.
func (w *marked) next(c *conn, k *markedCall) {
	what := w.pick(4)
	time.AfterFunc(w.wait(time.Second), func() {
		switch what {
		case 0:
			c.answer(k.m, fmt.Sprintf(`{"mark":%q}`, k.mark))
			return
		case 1:
			w.mu.Lock()
			w.last++
			id := jsonrpc.ID(fmt.Sprintf(`"s%d"`, w.last))
			w.calls[id] = k
			w.mu.Unlock()
			c.send(nil, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"elicitation/create","params":{"mark":%q}}`, id, k.mark))
			return // the response goes on
		case 2:
			c.send(k.m, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"mark":%q}}`, k.mark))
		default:
			c.send(nil, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","mark":%q}}`, k.mark))
		}
		w.next(c, k)
	})
}

// responded goes on with the call whose request was answered last.
func (w *marked) responded(c *conn) {
	got := c.received("response")
	m, err := jsonrpc.Parse([]byte(got[len(got)-1]))
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	k := w.calls[m.ID]
	delete(w.calls, m.ID)
	w.mu.Unlock()
	if k == nil {
		return
	}
	if raw, ok := rawjson.Member(m.Result(), "mark"); ok && string(raw) != fmt.Sprintf("%q", k.mark) {
		c.s.wrong("the server asked for %s and got %s", k.mark, raw)
	}
	w.next(c, k)
}

// client calls with marks of its own, and answers what it is asked with the same mark.
func client(t *testing.T, f *fixture, random *rand.Rand, principal string) {
	for n := range 12 {
		mark := fmt.Sprintf("%s-%d-%d", principal, n, random.Uint64())
		a := ask{
			method: "tools/call", principal: principal, params: fmt.Sprintf(`{"name":"t","arguments":{"mark":%q}}`, mark),
			capabilities: []string{askAll, `{}`}[random.IntN(2)], meta: []string{"", logging("debug")}[random.IntN(2)],
		}
		for next := a; next.method != ""; {
			r := f.begin(t, next)
			if random.IntN(8) == 0 {
				time.Sleep(time.Duration(random.IntN(int(time.Second))))
				r.cancel()
			}
			<-r.done
			for _, m := range r.messages() {
				if i := strings.Index(m, `"mark":`); i >= 0 && !strings.Contains(m[i:], mark) {
					t.Errorf("%s got %s", mark, m)
				}
			}
			next = ask{}
			if r.member("result", "resultType") == `"input_required"` && random.IntN(6) > 0 {
				answers := make([]string, 0, 4)
				for i := range 40 { // all that it may have been asked
					answers = append(answers, fmt.Sprintf(`"elicitation-%d":{"mark":%q}`, i, mark))
				}
				next = retry(t, r, a, "{"+strings.Join(answers, ",")+"}")
			}
		}
	}
	synctest.Wait()
}
