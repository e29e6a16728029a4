package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const password = "swordfish"

// A server writes a password before it dies. Only clients that may see details see
// it, in announcements, in errors of requests, and at the routes for operators.
func TestErrorDetails(t *testing.T) {
	accept := func(r *http.Request) (string, error) {
		if r.Header.Get("Authorization") == "Bearer t" {
			return "ada", nil
		}
		return "", errors.New("no token")
	}
	for name, tc := range map[string]struct {
		opts      gateway.Options
		local     bool
		client    bool // sees details
		withToken bool // sees them at /readyz
	}{
		"on this machine":           {local: true, client: true, withToken: true},
		"elsewhere":                 {},
		"on this machine, tokens":   {opts: gateway.Options{Authenticate: accept}, local: true, withToken: true},
		"full":                      {opts: gateway.Options{ErrorDetails: gateway.ErrorDetailsFull}, client: true, withToken: true},
		"full, tokens":              {opts: gateway.Options{ErrorDetails: gateway.ErrorDetailsFull, Authenticate: accept}, client: true, withToken: true},
		"safe, on this machine":     {opts: gateway.Options{ErrorDetails: gateway.ErrorDetailsSafe}, local: true},
		"safe, with another's word": {opts: gateway.Options{ErrorDetails: gateway.ErrorDetailsSafe, Authenticate: accept}, withToken: true},
	} {
		t.Run(name, func(t *testing.T) {
			u := &server{dial: func(context.Context, int) error { return errors.New("exit status 1: " + password) }}
			tc.opts.Remedy = func(err error) string { return "what to do about " + err.Error() }
			inFakeTime(t, u, tc.opts, func(t *testing.T, g *gateway.Gateway) {
				p := connect(t, g, connstate.Client{Dialect: connstate.EventMessage, Local: tc.local})
				p.post(request("1", "tools/list"), initialize("2", "2025-11-25", emptyDeclared))
				time.Sleep(6 * time.Second)
				synctest.Wait()
				p.mu.Lock()
				for _, e := range p.got {
					m, err := jsonrpc.Parse(e.Data)
					if err != nil || m.Error() == nil {
						t.Errorf("got %s, want an error", e.Data)
						continue
					}
					equal(t, fmt.Sprintf("details in %s", e.Data), sees(string(e.Data)), tc.client)
					remedy, _ := jsonrpc.MemberText(m.Error(), "data", "remedy")
					equal(t, fmt.Sprintf("remedy in %s", e.Data), remedy == "what to do about the server could not be started: exit status 1: "+password, tc.client)
				}
				if len(p.got) < 2 {
					t.Errorf("%d events, want an announcement and an answer at least", len(p.got))
				}
				p.mu.Unlock()
				if body := readyz(g, tc.local, ""); sees(body) != tc.client {
					t.Errorf("details in /readyz: %s: want them %v", body, tc.client)
				}
				if body := readyz(g, tc.local, "Bearer t"); sees(body) != tc.withToken {
					t.Errorf("details in /readyz with a token: %s: want them %v", body, tc.withToken)
				}
				if _, body := ask(g.Admin(), "/connections"); sees(body) || !strings.Contains(body, `"reason":"start_failed"`) {
					t.Errorf("/connections: %s", body)
				}
				if _, body := ask(g.Admin(), "/healthz"); sees(body) {
					t.Errorf("/healthz: %s", body)
				}
			})
		})
	}
}

// The same rules apply to the last words of a server that dies during a request.
func TestErrorDetailsOfALostSession(t *testing.T) {
	for _, local := range []bool{true, false} {
		u := &server{handle: on("tools/call", func(s *serverSession, _ *jsonrpc.Message) { s.finish(errors.New("exit status 1: " + password)) })}
		inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
			p := connect(t, g, connstate.Client{Dialect: connstate.EventMessage, Quiet: true, Local: local})
			p.wantState(connstate.Ready)
			p.deliver(request("1", "tools/call"))
			if data := string(p.got[0].Data); sees(data) != local || !strings.Contains(data, `"reason":"session_lost"`) {
				t.Errorf("got %s, want the category, and details %v", data, local)
			}
		})
	}
}

func sees(text string) bool { return strings.Contains(text, password) }

func readyz(g *gateway.Gateway, local bool, authorization string) string {
	r := httptest.NewRequest(http.MethodGet, "/readyz", nil)
	if local {
		at := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, at))
		r.RemoteAddr, r.Host = "127.0.0.1:1234", "localhost"
	}
	r.Header.Set("Authorization", authorization)
	rec := httptest.NewRecorder()
	g.Admin().ServeHTTP(rec, r)
	return rec.Body.String()
}
