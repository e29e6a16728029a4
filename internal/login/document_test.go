package login

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A document is used only where issuers can read it.
func TestURLOfADocument(t *testing.T) {
	for page, want := range map[string]bool{
		"https://gw.example.com/login/notes": true, "https://gw.example.com:8443/team/login": true, "https://8.8.8.8/login": true,
		"https://app.gw.github.io/login": true, "http://gw.example.com/login/notes": false, "https://localhost/login": false,
		"https://127.0.0.1:8443/login": false, "https://10.1.2.3/login": false, "https://[::1]/login": false, "https://gw/login": false,
		"https://gw.internal/login": false, "https://gw.local/login": false, "https://user@gw.example.com/login": false,
		"https://gw.example.com/login?x": false, "https://gw.example.com/a/../login": false, "/login": false, "": false,
	} {
		at := Document{Page: page}.URL()
		ssetest.Want(t, "an issuer can read that of "+page, at != "", want)
		if want {
			ssetest.Want(t, "URL", at, page+"/client.json")
		}
	}
}

// A document says where the logins at its server come back, and nothing else that is not known to all.
func TestDocument(t *testing.T) {
	for name, c := range map[string]struct {
		document Document
		want     string
	}{
		"at the page": {Document{Page: ownPage}, `{"client_id":"https://gw.example.com/login/notes/client.json",` +
			`"redirect_uris":["https://gw.example.com/login/notes/callback"],"token_endpoint_auth_method":"none",` +
			`"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"client_name":"sse-server",` +
			`"software_id":"sse-server","application_type":"web"}`},
		"on this machine": {Document{Page: ownPage, OnThisMachine: true}, `{"client_id":"https://gw.example.com/login/notes/client.json",` +
			`"redirect_uris":["http://127.0.0.1/callback"],"token_endpoint_auth_method":"none",` +
			`"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"client_name":"sse-server",` +
			`"software_id":"sse-server","application_type":"native"}`},
	} {
		rec := httptest.NewRecorder()
		c.document.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
		ssetest.Want(t, name, rec.Body.String(), c.want)
	}
}

// The document is read with GET and HEAD alone, and may be kept for a short time.
func TestDocumentIsServed(t *testing.T) {
	server := httptest.NewServer(Document{Page: ownPage})
	defer server.Close()
	for method, want := range map[string]int{http.MethodGet: 200, http.MethodHead: 200, http.MethodPost: 405, http.MethodOptions: 405} {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL, nil)
		ssetest.Must(t, err)
		resp, err := http.DefaultClient.Do(request)
		ssetest.Must(t, err)
		body, err := io.ReadAll(resp.Body)
		ssetest.Must(t, err)
		resp.Body.Close()
		ssetest.Want(t, "status of "+method, resp.StatusCode, want)
		ssetest.Want(t, method+" has a body", len(body) > 0, method == http.MethodGet)
		if want == http.StatusOK {
			ssetest.Want(t, "type of "+method, resp.Header.Get("Content-Type"), "application/json")
			ssetest.Want(t, "time of "+method, resp.Header.Get("Cache-Control"), "max-age=300")
		} else {
			ssetest.Want(t, "Allow of "+method, resp.Header.Get("Allow"), "GET, HEAD")
		}
	}
}

// byDocument makes a world whose issuer registers no clients, and reads a document.
func byDocument(t *testing.T, d Document) *world {
	t.Helper()
	return newWorld(t, func(w *world) { w.noRegistration, w.documents, w.rotates, w.document = true, true, true, d })
}

// wantAskers checks that each request for a token was of the client of a document, which has no secret.
func (w *world) wantAskers(t *testing.T, d Document, grants ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range grants {
		grants[i] += " " + d.URL()
	}
	ssetest.Want(t, "requests for tokens", w.askers, grants)
}

// A person logs in as the client of a document at an issuer that reads it, and the login is renewed and ended as that.
func TestLoginAsTheClientOfADocument(t *testing.T) {
	d := Document{Page: ownPage, OnThisMachine: true}
	w := byDocument(t, d)
	o := w.options(t)
	o.DocumentURL = d.URL()
	l := w.mustLogIn(t, o)
	ssetest.Want(t, "client", l.Client, Client{ID: d.URL(), How: "the client that " + d.URL() + " describes"})
	ssetest.Must(t, l.refresh(t.Context(), newGuard(nil, l.ServerAt)))
	w.wantAskers(t, d, "authorization_code", "refresh_token")
	ssetest.Must(t, o.Store.Save(l))
	revoked, err := Logout(t.Context(), o.Store, l)
	ssetest.Must(t, err)
	ssetest.Want(t, "the issuer has ended it", revoked, true)
	ssetest.Want(t, "registrations", w.count("/register"), 0)
}

// An issuer does not take a login that comes back elsewhere than its document says: at a listener in the place of a page,
// or the other way round.
func TestDocumentOfAnotherLogin(t *testing.T) {
	for _, redirect := range []string{"", ownPage + callbackPath} {
		d := Document{Page: ownPage, OnThisMachine: redirect != ""}
		w := byDocument(t, d)
		o := w.options(t)
		o.DocumentURL, o.Redirect = d.URL(), redirect
		a, err := Begin(t.Context(), o)
		ssetest.Must(t, err)
		defer a.Close()
		resp, err := http.Get(a.Link())
		ssetest.Must(t, err)
		page, err := io.ReadAll(resp.Body)
		ssetest.Must(t, err)
		resp.Body.Close()
		ssetest.WantText(t, "page of the issuer", string(page), "the document does not have the redirect")
	}
}

// A principal logs in as the client of the document of its page, and its login is renewed as that.
func TestPrincipalAsTheClientOfADocument(t *testing.T) {
	d := Document{Page: ownPage}
	g := newGate(t, byDocument(t, d))
	l := g.logIn("alice")
	ssetest.Want(t, "client", l.Client.ID, d.URL())
	got, err := g.of("alice", "client").Authorizer(nil, slog.New(slog.DiscardHandler))(t.Context(), "Bearer "+l.Access)
	ssetest.Must(t, err)
	ssetest.Want(t, "the token is another", got != "" && got != "Bearer "+l.Access, true)
	g.w.wantAskers(t, d, "authorization_code", "refresh_token")
	g.wantLoggedIn("bob", false)
}

// A principal whose login as the client of a document has had no answer logs in as a registered client the next time, if
// The client of a login is, in this order: the one that is named, the one of the login before that was named there, that
// of the document where the issuer takes it, and a new one. Where the issuer has both, the document counts if it can be
// read.
func TestClientOfALogin(t *testing.T) {
	var served metadata // what the document says
	var status int
	documents := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(status)
		_ = json.NewEncoder(rw).Encode(served)
	}))
	t.Cleanup(documents.Close)
	trusting := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: documents.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}}
	at := documents.URL + "/client.json"
	const another = "https://client.example.com/metadata.json"
	for name, c := range map[string]struct {
		noRegistration, noDocuments bool
		status                      int // of the document; default 200
		id, redirect                string
		named                       bool // the person names another client
		before                      bool // it was named for the login before
		want                        string
	}{
		"a document that can be read":              {want: at},
		"a document of another client":             {id: another, want: "registered"},
		"a document of another redirect":           {redirect: "https://gw.example.com/login/notes/callback", want: "registered"},
		"no document there":                        {status: http.StatusNotFound, want: "registered"},
		"a document that fails":                    {status: http.StatusBadGateway, want: "registered"},
		"no document there, and no registration":   {status: http.StatusNotFound, noRegistration: true, want: at},
		"an issuer that takes no documents":        {noDocuments: true, want: "registered"},
		"a client that is named":                   {named: true, want: another},
		"a client that is named, no registration":  {named: true, noRegistration: true, want: another},
		"a client that was named":                  {before: true, want: another},
		"a client that was named, no registration": {before: true, noRegistration: true, want: another},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(w *world) { w.noRegistration, w.documents = c.noRegistration, !c.noDocuments })
			status = max(c.status, http.StatusOK)
			served = metadata{at, Document{OnThisMachine: true}.metadata().ClientRegistrationMetadata}
			if c.id != "" {
				served.ClientID = c.id
			}
			if c.redirect != "" {
				served.RedirectURIs = []string{c.redirect}
			}
			o := w.options(t)
			o.DocumentURL, o.Transport = at, trusting
			if c.named || c.before {
				named := o
				named.ClientID, named.Issuer = another, w.issuer.URL
				w.mustLogIn(t, named)
				if c.named {
					o = named
				}
			}
			l := w.mustLogIn(t, o)
			got := l.Client.ID
			if l.Client.How == "a client registered for this login" {
				got = "registered"
			}
			ssetest.Want(t, "client", got, c.want)
			ssetest.Want(t, "registrations", w.count("/register") > 0, c.want == "registered")
		})
	}
}

// A client id that is the URL of somebody's document is sent as it is, at an issuer that registers no clients.
func TestNamedDocument(t *testing.T) {
	const id = "https://client.example.com/metadata.json"
	w := newWorld(t, func(w *world) { w.noRegistration, w.documents = true, true })
	o := w.options(t)
	o.ClientID, o.Issuer = id, w.issuer.URL
	a, err := Begin(t.Context(), o)
	ssetest.Must(t, err)
	defer a.Close()
	link, err := url.Parse(a.Link())
	ssetest.Must(t, err)
	ssetest.Want(t, "client in the link", link.Query().Get("client_id"), id)
	l := w.mustLogIn(t, o)
	ssetest.Must(t, l.refresh(t.Context(), newGuard(nil, l.ServerAt)))
	w.mu.Lock()
	defer w.mu.Unlock()
	ssetest.Want(t, "requests for tokens", slices.Equal(w.askers, []string{"authorization_code " + id, "refresh_token " + id}), true)
}
