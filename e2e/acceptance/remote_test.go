package acceptance

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	gw "github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// remoteServer is a server of MCP 2025-06-18 over Streamable HTTP without sessions, whose one tool answers "served". other
// answers a request in its place, or reports false.
func remoteServer(other func(w http.ResponseWriter, r *http.Request, method string) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		body, err := io.ReadAll(r.Body)
		if err == nil && r.Method == http.MethodPost {
			err = json.Unmarshal(body, &m)
		}
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
		case other(w, r, m.Method):
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"remote","version":"1"},`+
				`"tools":[],"content":[{"type":"text","text":"served"}]}}`, m.ID)
		}
	})
}

// A server of an older revision may answer server/discover, which it does not know, with a failure, a page, or nothing: it is
// served by initialize.
func TestAServerMayAnswerTheQuestionForItsRevisionInAnyWay(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"500": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"other JSON": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"error":"boom"}`, http.StatusInternalServerError)
		},
		"403":         func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"a page, 502": func(w http.ResponseWriter, _ *http.Request) { page(w, http.StatusBadGateway) },
		"a page, 200": func(w http.ResponseWriter, _ *http.Request) { page(w, http.StatusOK) },
		"an end":      func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"silence": func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			time.Sleep(time.Millisecond) // what it answers now is too late
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := upstream.HTTPHandler(remoteServer(func(w http.ResponseWriter, r *http.Request, method string) bool {
				if method == "server/discover" {
					answer(w, r)
				}
				return method == "server/discover"
			}))
			inFakeTimeWith(t, gw.Options{}, server, func(l *library) {
				for range 2 { // what failed says nothing to the next client either
					l.session = ""
					l.initialized()
					ssetest.Want(l.t, "the result of a call", l.sleep(1, 1).text(), "served")
				}
			})
		})
	}
}

// page answers with a page of HTML.
func page(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "<html><body>it works</body></html>")
}

// The reason of a server that refuses, in the form of FastAPI, reaches client and log, for initialize and for a call.
func TestTheReasonOfAServerThatRefusesReachesClientAndLog(t *testing.T) {
	t.Parallel()
	for _, refused := range []string{"initialize", "tools/call"} {
		t.Run(refused, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(remoteServer(func(w http.ResponseWriter, _ *http.Request, method string) bool {
				if method != refused && method != "server/discover" {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusUnprocessableEntity)
				_, _ = io.WriteString(w, `{"detail":[{"loc":["header","x-api-key"],"msg":"Field required","type":"missing"}]}`)
				return true
			}))
			t.Cleanup(server.Close)
			g := serve(t, "--url", server.URL+"/mcp")
			s := g.open("?event=message")
			s.call("1", "any", `{}`)
			const reason = "header.x-api-key Field required"
			ssetest.WantText(t, "the answer", s.answer("1").Error.Message+s.answers("1")[0].Data, reason)
			await(t, "the log has the reason", func() bool { return strings.Contains(g.log.String(), reason) })
			s.leave()
		})
	}
}
