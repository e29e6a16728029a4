package main

import (
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// documentsOfBoth is a gateway with a login of each principal at one server, and one for all at another.
const documentsOfBoth = ownLogins + "  mail: {url: URL/mcp, login: shared}\n"

// readDocuments has the issuer read the documents of a gateway, and register no clients.
func (p *protected) readDocuments(t *testing.T, l *live) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.documents = newSurfer(t, l, "").Client
}

// An issuer that registers no clients reads the documents of the gateway: a principal logs in at the page as the client of
// its document, and a person with the command as that of another one. Both are renewed as these clients.
func TestLoginsAsTheClientsOfDocuments(t *testing.T) {
	t.Parallel()
	remote, env := newProtected(t), clitest.State(t)
	l := startOwn(t, remote, env, documentsOfBoth)
	remote.readDocuments(t, l)
	session, link := l.ask(t, aliceToken)
	newSurfer(t, l, "alice").logIn(link, aliceToken)
	awaitTools(t, session, "of_alice whoami")
	out := remote.runLogin(t, env, "login", "mail", "--config", filepath.Join(l.dir, "gw.yaml"))
	const ofNotes, ofMail = publicURL + "/login/notes/client.json", publicURL + "/login/mail/client.json"
	ssetest.WantText(t, "output", out, "as the client that "+ofMail+" describes.")
	remote.mu.Lock()
	clear(remote.tokens) // each is renewed at a 401
	remote.mu.Unlock()
	ssetest.Want(t, "who asks as alice", call(t, session, "whoami"), "alice")
	someone := person{live: l, token: bobToken}
	ssetest.WantText(t, "a call with the login for all", someone.postModern(t, "mail", "tools/call", `,"name":"whoami","arguments":{}`), `"text":"you"`)
	remote.mu.Lock()
	defer remote.mu.Unlock()
	ssetest.Want(t, "clients of requests for tokens", strings.Join(remote.clients, " "), strings.Join([]string{ofNotes, ofMail, ofNotes, ofMail}, " "))
}

// A document is for anybody who asks by the public name of the gateway, with GET and HEAD, may be kept for a short time,
// and is that of the servers of now.
func TestDocumentsOfAGateway(t *testing.T) {
	t.Parallel()
	l := startOwn(t, newProtected(t), clitest.State(t), documentsOfBoth)
	ask := func(method, host, path string, header ...string) (*http.Response, string) {
		t.Helper()
		at := clitest.Must(url.Parse(l.server("notes")))
		r := ssetest.Request(t.Context(), method, at.Scheme+"://"+at.Host+path, "", header...)
		r.Host = host
		resp, err := l.client.Do(r)
		ssetest.Must(t, err)
		defer resp.Body.Close()
		return resp, string(clitest.Must(io.ReadAll(resp.Body)))
	}
	const notes, mail, host = "/login/notes/client.json", "/login/mail/client.json", "gw.example.com"
	for _, c := range []struct {
		name, method, host, path string
		header                   []string
		status                   int
		want                     string // in the document
	}{
		{"of principals", http.MethodGet, host, notes, nil, 200, `"redirect_uris":["` + pageOfNotes + `/callback"]`},
		{"for all", http.MethodGet, host, mail, nil, 200, `"redirect_uris":["http://127.0.0.1/callback"]`},
		{"head", http.MethodHead, host, notes, nil, 200, ""},
		{"options", http.MethodOptions, host, notes, nil, 405, ""},
		{"with a wrong token", http.MethodGet, host, notes, []string{"Authorization", "Bearer x"}, 200, `"client_id":"` + publicURL + notes + `"`},
		{"post", http.MethodPost, host, notes, nil, 405, ""},
		{"another host", http.MethodGet, "evil.example", notes, nil, 403, ""},
		{"a page of another site", http.MethodGet, host, notes, []string{"Origin", "https://evil.example"}, 403, ""},
		{"no such server", http.MethodGet, host, "/login/gone/client.json", nil, 404, ""},
	} {
		resp, body := ask(c.method, c.host, c.path, c.header...)
		ssetest.Want(t, c.name, resp.StatusCode, c.status)
		ssetest.WantText(t, c.name, body, c.want)
		switch c.status {
		case http.StatusOK:
			ssetest.Want(t, c.name+": it has a body", body != "", c.method == http.MethodGet)
			ssetest.Want(t, c.name+": type", resp.Header.Get("Content-Type"), "application/json")
			ssetest.Want(t, c.name+": how long it may be kept", resp.Header.Get("Cache-Control"), "max-age=300")
			if strings.Contains(body, "/mcp") {
				t.Errorf("%s: the document has an address of a server: %s", c.name, body)
			}
		case http.StatusMethodNotAllowed:
			ssetest.Want(t, c.name+": Allow", resp.Header.Get("Allow"), "GET, HEAD")
		}
	}
	l.write(t, "gw.yaml", strings.NewReplacer("mail:", "post:", "URL/", "https://mcp.example.com/").Replace(documentsOfBoth))
	l.wantReloadAs(t, bobToken)
	resp, _ := ask(http.MethodGet, host, "/login/post/client.json")
	ssetest.Want(t, "the document of a server that is new", resp.StatusCode, 200)
	resp, _ = ask(http.MethodGet, host, mail)
	ssetest.Want(t, "the document of a server that is gone", resp.StatusCode, 404)
}
