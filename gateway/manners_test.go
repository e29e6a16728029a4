package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// post sends a POST and returns its response, which comes at once or after a while.
func post(t *testing.T, g *gateway.Gateway, target, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	rec := httptest.NewRecorder()
	r := ssetest.Request(t.Context(), http.MethodPost, target, body)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	g.ServeHTTP(rec, r)
	return rec
}

// How clients send their requests over Streamable HTTP, in a session and before: the next
// report is one more case. All are served.
func TestMannersOfClients(t *testing.T) {
	const session = "Mcp-Session-Id"
	for name, header := range map[string][]string{
		"in good order":                {},
		"a version twice in one line":  {"Mcp-Protocol-Version", "2025-11-25, 2025-11-25"},
		"a version in two lines":       {"Mcp-Protocol-Version", "2025-11-25", "Mcp-Protocol-Version", "2025-11-25"},
		"a version of the future":      {"Mcp-Protocol-Version", "2099-01-01"},
		"a version without sessions":   {"Mcp-Protocol-Version", "2026-07-28"},
		"an older version":             {"Mcp-Protocol-Version", "2024-11-05"},
		"the server's own version":     {"Mcp-Protocol-Version", "2024-10-07"},
		"no version at all":            {"Mcp-Protocol-Version", "1.0"},
		"a Content-Type twice":         {"Content-Type", "application/json"},
		"no encoding":                  {"Content-Encoding", "identity"},
		"a session twice in two lines": {session, ""}, // the id is filled in
	} {
		inFakeTime(t, &server{}, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
			rec := post(t, g, "/mcp/", initialize("0", "2025-11-25", "{}"), without(header, session)...)
			id := rec.Header().Get(session)
			if rec.Code != http.StatusOK || id == "" {
				t.Fatalf("%s: initialize: got %d %s", name, rec.Code, rec.Body)
			}
			in := append([]string{session, id}, header...)
			for i := range in {
				if i%2 == 1 && in[i] == "" {
					in[i] = id
				}
			}
			rec = post(t, g, "/mcp", request("1", "tools/list"), in...)
			if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), `"method":"tools/list"`) {
				t.Errorf("%s: tools/list: got %d %s", name, rec.Code, rec.Body)
			}
			rec = httptest.NewRecorder()
			r := ssetest.Request(t.Context(), http.MethodDelete, "/mcp", "", session, id)
			g.ServeHTTP(rec, r)
			equal(t, name+": DELETE", rec.Code, http.StatusNoContent)
		})
	}
}

// without returns headers but that of a name.
func without(header []string, name string) (rest []string) {
	for i := 0; i < len(header); i += 2 {
		if header[i] != name {
			rest = append(rest, header[i], header[i+1])
		}
	}
	return rest
}

// Two values that differ are refused still: what is between may have looked at the other one.
func TestTwoSessionsInOneRequest(t *testing.T) {
	inFakeTime(t, &server{}, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		id := post(t, g, "/mcp", initialize("0", "2025-11-25", "{}")).Header().Get("Mcp-Session-Id")
		rec := post(t, g, "/mcp", request("1", "tools/list"), "Mcp-Session-Id", id, "Mcp-Session-Id", "another")
		equal(t, "two sessions", rec.Code, http.StatusBadRequest)
	})
}

// A cancellation names its request in another form of its id: the server gets its own id.
func TestCancellationInAnotherForm(t *testing.T) {
	for id, names := range map[string][]string{"5": {"5", `"5"`, "5.0"}, `"5"`: {"5", `"5"`}, `"a"`: {`"a"`}} {
		for _, name := range names {
			var got string
			u := &server{handle: func(_ *serverSession, m *jsonrpc.Message) bool {
				if m.Method == "notifications/cancelled" {
					got = string(m.RequestID.Value)
				}
				return false
			}}
			withClient(t, u, gateway.Options{}, func(t *testing.T, p *peer) {
				p.deliver(request(id, "hang"))
				p.deliver(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + name + `}}`)
				equal(t, id+" cancelled as "+name, got, "2")
			})
		}
	}
}

// A message that servers may read otherwise than the gateway is refused: the tool would run
// without a line in the audit log.
func TestMessagesWithTwoMeanings(t *testing.T) {
	var audit ssetest.Output
	opts := gateway.Options{Audit: ssetest.Logger(&audit)}
	u := &server{}
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		id := post(t, g, "/mcp", initialize("0", "2025-11-25", "{}")).Header().Get("Mcp-Session-Id")
		for _, body := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"resources/list","METHOD":"tools/call","params":{"name":"x"}}`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"harmless"},"Params":{"name":"x"}}`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"harmless","NAME":"x"}}`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"harmless","name":"x"}}`,
			`{"jsonrpc":"2.0","id":1,"Id":2,"method":"tools/call","params":{"name":"x"}}`,
			`{"jsonrpc":"2.0","method":"notifications/x","Method":"tools/call","params":{"name":"x"}}`,
		} {
			rec := post(t, g, "/mcp", body, "Mcp-Session-Id", id)
			if rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), "-32600") {
				t.Errorf("%s: got %d %s", body, rec.Code, rec.Body)
			}
		}
		u.session(t, 1).wantMethods(t, "initialize", "notifications/initialized")
		post(t, g, "/mcp", request("1", "tools/call"), "Mcp-Session-Id", id)
		equal(t, "audit lines", strings.Count(audit.String(), "tool call"), 1)
	})
}

// A script that calls without a session leaves no process behind for long.
func TestCallsWithoutASessionLeaveNothing(t *testing.T) {
	u := &server{}
	inFakeTime(t, u, gateway.Options{ConnectRate: -1}, func(t *testing.T, g *gateway.Gateway) {
		for range 30 {
			if rec := post(t, g, "/mcp", request("1", "tools/list")); rec.Code != http.StatusOK {
				t.Fatalf("got %d %s", rec.Code, rec.Body)
			}
		}
		time.Sleep(2*time.Second + 1)
		synctest.Wait()
		equal(t, "servers that are left", u.open(), 0)
	})
}

// Of two requests with one id on a stream, the second is refused in its own response, and
// nothing of it goes onto the stream.
func TestDuplicateIDOnTheStream(t *testing.T) {
	inFakeTime(t, &server{}, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		onStream := plain
		onStream.Transport = connstate.TransportSSE
		p := connect(t, g, onStream)
		p.post(request("1", "hang"))
		path := "/sse/" + p.c.ID() + "/message"
		rec := post(t, g, path, request("1", "tools/list"))
		if rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), "in flight") || strings.Contains(rec.Body.String(), `"id":1`) {
			t.Errorf("got %d %s", rec.Code, rec.Body)
		}
		p.want()
		equal(t, "another id", post(t, g, path, request("2", "tools/list")).Code, http.StatusAccepted)
		p.want(answered("2", 1, "tools/list"))
	})
}

// Where there is no status, as on stdio, the second one is answered without an id: its own is that of
// the first.
func TestDuplicateIDWithoutAStatus(t *testing.T) {
	inFakeTime(t, &server{}, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(request("1", "hang"))
		p.post(request("1", "tools/list"))
		p.want("null duplicate_id retryable=true")
	})
}

// An initialize under the id of a session that is no more, or never was one here, opens another.
func TestInitializeUnderAForeignID(t *testing.T) {
	inFakeTime(t, &server{}, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		rec := post(t, g, "/mcp", initialize("0", "2025-11-25", "{}"), "Mcp-Session-Id", "of-another-server")
		id := rec.Header().Get("Mcp-Session-Id")
		if rec.Code != http.StatusOK || id == "" || id == "of-another-server" {
			t.Fatalf("got %d, session %q, %s", rec.Code, id, rec.Body)
		}
		if rec = post(t, g, "/mcp", request("1", "tools/list"), "Mcp-Session-Id", id); rec.Code != http.StatusOK {
			t.Errorf("tools/list: got %d %s", rec.Code, rec.Body)
		}
		if rec = post(t, g, "/mcp", request("1", "tools/list"), "Mcp-Session-Id", "of-another-server"); rec.Code != http.StatusNotFound {
			t.Errorf("tools/list under the foreign id: got %d %s", rec.Code, rec.Body)
		}
	})
}

// A message that lacks "jsonrpc" alone can mean one thing alone.
func TestMessagesWithoutAVersion(t *testing.T) {
	inFakeTime(t, &server{}, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		rec := post(t, g, "/mcp", `{"id":1,"method":"tools/list"}`)
		if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), `"method":"tools/list"`) {
			t.Errorf("got %d %s", rec.Code, rec.Body)
		}
	})
}
