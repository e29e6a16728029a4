package login

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
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

// The client of a login is, in this order: the one that is named, the one of the login before that was named there, that
// of the document where the issuer takes it, and a new one. Where the issuer has both, the document counts if it can be
// read. The login is made and renewed as that client.
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
		named                       string // by the person
		before                      string // it was named for the login before
		want                        string
	}{
		"a document that can be read":              {want: at},
		"a document of another client":             {id: another, want: "registered"},
		"a document of another redirect":           {redirect: "https://gw.example.com/login/notes/callback", want: "registered"},
		"no document there":                        {status: http.StatusNotFound, want: "registered"},
		"a document that fails":                    {status: http.StatusBadGateway, want: "registered"},
		"no document there, and no registration":   {status: http.StatusNotFound, noRegistration: true, want: at},
		"an issuer that takes no documents":        {noDocuments: true, want: "registered"},
		"a client that is named":                   {named: another, want: another},
		"a client that is named, no registration":  {named: another, noRegistration: true, want: another},
		"a client that was named":                  {before: another, want: another},
		"a client that was named, no registration": {before: another, noRegistration: true, want: another},
		"an id that is no URL":                     {named: "by-hand", noDocuments: true, want: "by-hand"},
		"an id that is no URL, no registration":    {named: "by-hand", noDocuments: true, noRegistration: true, want: "by-hand"},
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
			if c.before != "" {
				named := o
				named.ClientID, named.Issuer = c.before, w.issuer.URL
				w.mustLogIn(t, named)
			}
			if c.named != "" {
				o.ClientID, o.Issuer = c.named, w.issuer.URL
			}
			l := w.mustLogIn(t, o)
			got, how := l.Client.ID, map[string]string{at: "the client that " + at + " describes", "registered": "a client registered for this login"}
			if l.Client.How == how["registered"] {
				got = "registered"
			}
			ssetest.Want(t, "client", got, c.want)
			ssetest.Want(t, "how it came to be", l.Client.How, cmp.Or(how[c.want], "the configured client id"))
			ssetest.Want(t, "registrations", w.count("/register") > 0, c.want == "registered")
			ssetest.Must(t, l.refresh(t.Context(), newGuard(nil, l.ServerAt)))
			ssetest.Want(t, "requests for tokens", w.askers[len(w.askers)-2:], []string{"authorization_code " + l.Client.ID, "refresh_token " + l.Client.ID})
		})
	}
}
