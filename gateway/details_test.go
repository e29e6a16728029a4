package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
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
			forprogram.OptionsOf(&tc.opts).Remedy = func(err error) string { return "what to do about " + err.Error() }
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
					remedy, _ := rawjson.MemberText(m.Error(), "data", "remedy")
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

// They apply to what a remote server says of a call, whatever its status, and to what it says of initialize.
func TestErrorDetailsOfACallAtARemoteServer(t *testing.T) {
	for _, refused := range []string{"initialize", "tools/call"} {
		for _, status := range []int{400, 401, 403, 422, 429, 500, 503} {
			for _, local := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					g, err := gateway.New(upstream.HTTPHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						body, _ := io.ReadAll(r.Body)
						m, err := jsonrpc.Parse(body)
						w.Header().Set("Content-Type", "application/json")
						switch {
						case err != nil:
							w.WriteHeader(http.StatusMethodNotAllowed)
						case m.Method == refused:
							w.WriteHeader(status)
							fmt.Fprintf(w, `{"detail":%q}`, password)
						case m.Kind == jsonrpc.Request && m.Method == "initialize":
							_, _ = w.Write(jsonrpc.NewResult(m.ID, json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"n","version":"1"}}`)))
						default:
							w.WriteHeader(http.StatusAccepted)
						}
					})), gateway.Options{})
					must(t, err)
					p := connect(t, g, connstate.Client{Dialect: connstate.EventMessage, Quiet: true, Local: local})
					p.post(request("1", "tools/call"))
					time.Sleep(time.Minute)
					synctest.Wait()
					p.mu.Lock()
					defer p.mu.Unlock()
					if len(p.got) != 1 || sees(string(p.got[0].Data)) != local {
						t.Errorf("%s with %d: got %+v, want one answer, with details: %v", refused, status, p.got, local)
					}
					for _, e := range p.got {
						if _, ok := rawjson.MemberText(e.Data, "error", "data", "details", "key"); ok {
							t.Errorf("%s with %d: the key of the details leaves the process", refused, status)
						}
					}
					p.c.Close("test over")
					equal(t, "error", <-shutdown(g, time.Minute), nil)
				})
			}
		}
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

// The same rules apply to what a view says of a member that is dead, whether that is a gateway or a server alone.
func TestErrorDetailsOfAView(t *testing.T) {
	for name, tc := range map[string]struct {
		details gateway.ErrorDetails
		local   bool
		client  bool // sees details
	}{
		"on this machine":       {gateway.ErrorDetailsAuto, true, true},
		"elsewhere":             {gateway.ErrorDetailsAuto, false, false},
		"elsewhere, full":       {gateway.ErrorDetailsFull, false, true},
		"on this machine, safe": {gateway.ErrorDetailsSafe, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dead := &server{dial: func(context.Context, int) error { return errors.New("exit status 1: " + password) }}
				behind, err := gateway.New(dead, gateway.Options{})
				must(t, err)
				view, err := compose.New([]compose.Member{{Name: "raw", Upstream: dead}, {Name: "behind", Upstream: behind}}, compose.Options{Name: "team"})
				must(t, err)
				g, err := gateway.New(view, gateway.Options{ErrorDetails: tc.details})
				must(t, err)
				p := connect(t, g, connstate.Client{Dialect: connstate.EventMessage, Local: tc.local})
				p.post(initialize("1", "2025-11-25", emptyDeclared))
				time.Sleep(3 * time.Minute)
				for id, member := range map[string]string{"2": "raw", "3": "behind"} {
					p.post(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + member + `__t"}}`)
					time.Sleep(time.Minute)
					synctest.Wait()
					events := p.received()
					last := string(events[len(events)-1].Data)
					details := tc.client && (member == "raw" || tc.local) // the gateway of a member has a word too
					if !strings.Contains(last, member+", a server of this view, cannot be reached") || sees(last) != details {
						t.Errorf("got %s, want details: %v", last, details)
					}
				}
				g.Registry().All()[0].Close("test over")
				equal(t, "error", <-shutdown(g, time.Minute), nil)
				equal(t, "error", <-shutdown(behind, time.Minute), nil)
			})
		})
	}
}
