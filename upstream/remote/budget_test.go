package remote_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/upstreamtest"
	"github.com/mcp-sse/mcp-sse/upstream/remote"
)

// A session takes what it keeps for a server that is slow to take it of the budget, and
// gives all back at its end.
func TestSessionsGiveBackWhatTheyTake(t *testing.T) {
	for _, transport := range []string{remote.TransportStreamable, remote.TransportSSE} {
		t.Run(transport, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const limit = 4 << 20
				held := budget.New(limit, nil)
				up := upstreamtest.Streamable(upstreamtest.ServeHere(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
					switch {
					case m == nil && r.Method == http.MethodGet && transport == remote.TransportSSE:
						upstreamtest.Stream(w)("event: endpoint\ndata: /messages")
						<-r.Context().Done()
					case m == nil:
						w.WriteHeader(http.StatusMethodNotAllowed)
					case m.Method == "initialize" && transport == remote.TransportStreamable:
						upstreamtest.AnswerJSON(w, string(jsonrpc.NewResult(m.ID, []byte(`{"protocolVersion":"2025-06-18"}`))))
					default:
						<-r.Context().Done()
					}
				}))
				up.Transport = transport
				conn, err := up.Observed(nil, nil, held).Dial(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				pad := strings.Repeat("x", 300<<10)
				var refused error
				for i := 0; i < 20 && refused == nil; i++ {
					refused = conn.Send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"a","params":{"pad":%q}}`, pad))
					if refused == nil {
						refused = conn.Send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"pad":%q}}`, i, pad))
					}
				}
				if !errors.Is(refused, jsonrpc.ErrBusy) {
					t.Errorf("the last message over the budget: %v", refused)
				}
				endsWithNothing(t, conn, held, limit)
			})
		})
	}
}

// A session whose transport is not known yet gives back the initialize, if its client
// leaves before the answer, and if another transport takes the request over.
func TestUndecidedSessionsGiveBackWhatTheyTake(t *testing.T) {
	for _, server := range []string{"silent", "HTTP+SSE"} {
		t.Run(server, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const limit = 1 << 20
				held := budget.New(limit, nil)
				up := upstreamtest.Streamable(upstreamtest.ServeHere(func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
					switch {
					case m == nil && r.Method == http.MethodGet && server == "HTTP+SSE":
						upstreamtest.Stream(w)("event: endpoint\ndata: /messages")
						<-r.Context().Done()
					case server == "silent":
						<-r.Context().Done()
					default:
						w.WriteHeader(http.StatusMethodNotAllowed)
					}
				}))
				up.Transport = ""
				conn, err := up.Observed(nil, nil, held).Dial(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if err := conn.Send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"pad":%q}}`, strings.Repeat("x", 10_000))); err != nil {
					t.Fatal(err)
				}
				endsWithNothing(t, conn, held, limit)
			})
		})
	}
}

// endsWithNothing closes a session and expects that nothing of the budget is taken then.
func endsWithNothing(t *testing.T, conn jsonrpc.Conn, held *budget.Account, limit int) {
	t.Helper()
	synctest.Wait()
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	if held.Force(limit - 1); held.Full() {
		t.Error("bytes are held after the end")
	}
}
