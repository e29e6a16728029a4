package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// newOpen returns a server that answers initialize to anybody, and wants a login for its lists.
func newOpen(t *testing.T, issuer *protected) *httptest.Server {
	t.Helper()
	const metadata = "/.well-known/oauth-protected-resource/mcp"
	routes := http.NewServeMux()
	s := httptest.NewServer(routes)
	t.Cleanup(s.Close)
	routes.HandleFunc(metadata, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"resource":"%s/mcp","authorization_servers":[%q]}`, s.URL, issuer.URL)
	})
	routes.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, err := jsonrpc.Parse(body)
		switch {
		case err != nil:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.Method == "server/discover":
			w.WriteHeader(http.StatusBadRequest)
		case m.Method == "initialize":
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(jsonrpc.NewResult(m.ID, []byte(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"open","version":"1"}}`)))
		case m.Kind != jsonrpc.Request:
			w.WriteHeader(http.StatusAccepted)
		case issuer.takes(r):
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(jsonrpc.NewResult(m.ID, []byte(`{"tools":[{"name":"real","inputSchema":{"type":"object"}}]}`)))
		default:
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+s.URL+metadata+`"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	return s
}

// A server that answers initialize to anybody, and wants a login for its tools, has the tool login, in a view too, until
// somebody has logged in. The link is for nobody but the client that calls it: neither the log nor the pages for
// operators and others have it.
func TestServerThatOpensToAnybodyAndListsNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ file, token, link string }{
		"per principal": {ownLogins, aliceToken, pageOfNotes + ticketName},
		"shared":        {"servers:\n  notes: {url: URL/mcp}\n", "", "/authorize?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			issuer := newProtected(t)
			l := &live{dir: t.TempDir(), client: newClient(t, &http.Transport{})}
			l.write(t, "tokens", tokensOfBoth)
			l.write(t, "gw.yaml", strings.ReplaceAll(test.file, "URL/", newOpen(t, issuer).URL+"/")+"views:\n  all: {servers: {notes: {}}}\n")
			l.program = startWith(t, clitest.State(t), "--config", filepath.Join(l.dir, "gw.yaml"), "--addr", "127.0.0.1:0",
				"--admin-addr", "127.0.0.1:0", "--initialization-timeout", "5m", "--log-level", "debug", "--no-start-check")
			var text string
			var session *mcp.ClientSession
			var err error
			for _, server := range []string{"notes", "all"} {
				session, err = tryConnect(t, l.server(server), test.token)
				ssetest.Must(t, err)
				tools, err := session.ListTools(t.Context(), nil)
				ssetest.Must(t, err)
				ssetest.Want(t, "tools of "+server, len(tools.Tools), 1)
				ssetest.Want(t, "tool of "+server, tools.Tools[0].Name, "login")
				text = call(t, session, "login")
				ssetest.WantText(t, "answer of "+server, text, test.link)
			}
			_, status := get(t, l.client, l.admin+"/status", test.token)
			said := map[string]string{"/status": status, "the log": l.log.String(),
				"state of notes": l.state(t, "notes", test.token), "state of all": l.state(t, "all", test.token)}
			for _, path := range []string{"/readyz", "/connections", "/metrics"} {
				_, said[path] = get(t, l.client, l.admin+path, test.token)
			}
			for what, text := range said {
				ssetest.Want(t, what+" is empty", text == "", false)
				for _, part := range []string{test.link, "ticket", "/start/"} {
					if strings.Contains(text, part) {
						t.Errorf("%s has %s:\n%s", what, part, text)
					}
				}
			}
			if test.token == "" {
				visit(t, issuer.linkIn(t, text))
			} else {
				newSurfer(t, l, "alice").logIn(linkOf(t, text), test.token)
			}
			session, err = tryConnect(t, l.server("notes"), test.token)
			ssetest.Must(t, err)
			tools, err := session.ListTools(t.Context(), nil)
			ssetest.Must(t, err)
			ssetest.Want(t, "tool after the login", tools.Tools[0].Name, "real")
		})
	}
}

// takes reports whether a request has a good token.
func (p *protected) takes(r *http.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
}
