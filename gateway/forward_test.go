package gateway_test

import (
	"net/http"
	"testing"
	"testing/synctest"

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
		g, err := gateway.New(up, gateway.Options{ForwardHeaders: []string{"X-Tenant"}, MaxHandshakeAttempts: 1})
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
