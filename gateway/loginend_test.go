package gateway_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// visitor is the credentials of a person who was logged in.
type visitor struct{ isGone atomic.Bool }

func (l *visitor) Authorizer(func() string, *slog.Logger) remote.Authorizer {
	return func(context.Context, string) (string, error) {
		if l.isGone.Load() {
			return "", nil
		}
		return "Bearer good", nil
	}
}

func (l *visitor) Advise(context.Context, *http.Response, bool) (again bool, full, public, link string) {
	return false, "log in at L", "log in at L", "L"
}

func (l *visitor) LoggedIn() bool { return !l.isGone.Load() }

func (l *visitor) Hindered() (string, bool) { return "", false }

func (l *visitor) AwaitLogin(ctx context.Context) bool {
	<-ctx.Done()
	return false
}

func (l *visitor) Opened(context.Context) {}

func (l *visitor) Ask(context.Context) (text, link string, done bool) {
	return "log in at L", "L", false
}

// Clients of MCP 2026-07-28 share a session. A login that ends there, while the server works on the call of one, costs
// it nothing: the list of another one, which the server refuses, comes from the session in the place of the next one,
// and the call is answered, or cancelled if its client goes.
func TestCallGoesOnWhileAListFindsTheLoginEnded(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":` +
		`{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	for name, isStateless := range map[string]bool{"stateless": true, "with sessions": false} {
		for _, leaves := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, leaves %v", name, leaves), func(t *testing.T) {
				var log ssetest.Output
				l, has, goOn, cancelled := &visitor{}, make(chan struct{}), make(chan struct{}), make(chan struct{}, 2)
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					m, err := jsonrpc.Parse(body)
					result := `{"resultType":"complete","tools":[{"name":"long","inputSchema":{}}],"ttlMs":0,"cacheScope":"private"}`
					switch {
					case err != nil: // the GET for messages that belong to no request
						w.WriteHeader(http.StatusMethodNotAllowed)
						return
					case r.Header.Get("Authorization") == "":
						w.WriteHeader(http.StatusUnauthorized)
						return
					case m.Method == "server/discover" && isStateless:
						result = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`
					case m.Method == "server/discover":
						w.WriteHeader(http.StatusBadRequest)
						return
					case m.Method == "initialize":
						result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
					case m.Kind != jsonrpc.Request:
						if m.Method == "notifications/cancelled" {
							cancelled <- struct{}{}
						}
						w.WriteHeader(http.StatusAccepted)
						return
					case m.Method == "tools/call":
						close(has)
						select {
						case <-goOn:
						case <-r.Context().Done():
							cancelled <- struct{}{}
							return
						}
						result = `{"resultType":"complete","content":[{"type":"text","text":"it has gone on"}]}`
					}
					w.Header().Set("Content-Type", "application/json")
					_, _ = w.Write(jsonrpc.NewResult(m.ID, []byte(result)))
				}))
				defer s.Close()
				g, err := gateway.New(remote.URL{Address: s.URL + "/mcp", Credentials: l}, gateway.Options{Logger: ssetest.Logger(&log)})
				must(t, err)
				defer func() { equal(t, "Shutdown", g.Shutdown(context.Background()), nil) }()
				front := httptest.NewServer(g)
				defer front.Close()
				post := func(ctx context.Context, method, params string) string {
					r, err := http.NewRequestWithContext(ctx, http.MethodPost, front.URL+"/mcp", strings.NewReader(
						`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+meta+`}}`))
					must(t, err)
					for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
						"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": "long"} {
						r.Header.Set(name, value)
					}
					resp, err := http.DefaultClient.Do(r)
					if err != nil { // the client has left
						return err.Error()
					}
					defer resp.Body.Close()
					body, _ := io.ReadAll(resp.Body)
					return string(body)
				}
				wantText(t, "a list", post(t.Context(), "tools/list", ""), `"name":"long"`)
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				called := make(chan string, 1)
				go func() { called <- post(ctx, "tools/call", `"name":"long",`) }()
				<-has
				l.isGone.Store(true)
				wantText(t, "a list after the login", post(t.Context(), "tools/list", ""), `"name":"login"`)
				if leaves {
					leave()
					select {
					case <-cancelled:
					case <-time.After(time.Minute):
						t.Error("the server is not told that the client has left")
					}
				}
				close(goOn)
				if answer := <-called; !leaves {
					wantText(t, "the call", answer, "it has gone on")
				}
				wantText(t, "a list after the call", post(t.Context(), "tools/list", ""), `"name":"login"`)
				wantText(t, "the log", log.String(), "session replaced")
				if strings.Contains(log.String(), "session lost") {
					t.Errorf("the end of a login counts as a loss:\n%s", log.String())
				}
			})
		}
	}
}
