package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	mcppeer "github.com/mcp-sse/mcp-sse/internal/caller"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

type requestKey struct{}

// seen describes what of the client's requests a context has.
func seen(ctx context.Context) string {
	p, ok := mcppeer.FromContext(ctx)
	if !ok {
		return fmt.Sprintf("no peer, value %t", ctx.Value(requestKey{}) != nil)
	}
	return fmt.Sprintf("%s from a loopback address: %v, tenant %s, %v", p.Principal, p.Addr.IsLoopback(), p.Header.Get("X-Tenant"), ctx.Value(requestKey{}))
}

// describing answers each request with what the function says, as its result.
func describing(msg []byte, what string) json.RawMessage {
	m, err := jsonrpc.Parse(msg)
	if err != nil || m.Kind != jsonrpc.Request {
		return nil
	}
	quoted, _ := json.Marshal(what) // a string has a JSON form
	if m.Method == "initialize" {
		return jsonrpc.NewResult(m.ID, json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`))
	}
	return jsonrpc.NewResult(m.ID, quoted)
}

// A server in this process sees who sent a request, and what a middleware has put into its
// context, if the gateway is told to pass that on: a handler of messages those of the
// POST, a server of sessions those of the GET.
func TestPassRequestReachesTheServer(t *testing.T) {
	handle := upstream.Handle(func(ctx context.Context, msg json.RawMessage) any { return describing(msg, seen(ctx)) })
	serveLines := upstream.Serve(func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
		for lines := bufio.NewScanner(in); lines.Scan(); {
			if answer := describing(lines.Bytes(), seen(ctx)); answer != nil {
				fmt.Fprintf(out, "%s\n", answer)
			}
		}
		return nil
	})
	for _, test := range []struct {
		name string
		up   upstream.Upstream
		pass bool
		want string
	}{
		{"Handle", handle, true, "ada from a loopback address: true, tenant a, POST"},
		{"Serve", serveLines, true, "ada from a loopback address: true, tenant a, GET"},
		{"Handle, not asked for", handle, false, "no peer, value false"},
		{"Serve, not asked for", serveLines, false, "no peer, value false"},
	} {
		t.Run(test.name, func(t *testing.T) {
			opts := gateway.Options{
				Authenticate: func(*http.Request) (string, error) { return "ada", nil },
			}
			if test.pass {
				opts.PassRequest = &gateway.PassRequest{Headers: []string{"X-Tenant"}}
			}
			url, client, _ := serve(t, test.up, opts, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					r.Header.Set("X-Tenant", "a")
					next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, r.Method)))
				})
			})
			s := ssetest.Open(t, client, url+"/sse", nil)
			s.WantAnswer(t, request("7", "x"), "7", `"result":"`+test.want+`"`)
		})
	}
}

// PassRequest.Context chooses the values that a server gets, and refuses clients, which then
// never had a connection.
func TestRequestContext(t *testing.T) {
	var calls atomic.Int64
	up := upstream.Handle(func(ctx context.Context, msg json.RawMessage) any {
		return describing(msg, fmt.Sprint(ctx.Value(requestKey{})))
	})
	opts := gateway.Options{MaxConnections: 1, PassRequest: &gateway.PassRequest{Context: func(r *http.Request) (context.Context, error) {
		calls.Add(1)
		if r.Header.Get("X-Tenant") == "" {
			return nil, errors.New("no server for this tenant")
		}
		return context.WithValue(r.Context(), requestKey{}, "chosen"), nil
	}}}
	url, client, g := serve(t, up, opts)
	if _, err := ssetest.Dial(client, url+"/sse", nil); err == nil || !strings.Contains(err.Error(), "404") || len(g.Snapshot()) > 0 {
		t.Errorf("without a tenant: got %v, want 404; connections %v", err, g.Snapshot())
	}
	equal(t, "mcp_sse_connections_opened_total", metric(t, g, "mcp_sse_connections_opened_total"), 0)
	equal(t, "calls", calls.Load(), 1)
	tenant := http.Header{"X-Tenant": {"a"}}
	s := ssetest.Open(t, client, url+"/sse", tenant)
	if _, err := ssetest.Dial(client, url+"/sse", tenant); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("over the limit: got %v, want 503", err)
	}
	s.WantAnswer(t, request("7", "x"), "7", `"result":"chosen"`)
}

// The headers that a server gets of a request are bounded, and count with the request.
func TestPassedHeadersAreBounded(t *testing.T) {
	up := upstream.Handle(func(_ context.Context, msg json.RawMessage) any { return describing(msg, "ok") })
	url, client, _ := serve(t, up, gateway.Options{PassRequest: &gateway.PassRequest{Headers: []string{"X-Tenant"}}})
	long := http.Header{"X-Tenant": {strings.Repeat("x", 9<<10)}}
	if _, err := ssetest.Dial(client, url+"/sse", long); err == nil || !strings.Contains(err.Error(), "431") {
		t.Errorf("a GET with a long header: got %v, want 431", err)
	}
	s := ssetest.Open(t, client, url+"/sse", nil)
	s.Sent = long
	wantText(t, "error", s.Send(request("1", "x")), "431")
}

// Only headers that the operator named reach a remote server, and only on the session
// of that client.
func TestNamedHeadersReachTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan string, 100)
		up := upstream.HTTPHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got <- r.Header.Get("X-Tenant")
			w.WriteHeader(http.StatusUnauthorized)
		}))
		g, err := gateway.NewWith(up, gateway.Settings{Options: gateway.Options{ForwardHeaders: []string{"X-Tenant"}}, MaxHandshakeAttempts: 1})
		must(t, err)
		for _, tenant := range []string{"a", "b", ""} {
			client := plain
			if tenant != "" {
				client.Header = map[string][]string{"X-Tenant": {tenant}}
			}
			p := connect(t, g, client)
			p.wantState(connstate.Failed)
			equal(t, "X-Tenant", <-got, tenant)
			p.c.Close("left")
			synctest.Wait()
			for len(got) > 0 {
				equal(t, "X-Tenant", <-got, tenant)
			}
		}
		equal(t, "error", g.Shutdown(t.Context()), nil)
	})
}

// Where clients bring their own credentials, a probe has none. That the server
// refuses it, or a client, says that the server is there.
func TestReadyWhereClientsHaveTheCredentials(t *testing.T) {
	for _, test := range []struct {
		forward bool
		status  int
		there   bool
	}{
		{true, http.StatusUnauthorized, true},
		{true, http.StatusForbidden, true},
		{true, http.StatusInternalServerError, false},
		{false, http.StatusUnauthorized, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			opts := gateway.Settings{MaxHandshakeAttempts: 1}
			if test.forward {
				opts.ForwardHeaders = []string{"X-Tenant"}
			}
			up := upstream.HTTPHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(test.status) }))
			g, err := gateway.NewWith(up, opts)
			must(t, err)
			for range 2 {
				if err := g.Ready(t.Context()); (err == nil) != test.there {
					t.Errorf("%+v: ready: %v", test, err)
				}
				p := connect(t, g, plain)
				time.Sleep(time.Second) // the gateway initializes
				p.wantState(connstate.Failed)
				p.c.Close("left")
				time.Sleep(2 * time.Second) // viewers share a look
				if _, page := ask(g.Admin(), "/status"); strings.Contains(page, "The server is healthy") != test.there {
					t.Errorf("%+v: the status page says:\n%s", test, page)
				}
			}
			equal(t, "error", g.Shutdown(t.Context()), nil)
		})
	}
}

// While a probe takes long, what was known before counts.
func TestSlowProbeDoesNotUndoAReadiness(t *testing.T) {
	u := &server{dial: secondFails(20 * time.Second)}
	inFakeTime(t, u, gateway.Settings{MaxHandshakeAttempts: 1}, func(t *testing.T, g *gateway.Gateway) {
		connect(t, g, plain).wantState(connstate.Ready)
		connect(t, g, plain).wantState(connstate.Failed)
		equal(t, "error", g.Ready(t.Context()), nil)
		equal(t, "starts, with the probe", u.starts(), 3)
	})
}

// A start of a client that fails does not decide; a probe does.
func TestFailedStartOfAClientDoesNotDecide(t *testing.T) {
	u := &server{dial: failingFrom(2, 2)}
	inFakeTime(t, u, gateway.Settings{MaxHandshakeAttempts: 1}, func(t *testing.T, g *gateway.Gateway) {
		equal(t, "error", g.Ready(t.Context()), nil)
		connect(t, g, plain).wantState(connstate.Failed)
		for _, starts := range []int{2, 3} { // the probe from before still counts, and a new one
			err := g.Ready(t.Context())
			if err != nil || u.starts() != starts {
				t.Errorf("Ready = %v after a client's start failed, and %d starts, want %d", err, u.starts(), starts)
			}
			time.Sleep(2 * time.Second)
		}
	})
}

// Progress that waits for a slow client does not come after the answer, if the request times
// out meanwhile.
func TestNoProgressAfterTheAnswer(t *testing.T) {
	u := &server{handle: on("tools/call", func(s *serverSession, m *jsonrpc.Message) {
		s.say(`{"jsonrpc":"2.0","method":"notifications/x","params":{"x":"` + strings.Repeat("x", 2000) + `"}}`)
		s.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + string(m.ID) + `,"progress":1}}`)
	})}
	with := gateway.Settings{OutboxBytes: 2048}
	with.RequestTimeout = 2 * time.Second
	inFakeTime(t, u, with, func(t *testing.T, g *gateway.Gateway) {
		p := connectSlow(t, g, plain, 4*time.Second)
		p.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":7}}}`)
		time.Sleep(time.Minute)
		synctest.Wait()
		got := said(t, p)
		equal(t, "messages", got, []string{"notifications/x", "1 timeout retryable=false"})
	})
}
