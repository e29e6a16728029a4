package streamable_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/streamable"
)

func note(n int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/n%d"}`, n) }

const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`

// A GET that resumes a stream replaces the response that was thought to be alive.
func TestResumeReplacesTheResponse(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		id := f.initialize("2025-11-25")
		old := f.post(request("1", "never"), in(id)...)
		old.wantEvent("2-1", "")
		synctest.Wait() // a write that is under way would be broken off
		res := f.do(http.MethodGet, "", in(id, "Last-Event-ID", "2-1")...)
		old.wantEnd()
		answer(f.backend.last(), "1", []byte(result("1")), "")
		res.wantEvent("2-2", result("1"))
		res.wantEnd()
	})
}

// A message that belongs to no request comes on a GET, once, also if it was there before the GET.
func TestStandingStream(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		id := f.initialize("2025-11-25")
		c := f.backend.last()
		_ = c.Send("", []byte(changed))
		_ = c.Send("", []byte(note(1)))
		res := f.do(http.MethodGet, "", in(id)...)
		ssetest.Want(t, "status", res.StatusCode, http.StatusOK)
		ssetest.Want(t, "Content-Type", res.Header.Get("Content-Type"), "text/event-stream")
		res.wantEvent("0-1", changed)
		res.wantEvent("0-2", note(1))
		_ = c.Send("", []byte(note(2)))
		res.wantEvent("0-3", note(2))
		res.close()
		synctest.Wait()
		_ = c.Send("", []byte(note(3)))
		res = f.do(http.MethodGet, "", in(id)...)
		res.wantEvent("0-4", note(3))
		other := f.do(http.MethodGet, "", in(id, "Last-Event-ID", "0-2")...) // what the client says counts
		other.wantEvent("0-3", note(2))
		other.wantEvent("0-4", note(3))
		_ = c.Send("", []byte(note(4)))
		other.wantEvent("0-5", note(4)) // each message on one stream only
		other.close()
		synctest.Wait()
		_ = c.Send("", []byte(note(5)))
		res.wantEvent("0-6", note(5))
		res.close()
	})
}

// A message of the server that names no request goes to the only POST that waits; with
// several, to the GET; without one, to the oldest POST.
func TestMessagesThatNameNoRequest(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		id := f.initialize("2025-06-18")
		c := f.backend.last()
		streamFirst := in(id, "Accept", "text/event-stream, application/json")
		first := f.post(request("1", "never"), streamFirst...)
		_ = c.Send("", []byte(note(1)))
		first.wantEvent("2-1", note(1))
		_ = c.Send("", []byte(changed)) // belongs to no request, but nobody reads anything else
		first.wantEvent("2-2", changed)
		second := f.post(request("2", "never"), streamFirst...)
		_ = c.Send("", []byte(note(2)))
		first.wantEvent("2-3", note(2))
		_ = c.Send("", []byte(changed))
		first.wantEvent("2-4", changed)
		standing := f.do(http.MethodGet, "", in(id)...)
		_ = c.Send("", []byte(changed))
		standing.wantEvent("0-1", changed)
		_ = c.Send("", []byte(note(3)))
		standing.wantEvent("0-2", note(3))
		_ = c.Send("2", []byte(note(4)))
		second.wantEvent("3-1", note(4))
		answer(c, "2", []byte(result("2")), "")
		second.wantEvent("3-2", result("2"))
		second.wantEnd()
		_ = c.Send("", []byte(changed)) // with one POST, too
		standing.wantEvent("0-3", changed)
		first.close() // and its client does not come back: the GET is what it reads
		synctest.Wait()
		_ = c.Send("", []byte(note(5)))
		standing.wantEvent("0-4", note(5))
		standing.close()
	})
}

func TestBadGETs(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		id := f.initialize("2025-11-25")
		f.post(request("1", "echo"), in(id)...).want(http.StatusOK, result("1")) // stream 2, which never began
		tests := []struct {
			name   string
			header []string
			body   string
			status int
			told   string
		}{
			{"no session", nil, "", 405, "Streamable HTTP"},
			{"unknown session", in("x"), "", 404, "initialize again"},
			{"no stream accepted", in(id, "Accept", "application/json"), "", 406, "text/event-stream"},
			{"stream refused", in(id, "Accept", "text/event-stream;q=0"), "", 406, "text/event-stream"},
			{"body", in(id), "x", 400, "body"},
			{"no event", in(id, "Last-Event-ID", "nonsense"), "", 400, "Last-Event-ID"},
			{"event of no stream", in(id, "Last-Event-ID", "9-1"), "", 400, "Last-Event-ID"},
			{"event of a JSON answer", in(id, "Last-Event-ID", "2-1"), "", 400, "Last-Event-ID"},
			{"event to come", in(id, "Last-Event-ID", "0-1"), "", 400, "Last-Event-ID"},
			{"negative event", in(id, "Last-Event-ID", "0--1"), "", 400, "Last-Event-ID"},
		}
		for _, test := range tests {
			f.t.Log(test.name)
			f.do(http.MethodGet, test.body, test.header...).wantStatus(test.status, test.told)
		}
		ssetest.Want(f.t, "refusals that were counted", f.count("mcp_sse_connections_rejected_total"), len(tests))
		f.post(request("1", "echo"), in(id)...).want(http.StatusOK, result("1"))
	})
}

// A GET for each of 100 tabs: some are refused, none harms another.
func TestManyGETs(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		id := f.initialize("2025-11-25")
		var open []*reply
		for range 8 {
			open = append(open, f.do(http.MethodGet, "", in(id)...))
		}
		for range 92 {
			f.do(http.MethodGet, "", in(id)...).wantStatus(http.StatusConflict)
		}
		_ = f.backend.last().Send("", []byte(changed))
		open[7].wantEvent("0-1", changed)
		f.do(http.MethodGet, "", in(id, "Last-Event-ID", "0-0")...).wantStatus(http.StatusConflict)
		open[7].close()
		synctest.Wait()
		_ = f.backend.last().Send("", []byte(note(2)))
		open[6].wantEvent("0-2", note(2))
		for _, res := range open {
			res.close()
		}
		synctest.Wait()
		f.do(http.MethodGet, "", in(id)...).wantStatus(http.StatusOK)
	})
}

// A client that does not read is cut. The server and the session's other requests do not
// notice, and the client can come back.
func TestStalledReader(t *testing.T) {
	for name, size := range map[string]int{"many short messages": 1 << 10, "few long ones": 300 << 10} {
		t.Run(name, func(t *testing.T) {
			bubble(t, streamable.Options{Options: httpcheck.Options{WriteTimeout: 10 * second}}, connstate.Limits{}, func(f *fixture) {
				id := f.initialize("2025-11-25")
				c := f.backend.last()
				stalled := f.post(request("1", "never"), in(id)...)
				stalled.wantEvent("2-1", "")
				message := `{"jsonrpc":"2.0","method":"` + strings.Repeat("x", size) + `"}`
				n := 3 << 20 / size
				for range n {
					_ = c.Send("1", []byte(message))
				}
				f.post(request("2", "echo"), in(id)...).want(http.StatusOK, result("2"))
				if held := f.queued(); held > 2<<20 {
					f.t.Errorf("%g bytes are held", held)
				}
				answer(c, "1", []byte(result("1")), "")
				time.Sleep(time.Minute)
				stalled.close()
				res := f.do(http.MethodGet, "", in(id, "Last-Event-ID", "2-1")...)
				for i := range n {
					res.wantEvent(fmt.Sprintf("2-%d", i+2), message)
				}
				res.wantEvent(fmt.Sprintf("2-%d", n+2), result("1"))
				res.wantEnd()
				ssetest.Want(f.t, "bytes that are held", f.queued(), 0)
			})
		})
	}
}

// A client that reads slowly gets all that was sent before its session was closed.
func TestSlowReaderOfASessionThatIsClosed(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		id := f.initialize("2025-11-25")
		c := f.backend.last()
		res := f.post(request("1", "never"), in(id)...)
		res.wantEvent("2-1", "")
		message := `{"jsonrpc":"2.0","method":"` + strings.Repeat("x", 300<<10) + `"}`
		for range 10 {
			_ = c.Send("1", []byte(message))
		}
		answer(c, "1", []byte(result("1")), "")
		c.Close(connstate.ClosedShutdown)
		for i := range 10 {
			res.wantEvent(fmt.Sprintf("2-%d", i+2), message)
		}
		res.wantEvent("2-12", result("1"))
		res.wantEnd()
	})
}

// An answer of any size reaches a client that reads, and none delays another.
func TestLargeAnswers(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		id := f.initialize("2025-11-25")
		body := `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"x":"` + strings.Repeat("y", 3<<20) + `"}}`
		stalled := f.post(body, in(id)...)
		res := f.post(strings.Replace(body, `"id":1`, `"id":2`, 1), in(id)...)
		if got := res.rest(); len(got) < 3<<20 {
			f.t.Errorf("got %d bytes", len(got))
		}
		res.close()
		time.Sleep(time.Minute)
		stalled.close()
		f.post(request("3", "echo"), in(id)...).want(http.StatusOK, result("3"))
	})
}
