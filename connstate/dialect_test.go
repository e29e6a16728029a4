package connstate_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// post is a client's message and the MCP-Protocol-Version that came with it.
type post struct{ message, version string }

const (
	initialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`
	list        = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	notInit     = `{"jsonrpc":"2.0","method":"initialize"}` // a notification of that name opens nothing
)

// Design §4, event names of responses.
func TestDialect(t *testing.T) {
	const message, mcp = connstate.EventMessage, connstate.EventResponse
	both := []string{message + ":r", mcp + ":r"}
	for _, tc := range []struct {
		name       string
		chosen     connstate.Dialect
		getVersion string
		posts      []post
		responses  []string // events of a response
		requests   string   // event name of the server's requests
		version    string
	}{
		{"nothing came yet", "", "", nil, both, message, ""},
		{"initialize first", "", "", []post{{initialize, ""}}, []string{"message:r"}, message, ""},
		{"a request first", "", "", []post{{list, ""}}, both, message, ""},
		{"a notification named initialize", "", "", []post{{notInit, ""}}, both, message, ""},
		{"initialize second", "", "", []post{{list, ""}, {initialize, ""}}, both, message, ""},
		{"GET with a version", "", "2025-06-18", nil, []string{"message:r"}, message, "2025-06-18"},
		{"first POST with a version", "", "", []post{{list, "2025-03-26"}}, []string{"message:r"}, message, "2025-03-26"},
		{"later POST with a version", "", "", []post{{list, ""}, {list, ""}, {list, "2025-03-26"}}, []string{"message:r"}, message, "2025-03-26"},
		{"the first version stands", "", "2025-06-18", []post{{list, "2025-03-26"}}, []string{"message:r"}, message, "2025-06-18"},
		{"chosen mcp-response", mcp, "", nil, []string{"mcp-response:r"}, mcp, ""},
		{"chosen mcp-response, initialize first", mcp, "", []post{{initialize, ""}}, []string{"mcp-response:r"}, mcp, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, connstate.Options{}, connstate.Client{Dialect: tc.chosen})
			if tc.getVersion != "" {
				w.c.SawVersion(tc.getVersion)
			}
			for _, p := range tc.posts {
				w.c.Observe(parse(t, p.message), p.version)
			}
			w.attach(100)
			w.c.RespondNow("", []byte("r"))
			must(t, w.c.Send("", []byte("s")))
			w.c.RespondNow("", []byte("r"))
			want := append(append(append([]string{}, tc.responses...), tc.requests+":s"), tc.responses...)
			w.stream.check(t, want...)
			s := w.c.Snapshot()
			if s.ProtocolVersion != tc.version || s.MessagesIn != int64(len(tc.posts)) {
				t.Errorf("got version %q and %d messages in, want %q and %d", s.ProtocolVersion, s.MessagesIn, tc.version, len(tc.posts))
			}
			equal(t, "counted", w.series(`mcp_sse_messages_total{direction="out"}`), float64(len(want)))
		})
	}
}

// Design §4, event 3: not before the announce delay, unless a message that
// opens nothing has come; never when the client's own opening came first.
func TestAnnouncement(t *testing.T) {
	const delay = 100 * time.Millisecond // the default
	opening := func(w *world) { w.c.Observe(parse(t, initialize), "") }
	other := func(w *world) { w.c.Observe(parse(t, list), "") }
	announce := func(text string) func(*world) {
		return func(w *world) { w.announce(text) }
	}
	endpoint := func(w *world) { w.c.StartAnnounceDelay() }
	sleep := func(d time.Duration) func(*world) {
		return func(*world) { time.Sleep(d); synctest.Wait() }
	}
	has := func(want ...string) func(*world) {
		return func(w *world) { w.t.Helper(); w.stream.check(w.t, want...) }
	}
	for _, tc := range []struct {
		name  string
		quiet bool
		steps []func(*world)
	}{
		{"held until the delay is over", false, []func(*world){
			endpoint, announce("a"), announce("b"), sleep(delay - 1), has(), sleep(1), has("mcp-response:a", "mcp-response:b"),
		}},
		{"at once after the delay", false, []func(*world){endpoint, sleep(delay), announce("a"), has("mcp-response:a")}},
		{"held until the endpoint is written", false, []func(*world){announce("a"), sleep(time.Hour), has(), endpoint, sleep(delay), has("mcp-response:a")}},
		{"released by another message", false, []func(*world){endpoint, announce("a"), other, has("mcp-response:a"), announce("b"), has("mcp-response:a", "mcp-response:b")}},
		{"released early by another message", false, []func(*world){endpoint, other, announce("a"), has("mcp-response:a"), sleep(delay), has("mcp-response:a")}},
		{"suppressed by an opening", false, []func(*world){endpoint, announce("a"), opening, sleep(delay), announce("b"), other, has()}},
		{"an opening after another message comes too late", false, []func(*world){endpoint, other, opening, announce("a"), has("mcp-response:a")}},
		{"an opening after the delay comes too late", false, []func(*world){endpoint, sleep(delay), opening, announce("a"), has("mcp-response:a")}},
		{"withheld from a quiet client", true, []func(*world){endpoint, announce("a"), sleep(delay), other, announce("b"), has()}},
		{"never after the end", false, []func(*world){
			endpoint, announce("a"), func(w *world) { w.c.Close(connstate.ClosedClient) }, sleep(delay), announce("b"), has(),
		}},
		{"no delay after the end", false, []func(*world){func(w *world) { w.c.Close(connstate.ClosedClient) }, endpoint, sleep(delay), has()}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, connstate.Options{}, connstate.Client{Quiet: tc.quiet})
				w.attach(100)
				for _, step := range tc.steps {
					step(w)
				}
			})
		})
	}
}

// An announcement that cannot be delivered is reported, with the reason, and only
// then: at once, when the delay is over, and when the client does not read it.
func TestAnnouncementThatIsNotDelivered(t *testing.T) {
	for _, tc := range []struct {
		name  string
		steps func(w *world, announce func())
		want  int
	}{
		{"no room", func(w *world, announce func()) {
			w.c.StartAnnounceDelay()
			must(t, w.c.Send("", sized("a", 1000)))
			announce()
		}, 1},
		{"not read", func(w *world, announce func()) {
			w.c.StartAnnounceDelay()
			announce()
			w.c.Close(connstate.ClosedWriteTimeout)
		}, 1},
		{"held until the end of a client that does not read", func(w *world, announce func()) {
			announce()
			w.c.Close(connstate.ClosedSlow)
		}, 1},
		{"reset by a client that leaves", func(w *world, announce func()) {
			w.c.StartAnnounceDelay()
			announce()
			w.c.Close(connstate.ClosedWriteError)
		}, 0},
		{"written", func(w *world, announce func()) {
			w.attach(100)
			w.c.StartAnnounceDelay()
			announce()
			w.stream.write(1)
			w.c.Close(connstate.ClosedWriteTimeout)
		}, 0},
		{"not wanted", func(w *world, announce func()) {
			w.c.Observe(parse(t, initialize), "")
			announce()
			w.c.Close(connstate.ClosedSlow)
		}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, connstate.Options{OutboxBytes: 1000, AnnounceDelay: -1}, connstate.Client{})
			var failed int
			tc.steps(w, func() {
				w.c.Announce([]byte("x"), func(err error) {
					failed++
					w.c.SawFailure(metrics.PhaseResponseSending, metrics.ReasonSendFailed) // no lock is held
					if err == nil {
						t.Error("no reason")
					}
				})
			})
			equal(t, "reports", failed, tc.want)
		})
	}
}

// announce sends an announcement that is delivered.
func (w *world) announce(text string) {
	w.c.Announce([]byte(text), func(err error) { w.t.Errorf("announcement %s: %v", text, err) })
}

// Many POSTs at once: one of them is the first, and decides alone.
func TestObserveDecidesOnce(t *testing.T) {
	opening, other := parse(t, initialize), parse(t, list)
	for range 300 {
		w := newWorld(t, connstate.Options{}, connstate.Client{})
		w.attach(100)
		w.announce("a")
		var posts sync.WaitGroup
		for _, m := range []*jsonrpc.Message{opening, other, opening, other} {
			posts.Go(func() { w.c.Observe(m, "") })
		}
		posts.Wait()
		announced := len(w.stream.got()) == 1
		if standard := w.c.Dialect() == connstate.EventMessage; standard == announced {
			t.Fatalf("announced %v to a client with dialect %q", announced, w.c.Dialect())
		}
		equal(t, "messages in", w.c.Snapshot().MessagesIn, 4)
	}
}
