package streamable_test

import (
	"io"
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

// A request without a session is answered, in a session that it opens.
func TestRequestsWithoutASession(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		f.post(request("1", "ping")).want(http.StatusOK, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		ssetest.Want(f.t, "sessions that a ping has opened", f.backend.opened(), 0)
		res := f.post(request("1", "echo"), "MCP-Protocol-Version", "2025-06-18")
		id := res.Header.Get("Mcp-Session-Id")
		res.want(http.StatusOK, result("1"))
		f.post(request("1", "echo"), in(id)...).want(http.StatusOK, result("1"))
		ssetest.Want(f.t, "sessions that were opened", f.backend.opened(), 1)
		ssetest.Want(f.t, "what the backend got", f.backend.got(), "echo echo")
	})
}

func TestRequireInitialize(t *testing.T) {
	bubble(t, streamable.Options{RequireInitialize: true}, connstate.Limits{}, func(f *fixture) {
		for _, method := range []string{"echo", "ping"} {
			f.post(request("1", method)).wantStatus(http.StatusBadRequest, "initialize first")
		}
		f.initialize("2025-11-25")
	})
}

// If initialize fails, there is no session.
func TestFailedInitialize(t *testing.T) {
	for name, wait := range map[string]time.Duration{"at once": 0, "late": 3 * second} {
		t.Run(name, func(t *testing.T) {
			bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
				f.backend.refuses, f.backend.after = true, wait
				res := f.post(initialize)
				ssetest.WantText(f.t, "answer", res.rest(), `"code":-32602`)
				if id := res.Header.Get("Mcp-Session-Id"); id != "" && wait == 0 {
					f.t.Errorf("got the session %s", id)
				}
				res.close()
				synctest.Wait()
				ssetest.Want(f.t, "sessions that are left", f.registry.Len(), 0)
			})
		})
	}
}

// A session belongs to the principal that opened it; to others it is not there.
func TestSessionsBelongToTheirPrincipal(t *testing.T) {
	bubble(t, streamable.Options{Options: httpcheck.Options{Authenticate: byHeader}}, connstate.Limits{}, func(f *fixture) {
		res := f.post(initialize)
		if res.StatusCode != http.StatusUnauthorized || res.Header.Get("WWW-Authenticate") == "" {
			f.t.Errorf("without a token: got %s", res.Status)
		}
		res.close()
		res = f.post(initialize, "Authorization", "alice")
		id := res.Header.Get("Mcp-Session-Id")
		res.close()
		f.wantGone(in(id, "Authorization", "bob")...)
		f.post(request("1", "echo"), in(id, "Authorization", "alice")...).want(http.StatusOK, result("1"))
	})
}

func TestDelete(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		id := f.initialize("2025-11-25")
		working := f.post(request("1", "never"), in(id)...)
		standing := f.do(http.MethodGet, "", in(id)...)
		f.do(http.MethodDelete, "{}", in(id)...).wantStatus(http.StatusBadRequest)
		f.do(http.MethodDelete, "", in(id)...).want(http.StatusNoContent, "")
		working.wantEvent("2-1", "")
		if _, data := working.next(); !strings.Contains(data, `"id":1,"error"`) || !strings.Contains(data, "session was closed") {
			f.t.Errorf("the request got %s", data)
		}
		working.wantEnd()
		standing.wantEnd()
		f.wantGone(in(id)...)
		f.do(http.MethodDelete, "").wantStatus(http.StatusBadRequest)
		synctest.Wait()
		ssetest.Want(f.t, "connections that are left", f.registry.Len(), 0)
	})
}

// Sessions that nobody uses end, sooner if their client has never used them; those with a
// request in flight or an open GET do not.
func TestIdleSessionsEnd(t *testing.T) {
	bubble(t, streamable.Options{SessionTimeout: 10 * time.Minute}, connstate.Limits{}, func(f *fixture) {
		for range 200 {
			f.initialize("2025-11-25")
		}
		used := f.initialize("2025-11-25")
		f.post(request("1", "echo"), in(used)...).want(http.StatusOK, result("1"))
		reading := f.initialize("2025-11-25")
		standing := f.do(http.MethodGet, "", in(reading)...)
		working := f.initialize("2025-11-25")
		call := f.post(request("1", "never"), in(working)...)
		for _, res := range []*reply{standing, call} {
			go func() { _, _ = io.Copy(io.Discard, res.in) }() // heartbeats, until close
		}
		for _, step := range []struct {
			after time.Duration
			open  int
		}{{59 * second, 203}, {2 * second, 3}, {8 * time.Minute, 3}, {2 * time.Minute, 2}, {time.Hour, 2}} {
			time.Sleep(step.after)
			synctest.Wait()
			ssetest.Want(f.t, "sessions after "+step.after.String()+" more", f.registry.Len(), step.open)
		}
		standing.close()
		call.close()
		time.Sleep(9 * time.Minute)
		synctest.Wait()
		ssetest.Want(f.t, "sessions", f.registry.Len(), 2)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := f.registry.Len(); n != 1 { // the one with a request in flight stays until it is answered
			f.t.Errorf("%d sessions, want 1", n)
		}
		ssetest.Want(f.t, "sessions that count as idle", f.count("mcp_sse_connections_closed_total"), 202)
	})
}

// When all connections are taken, a session that nobody uses makes room, first one that
// its client has never used again.
func TestIdleSessionsMakeRoom(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{MaxConnections: 3}, func(f *fixture) {
		used := f.initialize("2025-11-25")
		f.post(request("1", "echo"), in(used)...).want(http.StatusOK, result("1"))
		time.Sleep(5 * second)
		unused := f.initialize("2025-11-25")
		working := f.initialize("2025-11-25")
		call := f.post(request("1", "never"), in(working)...)
		go func() { _, _ = io.Copy(io.Discard, call.in) }()          // heartbeats, until close
		f.post(initialize).wantStatus(http.StatusServiceUnavailable) // all were used just now
		time.Sleep(11 * second)
		f.initialize("2025-11-25")
		if _, open := f.registry.Find(unused); open {
			t.Error("the session that was never used is open")
		}
		f.post(request("2", "echo"), in(used)...).want(http.StatusOK, result("2"))
		time.Sleep(11 * second)
		f.initialize("2025-11-25")
		f.initialize("2025-11-25")
		ssetest.Want(t, "sessions", f.registry.Len(), 3)
		call.close()
	})
}

// Clients that leave their calls do not keep the idle sessions behind them from making room.
func TestAbandonedCallsHideNoIdleSession(t *testing.T) {
	const abandoned = 20
	bubble(t, streamable.Options{}, connstate.Limits{MaxConnections: abandoned + 2}, func(f *fixture) {
		for range abandoned {
			id := f.initialize("2025-11-25")
			f.post(request("1", "never"), in(id)...).close()
		}
		for range 2 {
			id := f.initialize("2025-11-25")
			f.post(request("1", "echo"), in(id)...).want(http.StatusOK, result("1"))
		}
		time.Sleep(13 * second)
		f.initialize("2025-11-25")
		f.initialize("2025-11-25")
		ssetest.Want(t, "sessions", f.registry.Len(), abandoned+2)
	})
}

// A proxy between a client and the gateway may look at the other one of two headers.
func TestHeadersComeOnce(t *testing.T) {
	bubble(t, streamable.Options{}, connstate.Limits{}, func(f *fixture) {
		id := f.initialize("2025-11-25")
		for _, name := range []string{"Mcp-Session-Id", "Mcp-Protocol-Version", "Last-Event-Id"} {
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
				f.do(method, "", in(id, name, id, "+"+name, id)...).wantStatus(http.StatusBadRequest, "must come once")
			}
		}
	})
}
