package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

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
		default:
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+s.URL+metadata+`"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	return s
}

// A view reads the lists of its servers itself. Where one of them wants a login for that, the link to it is for nobody
// but the client that asks there: neither the log nor the pages for operators and others have it.
func TestLinkOfALoginIsNotInWhatAViewSays(t *testing.T) {
	t.Parallel()
	const why = "the server needs a login, and the link to it is for the client of a call"
	for name, test := range map[string]struct{ file, token, link, state string }{
		"per principal": {ownLogins, aliceToken, pageOfNotes + ticketName, "this server of the view fails"}, // no details for all
		"shared":        {"servers:\n  notes: {url: URL/mcp}\n", "", "/authorize?", why},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			issuer := newProtected(t)
			l := &live{dir: t.TempDir(), client: newClient(t, &http.Transport{})}
			l.write(t, "tokens", tokensOfBoth)
			l.write(t, "gw.yaml", strings.ReplaceAll(test.file, "URL/", newOpen(t, issuer).URL+"/")+"views:\n  all: {servers: {notes: {}}}\n")
			l.program = startWith(t, clitest.State(t), "--config", filepath.Join(l.dir, "gw.yaml"), "--addr", "127.0.0.1:0",
				"--admin-addr", "127.0.0.1:0", "--initialization-timeout", "5m", "--log-level", "debug", "--no-start-check")
			session, err := tryConnect(t, l.server("notes"), test.token)
			ssetest.Must(t, err)
			_, err = session.ListTools(t.Context(), nil)
			ssetest.WantText(t, "the list of the server", err, test.link)
			session, err = tryConnect(t, l.server("all"), test.token)
			ssetest.Must(t, err)
			_, _ = session.ListTools(t.Context(), nil)
			l.log.await(t, 1, `msg="member failed" server=all member=notes err="`+why)
			_, status := get(t, l.client, l.admin+"/status", test.token)
			said := map[string]string{"/status": status, "the log": l.log.String(),
				"state of notes": l.state(t, "notes", test.token), "state of all": l.state(t, "all", test.token)}
			for _, path := range []string{"/readyz", "/connections", "/metrics"} {
				_, said[path] = get(t, l.client, l.admin+path, test.token)
			}
			ssetest.WantText(t, "state of all", said["state of all"], test.state)
			for what, text := range said {
				ssetest.Want(t, what+" is empty", text == "", false)
				for _, part := range []string{test.link, "ticket", "/start/"} {
					if strings.Contains(text, part) {
						t.Errorf("%s has %s:\n%s", what, part, text)
					}
				}
			}
		})
	}
}
