package streamable_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/signedid"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/streamable"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// restart ends the gateway as a crash does, and returns it started again with other options.
func (f *fixture) restart(opts streamable.Options) *fixture {
	f.t.Helper()
	f.stop()
	return newFixture(f.t, opts, connstate.Limits{})
}

// After a restart a client goes on under its id, also with several requests at once.
func TestSessionsGoOnAfterARestart(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		id, another := f.initialize("2025-06-18"), f.initialize("2025-06-18")
		f = f.restart(streamable.Options{})
		defer f.stop()
		replies := make(chan *reply)
		for n := range 20 {
			go func() {
				replies <- f.post(request(fmt.Sprint(n), "echo"), in(id, "Mcp-Protocol-Version", "2025-06-18")...)
			}()
		}
		for range 20 {
			res := <-replies
			if got := res.Header.Get("Mcp-Session-Id"); res.StatusCode != http.StatusOK || got != "" && got != id {
				t.Errorf("got %s %s, session %q", res.Status, res.rest(), got)
			}
			res.close()
		}
		ssetest.Want(t, "version of the session", f.backend.last().Client().Version, "2025-06-18")
		time.Sleep(2 * time.Minute) // longer than a session may live that its client has not used
		f.post(request("1", "echo"), in(id)...).want(http.StatusOK, result("1"))
		ssetest.Want(t, "sessions that were opened", f.backend.opened(), 1)
		f.post(`{"jsonrpc":"2.0","method":"notifications/a"}`, in(another)...).want(http.StatusAccepted, "")
	})
}

// A session that was closed because it was idle goes on. One that its client has ended does
// not, whether the process knows it or not.
func TestSessionsGoOnAfterTheirIdleTimeout(t *testing.T) {
	bubble(t, streamable.Options{SessionTimeout: 10 * time.Minute}, connstate.Limits{}, func(f *fixture) {
		ids := []string{f.initialize("2025-11-25"), f.initialize("2025-11-25"), f.initialize("2025-11-25")}
		f.do(http.MethodDelete, "", in(ids[1])...).want(http.StatusNoContent, "")
		time.Sleep(time.Hour)
		synctest.Wait()
		ssetest.Want(t, "sessions that are open", f.registry.Len(), 0)
		f.do(http.MethodDelete, "", in(ids[2])...).want(http.StatusNoContent, "")
		for i, status := range []int{http.StatusOK, http.StatusNotFound, http.StatusNotFound} {
			f.post(request("1", "echo"), in(ids[i])...).wantStatus(status)
		}
	})
}

// Where the gateway initializes no session, no session goes on.
func TestNothingGoesOnWithoutAHandshake(t *testing.T) {
	bubble(t, streamable.Options{RequireInitialize: true}, connstate.Limits{}, func(f *fixture) {
		id := f.initialize("2025-11-25")
		f = f.restart(streamable.Options{RequireInitialize: true})
		defer f.stop()
		f.wantGone(in(id)...)
	})
}

// After a restart a GET comes back with an event of the process before, first or when there
// have been others. It misses no event of this one, whatever number it had read.
func TestGETAfterARestart(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		id := f.initialize("2025-11-25")
		for _, last := range []string{"", "0-1", "0-7", "0-9007199254740991"} {
			f = f.restart(streamable.Options{})
			res := f.do(http.MethodGet, "", in(id, "Mcp-Protocol-Version", "2025-11-25", "Last-Event-ID", last)...)
			if res.StatusCode != http.StatusOK {
				t.Errorf("after %q: %s: %s", last, res.Status, res.rest())
			}
			_ = f.backend.last().Send("", []byte(changed))
			if _, data := res.next(); data != changed {
				t.Errorf("after %q: got %s", last, data)
			}
			res.close()
			f = f.restart(streamable.Options{})
			f.post(request("1", "echo"), in(id)...).want(http.StatusOK, result("1"))
			_ = f.backend.last().Send("", []byte(changed))
			_ = f.backend.last().Send("", []byte(note(2)))
			res = f.do(http.MethodGet, "", in(id, "Last-Event-ID", last)...)
			first, data := res.next()
			if _, next := res.next(); data != changed || next != note(2) {
				t.Errorf("after %q: got %s %s", last, data, next)
			}
			res.close()
			res = f.do(http.MethodGet, "", in(id, "Last-Event-ID", first)...) // of this process
			if _, data := res.next(); data != note(2) {
				t.Errorf("after %q, and %s: got %s", last, first, data)
			}
			res.close()
			ssetest.Want(t, "messages that count as dropped", f.count("mcp_sse_messages_dropped_total"), 0)
		}
		f.stop()
	})
}

// A client that was cut in a call comes back to a process that knows nothing of the call: it
// gets an error that says whether it may repeat it, and then has nothing to come back for.
func TestCallsThatARestartLoses(t *testing.T) {
	for name, test := range map[string]struct {
		version, id string
		answer      bool // the session goes on before the client comes back
		batch       int
	}{
		"a number":         {version: "2025-11-25", id: "7"},
		"in a session":     {version: "2025-11-25", id: `"a-b\"<\u0000"`, answer: true},
		"a long id":        {version: "2025-11-25", id: `"` + strings.Repeat("x", 1022) + `"`},
		"without a primer": {version: "2025-06-18", id: "-1.5e3"},
		"a batch":          {version: "2025-03-26", id: "1", batch: 3},
	} {
		t.Run(name, func(t *testing.T) {
			repeatable := func(m *jsonrpc.Message) bool { return m.Method == "read" }
			opts := streamable.Options{Repeatable: repeatable}
			bubble(t, opts, connstate.Limits{}, func(f *fixture) {
				for _, method := range []string{"read", "write"} {
					session := f.initialize(test.version)
					body, ids := strings.Replace(request("0", method), `"id":0`, `"id":`+test.id, 1), []string{test.id}
					if test.batch > 0 {
						body, ids = "["+request("1", method)+","+request("2", method)+","+request("3", method)+"]", []string{"2", "3"}
					}
					res := f.post(body, in(session)...)
					c := f.backend.last()
					if test.version < "2025-11-25" { // no event yet: the client could not come back
						_ = c.Send(jsonrpc.ID(test.id), []byte(note(1)))
					}
					last, _ := res.nextWhole()
					if test.batch > 0 {
						answer(c, "1", []byte(result("1")), "")
						last, _ = res.nextWhole()
					}
					res.close()
					f = f.restart(opts)
					if test.answer {
						f.post(request("1", "echo"), in(session)...).want(http.StatusOK, result("1"))
					}
					back := time.Now()
					res = f.do(http.MethodGet, "", in(session, "Last-Event-ID", last)...)
					for _, id := range ids {
						var data string
						last, data = res.nextWhole()
						want := fmt.Sprintf(`"data":{"reason":"events_lost","retryable":%t}`, method == "read")
						if !strings.Contains(data, `"id":`+id+`,"error"`) || !strings.Contains(data, want) {
							t.Errorf("%s: got %s", method, data)
						}
					}
					res.wantEnd()
					if took := time.Since(back); took > time.Second {
						t.Errorf("%s: the errors took %s", method, took)
					}
					f.do(http.MethodGet, "", in(session, "Last-Event-ID", last)...).want(http.StatusNoContent, "")
				}
				f.stop()
			})
		})
	}
}

// The TypeScript SDK 1 comes back after an error that ends a stream, and would for ever.
func TestNobodyComesBackForNothing(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		id := f.initialize("2025-11-25")
		res := f.post(request("1", "never"), in(id)...)
		res.wantEvent("2-1", "")
		answer(f.backend.last(), "1", jsonrpc.NewError("1", jsonrpc.Errorf(-32000, "no")), "-32000")
		last, _ := res.nextWhole()
		res.wantEnd()
		f.do(http.MethodGet, "", in(id, "Last-Event-ID", last)...).want(http.StatusNoContent, "")
	})
}

// An event that nobody has sent is refused: what it says is not JSON-RPC.
func TestForgedEvents(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		id := f.initialize("2025-11-25")
		f = f.restart(streamable.Options{})
		defer f.stop()
		for _, list := range []string{"null", "{}", "[1]", "true", "1,", "01", "1 ", `"a`, "1],[2", strings.Repeat("1,", 101) + "1", `"` + strings.Repeat("x", 2000) + `"`} {
			last := "2-1-r" + base64.RawURLEncoding.EncodeToString([]byte(list))
			f.do(http.MethodGet, "", in(id, "Last-Event-ID", last)...).wantStatus(http.StatusBadRequest)
		}
		for _, last := range []string{"2-1-", "2-1-x", "2-1-rMQ=", "2-1-rMQ-", "2-1-qMQ", "2-1-r", strings.Repeat("1", 10_000)} {
			f.do(http.MethodGet, "", in(id, "Last-Event-ID", last)...).wantStatus(http.StatusBadRequest)
		}
	})
}

// Ids that the gateway has not given to the principal open nothing, however many come.
func TestIDsOfOthers(t *testing.T) {
	lines := new(ssetest.Output)
	opts := streamable.Options{Options: httpcheck.Options{Logger: ssetest.Logger(lines), Authenticate: byHeader}}
	bubble(t, opts, connstate.Limits{}, func(f *fixture) {
		res := f.post(initialize, "Authorization", "alice")
		id := res.Header.Get("Mcp-Session-Id")
		res.close()
		f = f.restart(opts)
		defer f.stop()
		before := lines.String()
		bad := []string{id[:len(id)-1], id + "x", "AAAAAAAA" + id[8:], strings.Repeat(id, 200), "x"}
		others := signedid.New(nil, "", "") // with another key
		for range 10_000 {
			bad = append(bad, others.New("alice"))
		}
		h := f.handler
		for i, session := range bad {
			method, body := []string{http.MethodPost, http.MethodGet, http.MethodDelete}[i%3], ""
			if method == http.MethodPost {
				body = request("1", "echo")
			}
			r := ssetest.Request(f.t.Context(), method, "/mcp", body, in(session, "Authorization", "alice")...)
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != http.StatusNotFound {
				t.Fatalf("%s with the session %.80q: got %d %s", r.Method, session, w.Code, w.Body)
			}
		}
		logged := strings.Count(lines.String()[len(before):], "\n")
		if n := f.backend.opened(); n != 0 || logged > 10 {
			t.Errorf("%d sessions were opened, %d lines logged", n, logged)
		}
		f.post(request("1", "echo"), in(id, "Authorization", "alice")...).want(http.StatusOK, result("1"))
	})
}

// The id of an open connection of HTTP+SSE names no session, and DELETE ends nothing there.
func TestIDsOfHTTPSSE(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		c, err := f.registry.Open(connstate.Client{Transport: connstate.TransportSSE})
		ssetest.Must(t, err)
		defer f.registry.Remove(c)
		f.wantGone(in(c.ID(), "Last-Event-ID", "1-1")...)
	})
}
