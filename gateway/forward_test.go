package gateway_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// Only headers that the operator named reach a remote server, and only on the session
// of that client.
func TestNamedHeadersReachTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan string, 100)
		up := upstream.URL{Address: "http://server.example/mcp", Client: &http.Client{Transport: refuses(func(r *http.Request) {
			got <- r.Header.Get("X-Tenant")
		})}}
		g, err := gateway.NewWith(up, gateway.Settings{Options: gateway.Options{ForwardHeaders: []string{"X-Tenant"}}, MaxHandshakeAttempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, tenant := range []string{"a", "b", ""} {
			client := plain
			if tenant != "" {
				client.Header = map[string][]string{"X-Tenant": {tenant}}
			}
			p := connect(t, g, client)
			p.wantState(connstate.Failed)
			if h := <-got; h != tenant {
				t.Errorf("the server got X-Tenant %q, want %q", h, tenant)
			}
			p.c.Close("left")
			synctest.Wait()
			for len(got) > 0 {
				if h := <-got; h != tenant {
					t.Errorf("the server got X-Tenant %q, want %q", h, tenant)
				}
			}
		}
		if err := g.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// refuses is a server that records each request and refuses it.
type refuses func(*http.Request)

func (f refuses) RoundTrip(r *http.Request) (*http.Response, error) {
	f(r)
	return &http.Response{StatusCode: http.StatusUnauthorized, Body: http.NoBody, Request: r}, nil
}

// Where clients bring their own credentials, a probe has none. That the server
// refuses it, or a client, says that the server is there.
func TestReadyWhereClientsHaveTheCredentials(t *testing.T) {
	for _, forward := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			opts := gateway.Settings{MaxHandshakeAttempts: 1}
			if forward {
				opts.ForwardHeaders = []string{"X-Tenant"}
			}
			g, err := gateway.NewWith(upstream.URL{Address: "http://server.example/mcp", Client: &http.Client{Transport: refuses(func(*http.Request) {})}}, opts)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := g.Ready(t.Context()); (err == nil) != forward {
					t.Errorf("with headers of clients %t: ready: %v", forward, err)
				}
				p := connect(t, g, plain)
				p.wantState(connstate.Failed)
				p.c.Close("left")
			}
			if err := g.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// While a probe takes long, what was known before counts.
func TestSlowProbeDoesNotUndoAReadiness(t *testing.T) {
	u := &server{dial: func(ctx context.Context, n int) error {
		switch n {
		case 1:
			return nil
		case 2:
			return errNoServer
		}
		return slow(20*time.Second)(ctx, n)
	}}
	inFakeTime(t, u, gateway.Settings{MaxHandshakeAttempts: 1}, func(t *testing.T, g *gateway.Gateway) {
		connect(t, g, plain).wantState(connstate.Ready)
		connect(t, g, plain).wantState(connstate.Failed)
		if err := g.Ready(t.Context()); err != nil || u.starts() != 3 {
			t.Errorf("Ready = %v with %d starts, want the probe, and what was known before it", err, u.starts())
		}
	})
}

// A start of a client that fails does not decide; a probe does.
func TestFailedStartOfAClientDoesNotDecide(t *testing.T) {
	u := &server{dial: func(_ context.Context, n int) error {
		if n == 2 {
			return errNoServer
		}
		return nil
	}}
	inFakeTime(t, u, gateway.Settings{MaxHandshakeAttempts: 1}, func(t *testing.T, g *gateway.Gateway) {
		if err := g.Ready(t.Context()); err != nil {
			t.Errorf("Ready: %v", err)
		}
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
