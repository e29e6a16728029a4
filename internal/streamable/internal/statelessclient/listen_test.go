package statelessclient_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/streamable/internal/statelessclient"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func listen(notifications, id string) ask {
	return ask{method: "subscriptions/listen", params: `{"notifications":` + notifications + `}`, id: id}
}

func changed(what string) string {
	return `{"jsonrpc":"2.0","method":"notifications/` + what + `/list_changed"}`
}

func updated(uri string) string {
	return `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"}}`
}

// A listener gets the acknowledgement, the notifications that it asked for, and the end.
func TestListen(t *testing.T) {
	bubble(t, quiet, func(t *testing.T, f *fixture) {
		r := f.begin(t, listen(`{"toolsListChanged":true,"resourceSubscriptions":["a:x","a:y","a:x"]}`, `"L"`))
		synctest.Wait()
		c := f.server.connections()[0]
		want(t, "subscriptions", c.received("resources/subscribe"), `[{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:x"}}`+
			` {"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"a:y"}}]`)
		for _, m := range []string{changed("tools"), changed("prompts"), changed("resources"), updated("a:x/part")} {
			c.send(nil, m)
		}
		synctest.Wait()
		c.Close("server")
		<-r.done
		const meta = `"_meta":{"io.modelcontextprotocol/subscriptionId":"L"`
		got := r.messages()
		for i, want := range []string{
			`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:x","a:y"]},` + meta + `}}}`,
			`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{` + meta + `}}}`,
			`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:x/part",` + meta + `}}}`,
			`{"jsonrpc":"2.0","id":"L","result":{` + meta + `,"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}},"resultType":"complete"}}`,
		} {
			if i >= len(got) || got[i] != want {
				t.Fatalf("message %d: got %q, want %s", i, got, want)
			}
		}
		want(t, "messages", len(got), 4)
		want(t, "buffering", r.Header().Get("X-Accel-Buffering"), "no")
	})
}

// A listener is told what it does not get.
func TestListenHonoursWhatTheServerHas(t *testing.T) {
	for _, tc := range []struct{ capabilities, want string }{
		{`{}`, `{}`},
		{`{"tools":{},"resources":{"listChanged":true}}`, `{"resourcesListChanged":true}`},
		{`{"prompts":{"listChanged":true},"resources":{"subscribe":true}}`, `{"promptsListChanged":true,"resourceSubscriptions":["a:x"]}`},
	} {
		bubble(t, quiet, func(t *testing.T, f *fixture) {
			f.server.capabilities = tc.capabilities
			r := f.begin(t, listen(`{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a:x"]}`, "1"))
			synctest.Wait()
			want(t, tc.capabilities, r.member("params", "notifications"), tc.want)
		})
	}
}

// The server sees the first subscriber of a resource, and the end of the last.
func TestListenersShareSubscriptions(t *testing.T) {
	bubble(t, quiet, func(t *testing.T, f *fixture) {
		a := f.begin(t, listen(`{"resourceSubscriptions":["a:x","a:y"]}`, "1"))
		synctest.Wait()
		b := f.begin(t, listen(`{"resourceSubscriptions":["a:y"]}`, "2"))
		synctest.Wait()
		c := f.server.connections()[0]
		want(t, "connections", len(f.server.connections()), 1)
		want(t, "subscriptions", len(c.received("resources/subscribe")), 2)
		c.send(nil, updated("a:x"))
		c.send(nil, updated("a:y"))
		synctest.Wait()
		want(t, "messages of the first", len(a.messages()), 3)
		want(t, "messages of the second", len(b.messages()), 2)
		want(t, "subscription of the second", b.member("params", "_meta"), `{"io.modelcontextprotocol/subscriptionId":2}`)
		a.cancel()
		<-a.done
		want(t, "unsubscriptions", c.received("resources/unsubscribe"), `[{"jsonrpc":"2.0","id":4,"method":"resources/unsubscribe","params":{"uri":"a:x"}}]`)
		b.cancel()
		<-b.done
		want(t, "unsubscriptions", len(c.received("resources/unsubscribe")), 2)
	})
}

// A listener that does not read ends, and listens again: it would miss a change.
func TestSlowListenerEnds(t *testing.T) {
	bubble(t, quiet, func(t *testing.T, f *fixture) {
		w, unblock := newResponse(), make(chan struct{})
		var armed atomic.Bool // the next write waits: the head and what comes first may be one or two
		go func() {
			defer close(w.done)
			f.post(hooked{w, func() error {
				if armed.CompareAndSwap(true, false) {
					<-unblock
				}
				return nil
			}}, listen(`{"resourceSubscriptions":["a:x"]}`, "1").request(t.Context()), "")
		}()
		synctest.Wait()
		armed.Store(true)
		c := f.server.connections()[0]
		c.send(nil, updated("a:x"))
		synctest.Wait()
		for range 300 {
			c.send(nil, updated("a:x/"+strings.Repeat("x", 5000)))
		}
		close(unblock)
		<-w.done
		if n := len(w.messages()); n < 100 || n > 299 || w.member("result", "resultType") != `"complete"` {
			t.Errorf("%d messages, the last one %s", n, w.last())
		}
	})
}

// stuck begins a request whose response waits in one of its writes, from 1, for unblock to
// be closed.
func (f *fixture) stuck(t *testing.T, a ask, at int) (w *response, unblock chan struct{}) {
	w, unblock = newResponse(), make(chan struct{})
	writes := 0
	go func() {
		defer close(w.done)
		f.post(hooked{w, func() error {
			if writes++; writes == at {
				<-unblock
			}
			return nil
		}}, a.request(t.Context()), "")
	}()
	synctest.Wait()
	return w, unblock
}

// Behind a middleware that hides http.Flusher there are no streams, but all answers.
func TestWithoutFlusher(t *testing.T) {
	f := newFixture(t, quiet)
	f.server.serve = func(c *conn, m *jsonrpc.Message) {
		c.send(m, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`)
		c.answer(m, `{}`)
	}
	for method, status := range map[string]int{"prompts/list": 200, "subscriptions/listen": 500} {
		rec := httptest.NewRecorder()
		f.post(struct{ http.ResponseWriter }{rec}, ask{method: method, params: `{"notifications":{}}`}.request(t.Context()), "")
		want(t, method, rec.Code, status)
		want(t, "type", rec.Header().Get("Content-Type"), "application/json")
	}
}

func TestProgress(t *testing.T) {
	f := newFixture(t, quiet)
	progress := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":%d}}`
	f.server.serve = func(c *conn, m *jsonrpc.Message) {
		c.send(m, fmt.Sprintf(progress, 1))
		c.send(nil, fmt.Sprintf(progress, 9)) // nobody knows whose that is
		c.send(m, fmt.Sprintf(progress, 2))
		c.answer(m, `{"done":true}`)
		c.send(m, fmt.Sprintf(progress, 3)) // too late
	}
	r := f.do(t, ask{method: "prompts/list", meta: `,"progressToken":"p"`})
	got := r.messages()
	want(t, "messages", len(got), 3)
	want(t, "first", got[0], fmt.Sprintf(progress, 1))
	want(t, "answer", r.member("result", "done"), true)
	if strings.Contains(r.text(), "\nid:") {
		t.Errorf("events have ids: %s", r.text())
	}
}

// A client that does not read its response loses progress, not the answer.
func TestSlowClientLosesProgress(t *testing.T) {
	bubble(t, quiet, func(t *testing.T, f *fixture) {
		var asked *jsonrpc.Message
		f.server.serve = func(c *conn, m *jsonrpc.Message) {
			asked = m
			c.send(m, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0}}`)
		}
		w, unblock := f.stuck(t, ask{method: "prompts/list"}, 1)
		c := f.server.connections()[0]
		for i := range 300 {
			c.send(asked, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":%d,"message":%q}}`, i, strings.Repeat("x", 5000)))
		}
		c.answer(asked, `{"done":true}`)
		close(unblock)
		<-w.done
		if n := len(w.messages()); n < 100 || n > 250 || w.member("result", "done") != "true" {
			t.Errorf("%d messages, the last one %s", n, w.last())
		}
	})
}

// An answer that is being written counts in the byte budget.
func TestAnswerCountsUntilItIsWritten(t *testing.T) {
	bubble(t, quiet, func(t *testing.T, f *fixture) {
		f.server.serve = func(c *conn, m *jsonrpc.Message) { c.answer(m, `"`+strings.Repeat("x", 1<<20)+`"`) }
		w, unblock := f.stuck(t, ask{method: "prompts/list"}, 1)
		if held := f.series(t, "mcp_sse_held_bytes"); held < 1<<20 {
			t.Errorf("%g bytes are held", held)
		}
		close(unblock)
		<-w.done
		want(t, "held bytes", f.series(t, "mcp_sse_held_bytes"), 0)
	})
}

const logLine = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":%q,"data":"d"}}`

func logging(level string) string { return `,"io.modelcontextprotocol/logLevel":"` + level + `"` }

// A request gets the log messages that it asks for, and no others. The server is told the
// lowest level.
func TestLogMessages(t *testing.T) {
	for _, capabilities := range []string{allCapabilities, `{}`} { // a server may send log messages all the same
		f := newFixture(t, quiet)
		f.server.capabilities = capabilities
		var related bool
		f.server.serve = func(c *conn, m *jsonrpc.Message) {
			from := m
			if !related {
				from = nil
			}
			for _, level := range []string{"debug", "info", "error"} {
				c.send(from, fmt.Sprintf(logLine, level))
			}
			c.answer(m, `{}`)
		}
		for _, step := range []struct {
			level string
			lines int
		}{{"", 0}, {"info", 2}, {"error", 1}, {"emergency", 0}, {"", 0}, {"debug", 3}} {
			for _, related = range []bool{true, false} {
				a := ask{method: "prompts/get", params: `{"name":"p"}`}
				if step.level != "" {
					a.meta = logging(step.level)
				}
				want(t, "lines from "+step.level, len(f.do(t, a).messages())-1, step.lines)
			}
		}
		want(t, "connections", len(f.server.connections()), 1)
		told := f.server.connections()[0].received("logging/setLevel")
		if capabilities == allCapabilities && (len(told) != 2 || !strings.Contains(told[0], "info") || !strings.Contains(told[1], "debug")) ||
			capabilities != allCapabilities && len(told) > 0 {
			t.Errorf("with %s the server was told %q", capabilities, told)
		}
	}
}

// A message of the server about one of several calls reaches no other call: a log message of an
// unknown call reaches none, and a request for input only the call that it names.
func TestMessagesOfOneOfSeveralCalls(t *testing.T) {
	bubble(t, quiet, func(t *testing.T, f *fixture) {
		var calls []*jsonrpc.Message
		f.server.serve = func(_ *conn, m *jsonrpc.Message) { calls = append(calls, m) }
		var all []*response
		for _, method := range []string{"prompts/get", "prompts/list"} { // one that may ask, one that may not
			all = append(all, f.begin(t, ask{method: method, params: `{"name":"p"}`, capabilities: askAll, meta: logging("debug")}))
			synctest.Wait()
		}
		c := f.server.connections()[0]
		c.send(nil, fmt.Sprintf(logLine, "error"))
		c.send(calls[1], `{"jsonrpc":"2.0","id":"x","method":"roots/list"}`)
		pause(time.Second) // until a client that may be asked is asked
		for _, m := range calls {
			c.answer(m, `{}`)
		}
		for _, r := range all {
			<-r.done
			want(t, "messages", len(r.messages()), 1)
			want(t, "result type", r.member("result", "resultType"), `"complete"`)
		}
		want(t, "connections", len(f.server.connections()), 1)
		want(t, "refusals", len(c.received("response")), 1)
	})
}

// A server that does not answer the end of one listener's subscriptions holds up no other
// listener, and keeps the first one's request only for a while.
func TestSilentServerHoldsUpNoOtherListener(t *testing.T) {
	bubble(t, quiet, func(t *testing.T, f *fixture) {
		f.server.silent = []string{"resources/unsubscribe"}
		a := f.begin(t, listen(`{"resourceSubscriptions":["a:x","a:y","a:z"]}`, "1"))
		synctest.Wait()
		c := f.server.connections()[0]
		a.cancel()
		synctest.Wait()
		want(t, "unsubscriptions", len(c.received("resources/unsubscribe")), 1)
		b := f.begin(t, listen(`{"resourceSubscriptions":["b:x"]}`, "2"))
		pause(5 * time.Second)
		want(t, "what the second gets", b.member("params", "notifications"), `{"resourceSubscriptions":["b:x"]}`)
		c.send(nil, updated("b:x"))
		synctest.Wait()
		want(t, "messages of the second", len(b.messages()), 2)
		pause(10 * time.Second)
		select {
		case <-a.done:
		default:
			t.Error("the first one's request waits for the server")
		}
		want(t, "unsubscriptions", len(c.received("resources/unsubscribe")), 1)
	})
}

// A listener whose server does not answer sees heartbeats, and then what it gets. It uses
// its connection.
func TestSilentServerWhileSubscribing(t *testing.T) {
	bubble(t, statelessclient.Options{Options: httpcheck.Options{HeartbeatInterval: time.Second}, IdleTimeout: time.Minute}, func(t *testing.T, f *fixture) {
		f.server.silent = []string{"resources/subscribe"}
		r := f.begin(t, listen(`{"toolsListChanged":true,"resourceSubscriptions":["a:x","a:y"]}`, "1"))
		pause(4500 * time.Millisecond)
		want(t, "heartbeats", strings.Count(r.text(), ": heartbeat\n\n"), 4)
		want(t, "messages", len(r.messages()), 0)
		pause(10 * time.Second)
		want(t, "what it gets", r.member("params", "notifications"), `{"toolsListChanged":true}`)
		want(t, "subscriptions", len(f.server.connections()[0].received("resources/subscribe")), 1)
		pause(10 * time.Minute)
		want(t, "open connections", f.registry.Len(), 1)
	})
}

// A client that goes while the server is asked leaves nothing behind.
func TestListenerThatLeavesWhileSubscribing(t *testing.T) {
	bubble(t, quiet, func(t *testing.T, f *fixture) {
		f.server.silent = []string{"resources/subscribe"}
		r := f.begin(t, listen(`{"resourceSubscriptions":["a:x","a:y"]}`, "1"))
		synctest.Wait()
		r.cancel()
		<-r.done
		c := f.server.connections()[0]
		want(t, "subscriptions", len(c.received("resources/subscribe")), 1)
		want(t, "cancellations", len(c.received("notifications/cancelled")), 1)
		want(t, "unsubscriptions", len(c.received("resources/unsubscribe")), 1) // the server may have subscribed it
	})
}
