package login

import (
	"context"
	"errors"
	"html"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofrs/flock"

	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

const ownPage = "https://gw.example.com/login/notes"

// testKey seals the logins of a gate.
var testKey = SealingKey([]byte("a key of ids that is long enough"))

// gate is a gateway with the principals alice and bob, whose tokens are "token of alice" and "token of bob".
type gate struct {
	t     *testing.T
	w     *world
	page  *Page
	state string

	mu   sync.Mutex
	gone map[string]bool // principals that are no more
	log  strings.Builder
}

func newGate(t *testing.T, w *world) *gate {
	t.Helper()
	g := &gate{t: t, w: w, state: filepath.Join(ssetest.PrivateDir(t), "state"), gone: map[string]bool{}}
	g.page = &Page{Name: "notes", MayUse: func(o Own) bool { return g.knows(o.Principal) }, Log: slog.New(slog.NewTextHandler(&g.log, nil)),
		Credentials: Credentials{StateDir: g.state, Server: w.url(),
			Own: Own{Page: ownPage}, Seal: Seal{Key: testKey}},
		Principal: func(token string) (string, error) {
			name, ok := strings.CutPrefix(token, "token of ")
			if !ok || !g.knows(name) {
				return "", errors.New("the token is not valid")
			}
			return name, nil
		}}
	t.Cleanup(func() { GiveUp(g.state) })
	return g
}

func (g *gate) knows(principal string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return (principal == "alice" || principal == "bob") && !g.gone[principal]
}

// of returns the credentials of a principal, as a client of it has them.
func (g *gate) of(principal, client string) Credentials {
	return g.page.Credentials.For(principal, Asker{Name: client, Connection: "c-" + client})
}

// ticket returns the link that a client of a principal gets.
func (g *gate) ticket(principal, client string) string {
	g.t.Helper()
	link, _, err := g.of(principal, client).Begin(g.t.Context())
	ssetest.Must(g.t, err)
	if !strings.HasPrefix(link, ownPage+"?ticket=") {
		g.t.Fatalf("link: got %s", link)
	}
	return link
}

// serve sends a request to the page, and returns the answer.
func (g *gate) serve(r *http.Request) *httptest.ResponseRecorder {
	g.t.Helper()
	sub := strings.TrimPrefix(r.URL.Path, "/login/notes")
	rec := httptest.NewRecorder()
	g.page.Serve(rec, r, sub)
	return rec
}

func (g *gate) get(address string, cookies ...*http.Cookie) *httptest.ResponseRecorder {
	g.t.Helper()
	r := httptest.NewRequest(http.MethodGet, address, nil)
	for _, one := range cookies {
		r.AddCookie(one)
	}
	return g.serve(r)
}

// post sends the form of a ticket's page from a page of an origin; empty: of none.
func (g *gate) post(link, origin, token string) *httptest.ResponseRecorder {
	g.t.Helper()
	_, ticket, _ := strings.Cut(link, "?ticket=")
	form := url.Values{"ticket": {ticket}, "token": {token}}.Encode()
	r := httptest.NewRequest(http.MethodPost, ownPage, strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	return g.serve(r)
}

const ownOrigin = "https://gw.example.com"

var refreshTo = regexp.MustCompile(`http-equiv="refresh" content="0;url=([^"]+)"`)

// begin opens the page of a ticket, sends its form, and follows to the issuer. It returns the cookie, and the address to
// which the issuer sends the browser back.
func (g *gate) begin(link, principal string) (cookie *http.Cookie, back string) {
	g.t.Helper()
	ssetest.Want(g.t, "status of the page", g.get(link).Code, http.StatusOK)
	rec := g.post(link, ownOrigin, "token of "+principal)
	ssetest.Want(g.t, "status of the consent", rec.Code, http.StatusOK)
	found := refreshTo.FindStringSubmatch(rec.Body.String())
	cookies := rec.Result().Cookies()
	if found == nil || len(cookies) != 1 {
		g.t.Fatalf("got the cookies %v and the page %s", cookies, rec.Body.String())
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(html.UnescapeString(found[1]))
	ssetest.Must(g.t, err)
	resp.Body.Close()
	return cookies[0], resp.Header.Get("Location")
}

// logIn logs a principal in.
func (g *gate) logIn(principal string) *Login {
	g.t.Helper()
	cookie, back := g.begin(g.ticket(principal, "client"), principal)
	ssetest.Want(g.t, "status of the callback", g.get(back, cookie).Code, http.StatusSeeOther)
	l, err := g.of(principal, "client").source().look()
	ssetest.Must(g.t, err)
	if l == nil {
		g.t.Fatalf("%s is not logged in: %s", principal, g.get(ownPage+"/done", cookie).Body.String())
	}
	return l
}

func (g *gate) wantLoggedIn(principal string, want bool) {
	g.t.Helper()
	ssetest.Want(g.t, principal+" is logged in", g.of(principal, "client").LoggedIn(), want)
}

// A token that is pasted with the words before it in the settings of a client is the token.
func TestPastedToken(t *testing.T) {
	for text, want := range map[string]string{
		"TOKEN": "TOKEN", " TOKEN\r\n": "TOKEN", "Bearer TOKEN": "TOKEN", "bearer  TOKEN ": "TOKEN", "Bearer": "Bearer", "Basic TOKEN": "Basic TOKEN",
	} {
		ssetest.Want(t, text, pastedToken(text), want)
	}
}

// The log says what the issuer of a server was asked for, if it refuses the login of a principal.
func TestLoginOfAPrincipalIsRefused(t *testing.T) {
	g := newGate(t, newWorld(t, func(w *world) { w.refused, w.scopes = true, []string{"read", "write"} }))
	cookie, back := g.begin(g.ticket("alice", "client"), "alice")
	g.get(back, cookie)
	ssetest.WantText(t, "last page", g.get(ownPage+"/done", cookie).Body.String(), "The login has failed")
	ssetest.WantText(t, "log", g.log.String(), "invalid_target", "read write", "the server names those that it needs")
}

// The login of a principal is made at the page, and used for that principal alone.
func TestLoginOfAPrincipal(t *testing.T) {
	g := newGate(t, newWorld(t, nil))
	link := g.ticket("alice", "editor/1")
	page := g.get(link)
	ssetest.WantText(t, "page", page.Body.String(), "editor/1 (connection c-editor/1)", "<strong>notes</strong>",
		strings.TrimPrefix(g.w.server.URL, "http://"), strings.TrimPrefix(g.w.issuer.URL, "http://"))
	ssetest.WantText(t, "policy", page.Header().Get("Content-Security-Policy"), "frame-ancestors 'none'", "default-src 'none'")
	ssetest.Want(t, "registrations before the consent", g.w.count("/register"), 0)
	cookie, back := g.begin(link, "alice")
	ssetest.WantText(t, "cookie", cookie.String(), "__Host-login-", "; Path=/;", "; HttpOnly; Secure; SameSite=Lax")
	ssetest.Want(t, "redirects", strings.Join(g.w.redirects, " "), ownPage+"/callback")
	rec := g.get(back, cookie)
	ssetest.Want(t, "status", rec.Code, http.StatusSeeOther)
	ssetest.Want(t, "the browser goes to", rec.Header().Get("Location"), ownPage+"/done")
	rec = g.get(ownPage+"/done", cookie)
	ssetest.WantText(t, "last page", rec.Body.String(), "You are logged in. The clients of alice at this gateway act as you at notes now.")
	ssetest.WantText(t, "cookie", rec.Result().Cookies()[0].String(), "Max-Age=0")
	g.wantLoggedIn("alice", true)
	g.wantLoggedIn("bob", false)
	g.wantLoggedIn("", false)
	shared := Credentials{StateDir: g.state, Server: g.w.url(), Links: true}
	ssetest.Want(t, "somebody is logged in for all", shared.LoggedIn(), false)
	other := g.page.Credentials
	other.Own.Page = "https://other.example.com/login/notes"
	ssetest.Want(t, "alice of another gateway is logged in", other.For("alice", Asker{}).LoggedIn(), false)
	g.w.wantNoSecret(t, "the log", g.log.String())
	g.w.wantNoSecret(t, "the pages", page.Body.String()+rec.Body.String())
}

// No page of another origin can send the form (CSRF), also not with the token of the principal.
func TestConsentOfAnotherOrigin(t *testing.T) {
	g := newGate(t, newWorld(t, nil))
	link := g.ticket("alice", "client")
	g.get(link)
	for _, origin := range []string{"", "null", "https://evil.example", "http://gw.example.com", "https://gw.example.com:444",
		"https://gw.example.com.evil.example", "https://GW.example.com/"} {
		rec := g.post(link, origin, "token of alice")
		ssetest.Want(t, "status for the origin "+origin, rec.Code, http.StatusForbidden)
		ssetest.Want(t, "cookies for the origin "+origin, len(rec.Result().Cookies()), 0)
	}
	ssetest.Want(t, "registrations", g.w.count("/register"), 0)
	ssetest.Want(t, "status of its own", g.post(link, ownOrigin, "token of alice").Code, http.StatusOK)
}

// The browser that returns is the one that has begun, with the state of that login, once (fixation).
func TestCallbackOfAnotherBrowser(t *testing.T) {
	g := newGate(t, newWorld(t, nil))
	cookie, back := g.begin(g.ticket("alice", "client"), "alice")
	bobs, backOfBob := g.begin(g.ticket("bob", "client"), "bob")
	double := *bobs
	for name, c := range map[string]struct {
		back    string
		cookies []*http.Cookie
		want    int
	}{
		"without a cookie":                    {back, nil, http.StatusForbidden},
		"with a made-up cookie":               {back, []*http.Cookie{{Name: cookie.Name, Value: "X"}}, http.StatusForbidden},
		"with the cookie of another login":    {back, []*http.Cookie{bobs}, http.StatusBadRequest},
		"with two cookies":                    {back, []*http.Cookie{&double, cookie}, http.StatusForbidden},
		"with the answer to another one":      {backOfBob, []*http.Cookie{cookie}, http.StatusBadRequest},
		"with the cookie, and without state":  {ownPage + "/callback?code=x", []*http.Cookie{cookie}, http.StatusBadRequest},
		"with the cookie of another page's":   {back, []*http.Cookie{{Name: "__Host-login-x", Value: cookie.Value}}, http.StatusForbidden},
		"with the cookie, and made-up state":  {ownPage + "/callback?code=x&state=y", []*http.Cookie{cookie}, http.StatusBadRequest},
		"with the cookie, and state as error": {ownPage + "/callback?error=x", []*http.Cookie{cookie}, http.StatusBadRequest},
	} {
		ssetest.Want(t, name, g.get(c.back, c.cookies...).Code, c.want)
		g.wantLoggedIn("alice", false)
		g.wantLoggedIn("bob", false)
	}
	ssetest.Want(t, "requests for tokens", g.w.count("/token"), 0)
	ssetest.Want(t, "status", g.get(back, cookie).Code, http.StatusSeeOther)
	g.wantLoggedIn("alice", true)
	g.get(back, cookie) // the browser goes back
	ssetest.Want(t, "requests for tokens after a second time", g.w.count("/token"), 1)
	g.wantLoggedIn("bob", false)
}

// An answer of another issuer is none (RFC 9207).
func TestCallbackOfAnotherIssuer(t *testing.T) {
	g := newGate(t, newWorld(t, func(w *world) { w.iss = "https://evil.example" }))
	cookie, back := g.begin(g.ticket("alice", "client"), "alice")
	g.get(back, cookie)
	ssetest.WantText(t, "last page", g.get(ownPage+"/done", cookie).Body.String(), "The login has failed. Have the client call again")
	ssetest.WantText(t, "log", g.log.String(), "the answer is of another issuer")
	ssetest.Want(t, "requests for tokens", g.w.count("/token"), 0)
}

// A link is of no use to anybody but its principal: who has it needs that one's token. It ends after some wrong ones.
func TestTicketOfAnotherPrincipal(t *testing.T) {
	g := newGate(t, newWorld(t, nil))
	link := g.ticket("alice", "client")
	ssetest.Want(t, "status of the page", g.get(link).Code, http.StatusOK)
	for _, token := range []string{"token of bob", "", "token of nobody", "wrong"} {
		rec := g.post(link, ownOrigin, token)
		ssetest.Want(t, "status for "+token, rec.Code, http.StatusForbidden)
		ssetest.WantText(t, "page for "+token, rec.Body.String(), "This is not the token of the client")
		ssetest.Want(t, "cookies for "+token, len(rec.Result().Cookies()), 0)
	}
	g.post(link, ownOrigin, "wrong again")
	ssetest.Want(t, "status of the page after five", g.get(link).Code, http.StatusNotFound)
	ssetest.Want(t, "status of the right token after five", g.post(link, ownOrigin, "token of alice").Code, http.StatusNotFound)
	ssetest.Want(t, "registrations", g.w.count("/register"), 0)
	if text := g.log.String(); strings.Contains(text, "token of") {
		t.Errorf("the log has a token: %s", text)
	}
}

// Each client of a principal has a ticket of its own, whose page names it: a consent is for one client, once (confused
// deputy).
func TestEachClientHasATicket(t *testing.T) {
	g := newGate(t, newWorld(t, nil))
	first, second := g.ticket("alice", "editor"), g.ticket("alice", "other")
	if first == second {
		t.Fatal("two clients have one link")
	}
	ssetest.Want(t, "link of a client that asks again", g.ticket("alice", "editor"), first)
	ssetest.WantText(t, "page of the second", g.get(second).Body.String(), "<strong>other (connection c-other)</strong>")
	// The first has not shown its page: a token alone is no consent to what nobody has seen.
	rec := g.post(first, ownOrigin, "token of alice")
	ssetest.Want(t, "cookies without the page", len(rec.Result().Cookies()), 0)
	ssetest.WantText(t, "page", rec.Body.String(), "<strong>editor (connection c-editor)</strong>", "type your token again")
	g.begin(first, "alice")
	ssetest.Want(t, "status of the first after its consent", g.get(first).Code, http.StatusNotFound)
	ssetest.Want(t, "the same form again", g.post(first, ownOrigin, "token of alice").Code, http.StatusNotFound)
	ssetest.Want(t, "status of the second", g.get(second).Code, http.StatusOK)
	if third := g.ticket("alice", "editor"); third == first {
		t.Error("a client that asks again gets a link that was used")
	}
	ssetest.Want(t, "registrations", g.w.count("/register"), 1)
}

// Nothing that a query has leads the browser elsewhere (open redirects), and nothing in it becomes markup.
func TestNothingInAQueryRedirects(t *testing.T) {
	g := newGate(t, newWorld(t, nil))
	const evil = "&redirect_uri=https://evil.example&back=https://evil.example&next=//evil.example&url=https://evil.example" +
		"&page=https://evil.example&iss=https://evil.example&error_description=%3Ca+href=https://evil.example%3E"
	link := g.ticket("alice", "<script>x</script>")
	cookie, back := g.begin(g.ticket("alice", "client"), "alice")
	bad, _ := g.begin(g.ticket("bob", "client"), "bob")
	for name, rec := range map[string]*httptest.ResponseRecorder{
		"page":                g.get(link + evil),
		"page without ticket": g.get(ownPage + "?x=y" + evil),
		"callback, no cookie": g.get(back + evil),
		"callback, error":     g.get(ownPage+"/callback?error=x"+evil, bad),
		"callback":            g.get(strings.Replace(back, "?", "?"+evil[1:]+"&", 1), cookie),
		"done":                g.get(ownPage+"/done?x=y"+evil, cookie),
		"form":                g.post(link+evil, ownOrigin, "wrong"),
	} {
		if to := rec.Header().Get("Location"); to != "" && to != ownPage+"/done" {
			t.Errorf("%s: the browser goes to %s", name, to)
		}
		for _, markup := range []string{"<a", "<script", "http-equiv", `action="http://`, `="https://evil`, "=" + "//evil"} {
			if strings.Contains(rec.Body.String(), markup) {
				t.Errorf("%s: the page has %s: %s", name, markup, rec.Body.String())
			}
		}
	}
}

// The page says that the issuer is at another site, and names its addresses of others, before the person agrees.
func TestPageSaysWhatIsAtOtherSites(t *testing.T) {
	g := newGate(t, newWorld(t, func(w *world) {
		w.issuer.URL = strings.Replace(w.issuer.URL, "127.0.0.1", "localhost", 1)
		w.authorize = w.server.URL + "/authorize"
	}))
	ssetest.WantText(t, "page", g.get(g.ticket("alice", "client")).Body.String(), "which is another site than the server",
		"It names addresses of other sites", "authorization_endpoint "+g.w.server.URL+"/authorize")
}

// What is kept has no token in it, and is good for its principal at its server and issuer alone, with the key of now.
func TestLoginsOfPrincipalsAreSealed(t *testing.T) {
	g := newGate(t, newWorld(t, nil))
	l := g.logIn("alice")
	store := g.of("alice", "").source().store
	path := store.path(l.Server, l.Issuer)
	data, err := os.ReadFile(path)
	ssetest.Must(t, err)
	g.w.wantNoSecret(t, "the file", string(data))
	ssetest.WantText(t, "the file", string(data), `"principal": "alice"`)
	info, err := os.Stat(path)
	ssetest.Must(t, err)
	ssetest.Want(t, "mode", info.Mode().Perm(), os.FileMode(0o600))
	info, err = os.Stat(filepath.Dir(path))
	ssetest.Must(t, err)
	ssetest.Want(t, "mode of the folder", info.Mode().Perm(), os.FileMode(0o700))
	alice := g.of("alice", "client")
	bob, otherPage, otherKey := alice, alice, alice
	bob.Own.Principal, otherPage.Own.Page = "bob", "https://other.example.com/login/notes"
	otherKey.Seal.Key = SealingKey([]byte("another key of ids, long enough"))
	for name, c := range map[string]struct {
		own    Credentials
		server string
		change func(string) string
	}{
		"of another principal":    {bob, l.Server, func(s string) string { return strings.Replace(s, `"alice"`, `"bob"`, 1) }},
		"of another principal, 2": {bob, l.Server, nil},
		"of another gateway":      {otherPage, l.Server, nil},
		"with another key":        {otherKey, l.Server, nil},
		"of another server":       {alice, "https://other.example.com/mcp", nil},
		"of another issuer":       {alice, l.Server, func(s string) string { return strings.Replace(s, l.Issuer, "https://evil.example", 1) }},
		"changed":                 {alice, l.Server, func(s string) string { return strings.Replace(s, `"sealed": "`, `"sealed": "AAAA`, 1) }},
		"no file of a login":      {alice, l.Server, func(string) string { return "{}" }},
	} {
		moved := storeOf(g.state, c.server, c.own.Own, c.own.Seal)
		at, text := moved.path(c.server, l.Issuer), string(data)
		if c.change != nil {
			text = c.change(text)
		}
		ssetest.Must(t, os.WriteFile(at, []byte(text), 0o600))
		if got, err := moved.read(at); got != nil || !errors.Is(err, errSealed) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
		if got, _, err := moved.Newest(c.server); got != nil || err != nil {
			t.Errorf("%s, newest: got %v, %v", name, got, err)
		}
		ssetest.Must(t, os.WriteFile(path, data, 0o600))
	}
	if got, err := store.read(path); err != nil || got.Access != l.Access {
		t.Errorf("its own: %v", err)
	}
	ssetest.Must(t, os.Chmod(path, 0o644))
	if _, err := store.read(path); !errors.Is(err, errOpen) {
		t.Errorf("a file that others can read: %v", err)
	}
}

// Nothing is kept without a key, a principal, a page or a place, and nobody is logged in then.
func TestNothingIsKeptWithoutAKey(t *testing.T) {
	for name, change := range map[string]func(*Credentials){
		"key":       func(c *Credentials) { c.Seal.Key = SealingKey(nil) },
		"principal": func(c *Credentials) { c.Own.Principal = "" },
		"page":      func(c *Credentials) { c.Own.Page = "" },
		"place":     func(c *Credentials) { c.StateDir = "" },
	} {
		c := Credentials{StateDir: t.TempDir(), Server: "https://mcp.example.com/mcp", Own: Own{Page: ownPage, Principal: "alice"}, Seal: Seal{Key: testKey}}
		change(&c)
		ssetest.Want(t, "logged in without a "+name, c.LoggedIn(), false)
		if link, _, err := c.Begin(t.Context()); err == nil {
			t.Errorf("without a %s there is the link %s", name, link)
		}
		got, err := c.Authorizer(nil, slog.New(slog.DiscardHandler))(t.Context(), "")
		if got != "" || err != nil {
			t.Errorf("without a %s: got %q, %v", name, got, err)
		}
	}
}

// The tokens of two principals are renewed apart, and the end of one login is not that of the other.
func TestPrincipalsRenewApart(t *testing.T) {
	g := newGate(t, newWorld(t, func(w *world) { w.rotates = true }))
	tokens := map[string]string{"alice": g.logIn("alice").Access, "bob": g.logIn("bob").Access}
	authorize := func(principal, refused string) string {
		t.Helper()
		got, err := g.of(principal, "client").Authorizer(nil, slog.New(slog.DiscardHandler))(t.Context(), refused)
		ssetest.Must(t, err)
		return got
	}
	for principal, token := range tokens {
		ssetest.Want(t, "header of "+principal, authorize(principal, ""), "Bearer "+token)
	}
	fresh := authorize("alice", "Bearer "+tokens["alice"])
	if fresh == "Bearer "+tokens["alice"] || fresh == "Bearer "+tokens["bob"] || fresh == "" {
		t.Error("alice has no token of her own")
	}
	ssetest.Want(t, "header of bob after that", authorize("bob", ""), "Bearer "+tokens["bob"])
	// As in another process, after a restart.
	sources.Clear()
	ssetest.Want(t, "header of alice after a restart", authorize("alice", ""), fresh)
	ssetest.Want(t, "header of bob after a restart", authorize("bob", ""), "Bearer "+tokens["bob"])
	all, err := OfPrincipals(g.state)
	ssetest.Must(t, err)
	ssetest.Want(t, "logins", len(all), 2)
	ssetest.Want(t, "principals", all[0].Principal+" "+all[1].Principal, "alice bob")
}

// A principal that is removed loses its login, also one that is being made, and others keep theirs.
func TestRemovedPrincipal(t *testing.T) {
	g := newGate(t, newWorld(t, nil))
	g.logIn("alice")
	g.logIn("bob")
	waiting := g.ticket("alice", "another")
	cookie, back := g.begin(g.ticket("alice", "client"), "alice")
	attempt := g.page.visitOf(&http.Request{Header: http.Header{"Cookie": {cookie.Name + "=" + cookie.Value}}}).attempt
	g.mu.Lock()
	g.gone["alice"] = true
	g.mu.Unlock()
	isThere := func(of OfPrincipal) bool { return g.knows(of.Principal) }
	for _, key := range []string{"", SealingKey([]byte("another key of ids, long enough"))} {
		gone, err := ForgetPrincipals(g.state, key, isThere)
		ssetest.Must(t, err)
		ssetest.Want(t, "forgotten with another key", len(gone), 0)
	}
	gone, err := ForgetPrincipals(g.state, testKey, isThere)
	ssetest.Must(t, err)
	ssetest.Want(t, "forgotten", len(gone), 1)
	ssetest.Want(t, "whose login is forgotten", gone[0].Principal, "alice")
	ssetest.Must(t, gone[0].Revoke(t.Context()))
	ssetest.Want(t, "what the issuer was told", g.w.count("/revoke"), 1)
	ssetest.Want(t, "the token is good at the issuer", g.w.renews(gone[0].login.Refresh), false)
	g.wantLoggedIn("alice", false)
	g.wantLoggedIn("bob", true)
	ssetest.Want(t, "status of a link", g.get(waiting).Code, http.StatusNotFound)
	ssetest.Want(t, "state of the login that was being made", attempt.State(), Failed)
	ssetest.Want(t, "status of the callback", g.get(back, cookie).Code, http.StatusForbidden)
	// Somebody else gets the name: what was begun before is not theirs.
	g.mu.Lock()
	g.gone["alice"] = false
	g.mu.Unlock()
	ssetest.Want(t, "status of the callback", g.get(back, cookie).Code, http.StatusForbidden)
	ssetest.Want(t, "status of the link", g.get(waiting).Code, http.StatusNotFound)
	g.wantLoggedIn("alice", false)
}

// Tokens that come after their principal was removed are not kept.
func TestTokensOfARemovedPrincipal(t *testing.T) {
	g := newGate(t, newWorld(t, nil))
	g.w.token = func(http.ResponseWriter, *http.Request) bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.gone["alice"] = true
		return false
	}
	cookie, back := g.begin(g.ticket("alice", "client"), "alice")
	ssetest.Want(t, "status of the callback", g.get(back, cookie).Code, http.StatusSeeOther)
	ssetest.WantText(t, "last page", g.get(ownPage+"/done", cookie).Body.String(), "The login has failed.")
	ssetest.WantText(t, "log", g.log.String(), "may not be kept any more")
	g.wantLoggedIn("alice", false)
	all, err := OfPrincipals(g.state)
	ssetest.Must(t, err)
	ssetest.Want(t, "logins", len(all), 0)
}

// A principal that is removed just before its login is saved does not keep it: whoever removes it has seen no file.
func TestLoginSavedDuringTheRemoval(t *testing.T) {
	g := newGate(t, newWorld(t, nil))
	mayUse := g.page.MayUse
	g.page.MayUse = func(o Own) bool {
		was := mayUse(o)
		if all, _ := OfPrincipals(g.state); len(all) > 0 {
			return false
		}
		return was
	}
	cookie, back := g.begin(g.ticket("alice", "client"), "alice")
	g.get(back, cookie)
	g.wantLoggedIn("alice", false)
	all, err := OfPrincipals(g.state)
	ssetest.Must(t, err)
	ssetest.Want(t, "logins", len(all), 0)
	ssetest.Want(t, "what the issuer was told", g.w.count("/revoke"), 1)
}

// Of two logins that one principal makes at once, the one that is given up neither takes the place of the other nor ends
// it.
func TestLoginThatIsGivenUpLeavesTheOther(t *testing.T) {
	asked, goOn := make(chan struct{}), make(chan struct{})
	var isLater atomic.Bool
	g := newGate(t, newWorld(t, func(w *world) {
		w.token = func(http.ResponseWriter, *http.Request) bool {
			if !isLater.Swap(true) {
				close(asked)
				<-goOn
			}
			return false
		}
	}))
	cookie, back := g.begin(g.ticket("alice", "first"), "alice")
	first := visits.visit(ownPage, cookie.Value).attempt
	over := make(chan struct{})
	go func() {
		defer close(over)
		g.get(back, cookie)
	}()
	<-asked
	first.Close()
	second := g.logIn("alice")
	close(goOn)
	<-over
	now, err := g.of("alice", "client").source().look()
	ssetest.Must(t, err)
	ssetest.Want(t, "the second login is there", now != nil && now.At.Equal(second.At), true)
	ssetest.Want(t, "what the issuer was told", g.w.count("/revoke"), 1)
	ssetest.Want(t, "its token is good", g.w.renews(second.Refresh), true)
	// One that is undone once it is made.
	third, fourth := g.logIn("alice"), g.logIn("alice")
	first.undo(third)
	now, err = g.of("alice", "client").source().look()
	ssetest.Must(t, err)
	ssetest.Want(t, "the fourth login is there", now != nil && now.At.Equal(fourth.At), true)
	ssetest.Want(t, "the token of the third is good", g.w.renews(third.Refresh), false)
	first.undo(fourth)
	g.wantLoggedIn("alice", false)
}

// A file of a login that others can read is not used, and clients are not told where it is.
func TestFileThatOthersCanRead(t *testing.T) {
	g := newGate(t, newWorld(t, nil))
	l := g.logIn("alice")
	path := g.of("alice", "").source().store.path(l.Server, l.Issuer)
	ssetest.Must(t, os.Chmod(path, 0o644))
	resp := &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{"Www-Authenticate": {"Bearer"}}}
	_, full, _, link := g.of("alice", "client").Advise(t.Context(), resp, true)
	ssetest.WantText(t, "text", full, "your login at the server cannot be used. Log in at "+link)
	if strings.Contains(full, g.state) {
		t.Errorf("the text has the path: %s", full)
	}
	g.logIn("alice")
	g.wantLoggedIn("alice", true)
}

// A renewal that is under way when its principal is removed does not keep the tokens.
func TestRenewalOfARemovedPrincipal(t *testing.T) {
	asked, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	g := newGate(t, newWorld(t, func(w *world) {
		w.token = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.FormValue("grant_type") == "refresh_token" {
				once.Do(func() { close(asked) })
				<-goOn
			}
			return false
		}
	}))
	l := g.logIn("alice")
	own, err := OfPrincipals(g.state)
	ssetest.Must(t, err)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		_, _ = g.of("alice", "client").Authorizer(nil, slog.New(slog.DiscardHandler))(context.Background(), "Bearer "+l.Access)
	}()
	<-asked
	locked, err := flock.New(lockOf(own[0].path)).TryLock()
	ssetest.Must(t, err)
	ssetest.Want(t, "the lock is free", locked, false)
	forgotten := make(chan error)
	go func() {
		_, err := ForgetPrincipals(g.state, testKey, func(OfPrincipal) bool { return false })
		forgotten <- err
	}()
	close(goOn)
	ssetest.Must(t, <-forgotten)
	<-renewed
	g.wantLoggedIn("alice", false)
	all, err := OfPrincipals(g.state)
	ssetest.Must(t, err)
	ssetest.Want(t, "logins", len(all), 0)
}

// Nothing is forgotten before its lock is free: whoever has that would write the file anew.
func TestForgettingWaitsForTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := filepath.Join(ssetest.PrivateDir(t), "state")
		store := storeOf(state, "https://mcp.example.com/mcp", Own{Page: ownPage, Principal: "alice"}, Seal{Key: testKey})
		l := &Login{Server: "https://mcp.example.com/mcp", Issuer: "https://issuer.example.com", Client: Client{ID: "c"}}
		ssetest.Must(t, store.Save(l))
		all, err := OfPrincipals(state)
		ssetest.Must(t, err)
		unlock, err := store.lock(t.Context(), all[0].path)
		ssetest.Must(t, err)
		forgotten := make(chan error, 1)
		go func() { forgotten <- all[0].Forget(t.Context()) }()
		time.Sleep(refreshTimeout - time.Second)
		_, err = os.Stat(all[0].path)
		ssetest.Must(t, err)
		unlock()
		ssetest.Must(t, <-forgotten)
		if _, err = os.Stat(all[0].path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the file is left: %v", err)
		}
	})
}

// A link is good for five minutes, and a client that asks again has at least half of that. A principal has some at a
// time, and the oldest gives way to a new one, but not to one of another principal.
func TestTicketsEnd(t *testing.T) {
	d := &desk{tickets: make(map[string]*ticket)}
	c := Credentials{Server: "https://mcp.example.com/mcp", Own: Own{Page: ownPage, Principal: "alice"}}
	start := time.Unix(1_000_000, 0)
	first, isNew := d.ticketFor(c, nil, start)
	ssetest.Want(t, "new", isNew, true)
	ssetest.Want(t, "good at first", d.ticket(ownPage, first.word, start) == first, true)
	ssetest.Want(t, "good at another page", d.ticket(ownPage+"2", first.word, start) == nil, true)
	ssetest.Want(t, "good after five minutes", d.ticket(ownPage, first.word, start.Add(Patience)) == nil, true)
	again, isNew := d.ticketFor(c, nil, start.Add(leastTime))
	ssetest.Want(t, "the same while it is good for long", again == first && !isNew, true)
	again, _ = d.ticketFor(c, []string{"write"}, start)
	ssetest.Want(t, "the same for other scopes", again == first, false)
	again, _ = d.ticketFor(c, nil, start.Add(leastTime+time.Second))
	ssetest.Want(t, "another when it ends soon", again == first, false)
	bob := c
	bob.Own.Principal = "bob"
	ofBob, _ := d.ticketFor(bob, nil, start)
	for i := range 2 * maxTickets {
		other := c
		other.Asker.Connection = string(rune('a' + i))
		_, _ = d.ticketFor(other, nil, start.Add(leastTime+time.Minute))
	}
	ssetest.Want(t, "tickets", len(d.tickets), maxTickets+1)
	ssetest.Want(t, "that of bob is there", d.ticket(ownPage, ofBob.word, start) == ofBob, true)
	ssetest.Want(t, "the first is there", d.tickets[first.word] == nil, true)
}

// A principal has some logins under way at a time: the oldest is given up for a new one.
func TestLoginsUnderWayAreBounded(t *testing.T) {
	g := newGate(t, newWorld(t, nil))
	ofBob, _ := g.begin(g.ticket("bob", "client"), "bob")
	first, _ := g.begin(g.ticket("alice", "client"), "alice")
	for range maxVisits {
		g.begin(g.ticket("alice", "client"), "alice")
	}
	ssetest.Want(t, "status of the first", g.get(ownPage+"/done", first).Code, http.StatusNotFound)
	ssetest.WantText(t, "that of bob", g.get(ownPage+"/done", ofBob).Body.String(), "The login goes on.")
}

// A login that lacks a scope is made again, with that scope and those that it has.
func TestLinkForAScope(t *testing.T) {
	g := newGate(t, newWorld(t, func(w *world) { w.scopes = []string{"read"} }))
	g.logIn("alice")
	challenge := http.Header{"Www-Authenticate": {`Bearer error="insufficient_scope", scope="write"`}}
	resp := &http.Response{StatusCode: http.StatusForbidden, Header: challenge}
	_, full, public, link := g.of("alice", "client").Advise(t.Context(), resp, true)
	ssetest.WantText(t, "text", full, `the login lacks the scope "write". Log in at `+ownPage+"?ticket=")
	ssetest.Want(t, "text for all", public, full)
	g.begin(link, "alice")
	ssetest.Want(t, "scopes", g.w.lastScopes, "read write offline_access")
	if _, _, _, link := g.of("", "").Advise(t.Context(), resp, true); link != "" {
		t.Errorf("nobody gets the link %s", link)
	}
	_, full, _, link = g.of("alice", "client").Advise(t.Context(), resp, false)
	ssetest.Want(t, "link for no client", link+full[strings.Index(full, ":"):], ": each principal of the gateway logs in there by a link that its client gets in the answer to a call")
}

// The page of a server whose issuer takes no client says so to the operator, and shows nothing of it.
func TestIssuerWithoutRegistration(t *testing.T) {
	g := newGate(t, newWorld(t, func(w *world) { w.noRegistration = true }))
	link := g.ticket("alice", "client")
	g.get(link)
	rec := g.post(link, ownOrigin, "token of alice")
	ssetest.Want(t, "status", rec.Code, http.StatusBadGateway)
	ssetest.Want(t, "cookies", len(rec.Result().Cookies()), 0)
	ssetest.WantText(t, "log", g.log.String(), "registers no clients: register one there by hand, with the redirect "+ownPage+"/callback, and name it with login-client")
}

// refusal is a response of a server that refuses a request with this header.
func refusal(method, header string, status int, challenge string) *http.Response {
	r := httptest.NewRequest(method, "/mcp", nil)
	r.Header.Set("Authorization", header)
	return &http.Response{StatusCode: status, Request: r, Header: http.Header{"Www-Authenticate": {challenge}}}
}

// A login whose renewed token the server refuses is none: its principal gets a link, and no other one is shut out. Once
// the server takes a request, it is one again.
func TestLoginThatTheServerRefusesAnew(t *testing.T) {
	g := newGate(t, newWorld(t, nil))
	l := g.logIn("alice")
	g.logIn("bob")
	alice := g.of("alice", "client")
	advise := func(header string) {
		t.Helper()
		if again, full, _, _ := alice.Advise(t.Context(), refusal(http.MethodPost, header, 401, "Bearer"), false); again || full == "" {
			t.Errorf("advice: %v, %q", again, full)
		}
	}
	advise("Bearer " + l.Access) // the issuer could not be asked, for all that is known
	g.wantLoggedIn("alice", true)
	before := g.w.count("/token")
	renew := func() string {
		t.Helper()
		now := alice.source().held()
		fresh, err := alice.Authorizer(nil, slog.New(slog.DiscardHandler))(t.Context(), "Bearer "+now.Access)
		if errors.Is(err, errRefusedAnew) {
			return "Bearer " + now.Access
		}
		ssetest.Must(t, err)
		return fresh
	}
	advise(renew())
	g.wantLoggedIn("alice", false)
	g.wantLoggedIn("bob", true)
	if text, link, done := alice.Ask(t.Context()); link == "" || done {
		t.Errorf("alice gets no link: %s", text)
	}
	advise(renew()) // a session after it
	g.wantLoggedIn("alice", false)
	alice.Accepted()
	g.wantLoggedIn("alice", true)
	advise(renew())
	g.wantLoggedIn("alice", false)
	ssetest.Want(t, "refreshes", g.w.count("/token")-before, 1) // however often sessions come
	g.logIn("alice")
	g.wantLoggedIn("alice", true)
}

// A login that opens no session for want of a scope is none, and the link asks for that scope too.
func TestLoginThatOpensNoSession(t *testing.T) {
	g := newGate(t, newWorld(t, func(w *world) { w.scopes = []string{"read"} }))
	l := g.logIn("alice")
	alice, header := g.of("alice", "client"), "Bearer "+l.Access
	const challenge = `Bearer error="insufficient_scope", scope="write"`
	for name, c := range map[string]struct {
		resp *http.Response
		asks bool
	}{
		"a call":                      {refusal(http.MethodPost, header, 403, challenge), true},
		"a stream":                    {refusal(http.MethodGet, header, 403, challenge), false},
		"a request without the login": {refusal(http.MethodPost, "", 403, challenge), false},
	} {
		ctx := t.Context()
		if !c.asks {
			ctx = asker.Opening(ctx)
		}
		_, _, _, _ = alice.Advise(ctx, c.resp, c.asks)
		ssetest.Want(t, "logged in after "+name, alice.LoggedIn(), true)
	}
	_, _, _, _ = alice.Advise(asker.Opening(t.Context()), refusal(http.MethodPost, header, 403, challenge), false)
	g.wantLoggedIn("alice", false)
	_, link, _ := alice.Ask(t.Context())
	cookie, back := g.begin(link, "alice")
	ssetest.Want(t, "scopes", g.w.lastScopes, "read write offline_access")
	g.get(back, cookie)
	g.wantLoggedIn("alice", true)
}

// A page that cannot be shown has the server asked once in a while, however often it is opened.
func TestPageThatFailsAsksSeldom(t *testing.T) {
	g := newGate(t, newWorld(t, func(w *world) { w.noMetadata = true }))
	link := g.ticket("alice", "client")
	const metadata = "/.well-known/oauth-authorization-server"
	ssetest.Want(t, "status", g.get(link).Code, http.StatusBadGateway)
	asked := g.w.count(metadata)
	ssetest.Want(t, "the issuer was asked", asked > 0, true)
	for range 5 {
		ssetest.Want(t, "status again", g.get(link).Code, http.StatusBadGateway)
	}
	ssetest.Want(t, "questions", g.w.count(metadata), asked)
	_, word, _ := strings.Cut(link, "?ticket=")
	ticket := visits.ticket(ownPage, word, time.Now())
	ticket.failed = ticket.failed.Add(-prepareAgain)
	g.get(link)
	ssetest.Want(t, "questions after a while", g.w.count(metadata), 2*asked)
}
