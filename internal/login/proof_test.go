package login

import (
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// carol is a principal of the issuer of the gateway's tokens.
const carol = OfIssuer + "carol"

// newGateOfIssuer returns a gateway whose tokens are of an issuer. The person there is the one that the pointer names.
func newGateOfIssuer(t *testing.T, w, tokens *world) (g *gate, person *string) {
	t.Helper()
	g, person = newGate(t, w), new("carol")
	g.page.TokenIssuer = &TokenIssuer{URL: tokens.issuer.URL, ClientID: "by-hand", Resource: "https://gw.example.com/notes/mcp",
		Scopes: []string{"mcp"}}
	g.page.Credentials.Own.Authority = "sub of " + tokens.issuer.URL
	ofFile := g.page.Principal
	g.page.MayUse = func(o Own) bool {
		return g.knows(o.Principal) || o == g.of(o.Principal, "").Own && strings.HasPrefix(o.Principal, OfIssuer)
	}
	g.page.Principal = func(token string) (string, error) {
		tokens.mu.Lock()
		defer tokens.mu.Unlock()
		if tokens.access[token] {
			return OfIssuer + *person, nil
		}
		return ofFile(token)
	}
	return g, person
}

// follow has the browser of a person ask an issuer, and returns where that sends it.
func follow(t *testing.T, address string) string {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(html.UnescapeString(address))
	ssetest.Must(t, err)
	resp.Body.Close()
	return resp.Header.Get("Location")
}

// show agrees to the page of a link, and goes to the issuer of the gateway's tokens. It returns the cookie, and the
// address to which that sends the browser back.
func (g *gate) show(link string) (cookie *http.Cookie, back string) {
	g.t.Helper()
	ssetest.Want(g.t, "status of the page", g.get(link).Code, http.StatusOK)
	rec := g.post(link, ownOrigin, "")
	ssetest.Want(g.t, "status of the consent", rec.Code, http.StatusOK)
	found, cookies := refreshTo.FindStringSubmatch(rec.Body.String()), rec.Result().Cookies()
	if found == nil || len(cookies) != 1 {
		g.t.Fatalf("got the cookies %v and the page %s", cookies, rec.Body.String())
	}
	return cookies[0], follow(g.t, found[1])
}

// lastCookie returns the cookie that a browser has after a response.
func lastCookie(rec *httptest.ResponseRecorder) *http.Cookie {
	all := rec.Result().Cookies()
	return all[len(all)-1]
}

// A principal of the gateway's issuer shows there who it is, and then logs in at the server.
func TestPrincipalOfTheIssuer(t *testing.T) {
	w, tokens := newWorld(t, nil), newWorld(t, func(w *world) { w.noPKCE, w.promisesIss = true, true })
	g, _ := newGateOfIssuer(t, w, tokens)
	link := g.ticket(carol, "editor/1")
	page := g.get(link).Body.String()
	ssetest.WantText(t, "page", page, "editor/1 (connection c-editor/1)", "First you log in at <strong>"+
		strings.TrimPrefix(tokens.issuer.URL, "http://")+"</strong>, as you do for this gateway.")
	if strings.Contains(page, "password") {
		t.Errorf("the page asks for a token: %s", page)
	}
	cookie, back := g.show(link)
	ssetest.WantText(t, "the browser comes back to", back, ownPage+"/principal?")
	ssetest.Want(t, "scopes", tokens.lastScopes, "mcp")
	ssetest.Want(t, "registrations before anybody has shown who that is", w.count("/register"), 0)
	rec := g.get(back, cookie)
	ssetest.Want(t, "status", rec.Code, http.StatusSeeOther)
	ssetest.WantText(t, "the cookie that is used up", rec.Result().Cookies()[0], proofCookie, "=; Path=/; Max-Age=0")
	ssetest.Want(t, "resources of the tokens", strings.Join(tokens.resources, " "), "https://gw.example.com/notes/mcp")
	cookie = lastCookie(rec)
	done := g.get(follow(t, rec.Header().Get("Location")), cookie)
	ssetest.Want(t, "status of the callback", done.Code, http.StatusSeeOther)
	last := g.get(ownPage+"/done", cookie).Body.String()
	ssetest.WantText(t, "last page", last, "You are logged in.")
	g.wantLoggedIn(carol, true)
	g.wantLoggedIn(OfIssuer+"dave", false)
	g.wantLoggedIn("alice", false)
	for _, one := range []*world{w, tokens} {
		one.wantNoSecret(t, "the log", g.log.String())
		one.wantNoSecret(t, "the pages", page+last+rec.Header().Get("Location"))
	}
	other := g.page.Credentials
	other.Own.Authority = "sub of https://another.example"
	ssetest.Want(t, "carol of another issuer is logged in", other.For(carol, Asker{}).LoggedIn(), false)
	ssetest.Want(t, "status of the link", g.get(link).Code, http.StatusNotFound)
	ssetest.Want(t, "status of a second time", g.get(back, cookie).Code, http.StatusForbidden)
}

// A link is of no use to somebody who is another principal at the issuer, and ends after some of them.
func TestTicketOfAnotherPrincipalOfTheIssuer(t *testing.T) {
	w, tokens := newWorld(t, nil), newWorld(t, nil)
	g, person := newGateOfIssuer(t, w, tokens)
	link := g.ticket(carol, "client")
	*person = "mallory"
	for range maxWrong {
		cookie, back := g.show(link)
		rec := g.get(back, cookie)
		ssetest.Want(t, "status", rec.Code, http.StatusForbidden)
		ssetest.WantText(t, "page", rec.Body.String(), "as somebody else than the user of the client that got this link")
		ssetest.Want(t, "cookies", len(rec.Result().Cookies()), 0)
	}
	ssetest.Want(t, "status of the link", g.get(link).Code, http.StatusNotFound)
	ssetest.Want(t, "registrations", w.count("/register"), 0)
	g.wantLoggedIn(carol, false)
}

// The browser that comes back from the gateway's issuer is the one that has agreed, with the state of then.
func TestProofOfAnotherBrowser(t *testing.T) {
	w, tokens := newWorld(t, nil), newWorld(t, nil)
	g, _ := newGateOfIssuer(t, w, tokens)
	cookie, back := g.show(g.ticket(carol, "client"))
	bobs, backOfBob := g.begin(g.ticket("bob", "client"), "bob")
	for name, c := range map[string]struct {
		back    string
		cookies []*http.Cookie
		want    int
	}{
		"without a cookie":                  {back, nil, http.StatusForbidden},
		"with the cookie of a login":        {back, []*http.Cookie{bobs}, http.StatusForbidden},
		"with made-up state":                {ownPage + "/principal?code=x&state=y", []*http.Cookie{cookie}, http.StatusBadRequest},
		"with no state, and an error":       {ownPage + "/principal?error=x", []*http.Cookie{cookie}, http.StatusBadRequest},
		"the answer to a login":             {strings.Replace(backOfBob, "/callback", "/principal", 1), []*http.Cookie{cookie}, http.StatusBadRequest},
		"at the address of logins":          {strings.Replace(back, "/principal", "/callback", 1), []*http.Cookie{cookie}, http.StatusForbidden},
		"with two cookies":                  {back, []*http.Cookie{cookie, cookie}, http.StatusForbidden},
		"the page of a login that has none": {ownPage + "/done", []*http.Cookie{cookie}, http.StatusNotFound},
	} {
		ssetest.Want(t, name, g.get(c.back, c.cookies...).Code, c.want)
	}
	ssetest.Want(t, "requests for tokens", tokens.count("/token"), 0)
	ssetest.Want(t, "status", g.get(back, cookie).Code, http.StatusSeeOther)
	ssetest.Want(t, "status of a second time", g.get(back, cookie).Code, http.StatusForbidden)
	ssetest.Want(t, "requests for tokens", tokens.count("/token"), 1)
}

// The page of another origin cannot send the form of a principal of the issuer, and an answer that is refused begins
// nothing.
func TestProofIsRefused(t *testing.T) {
	w, tokens := newWorld(t, nil), newWorld(t, func(w *world) { w.refused = true })
	g, _ := newGateOfIssuer(t, w, tokens)
	link := g.ticket(carol, "client")
	g.get(link)
	for _, origin := range []string{"", "null", "https://evil.example"} {
		ssetest.Want(t, "status for the origin "+origin, g.post(link, origin, "").Code, http.StatusForbidden)
	}
	ssetest.Want(t, "what the issuer was asked", len(tokens.asked), 0)
	cookie, back := g.show(link)
	rec := g.get(back, cookie)
	ssetest.Want(t, "status", rec.Code, http.StatusBadGateway)
	ssetest.WantText(t, "log", g.log.String(), "invalid_target", "it was asked for the scopes", "mcp", "name those that clients of the gateway need with scopes: in its file")
	ssetest.Want(t, "registrations", w.count("/register"), 0)
	ssetest.Want(t, "status of the link", g.get(link).Code, http.StatusOK) // another time it may go well
}

// A principal that may not use the server any more, or that another issuer names since a reload, gets no login that was
// on its way.
func TestProofOfAPrincipalThatIsNoMore(t *testing.T) {
	for name, reload := range map[string]func(*Page){
		"it may not use the server": func(p *Page) { p.MayUse = func(Own) bool { return false } },
		"another issuer":            func(p *Page) { p.Credentials.Own.Authority = "sub of https://another.example" },
	} {
		w := newWorld(t, nil)
		g, _ := newGateOfIssuer(t, w, newWorld(t, nil))
		cookie, back := g.show(g.ticket(carol, "client"))
		reload(g.page)
		ssetest.Want(t, "status: "+name, g.get(back, cookie).Code, http.StatusNotFound)
		ssetest.Want(t, "registrations: "+name, w.count("/register"), 0)
	}
}

// A principal that is removed gets no login that was on its way.
func TestProofOfAPrincipalThatIsRemoved(t *testing.T) {
	g, _ := newGateOfIssuer(t, newWorld(t, nil), newWorld(t, nil))
	waiting := g.ticket(carol, "client")
	cookie, back := g.show(waiting)
	_, err := ForgetPrincipals(g.state, testKey, func(o OfPrincipal) bool { return o.Principal != carol })
	ssetest.Must(t, err)
	ssetest.Want(t, "status after the end of the principal", g.get(back, cookie).Code, http.StatusForbidden)
	ssetest.Want(t, "status of the link", g.get(waiting).Code, http.StatusNotFound)
}

// People on the way to the issuer are bounded for each ticket, which ends then. It lives on for the first of them, who may
// take five minutes there.
func TestProofsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{tickets: map[string]*ticket{}, proofs: map[[32]byte]*proof{}}
		of := func(principal string) *ticket {
			got, _ := d.ticketFor(Credentials{Server: "https://mcp.example.com/mcp", Own: Own{Page: ownPage, Principal: principal}}, nil, time.Now())
			return got
		}
		add := func(t *ticket) (word string, isThere bool) { return d.addProof(t, nil, time.Now()) }
		isThere := func(page, word string) bool { p, _ := d.proof(page, word, time.Now()); return p != nil }
		carols, daves := of(carol), of(OfIssuer+"dave")
		time.Sleep(Patience - time.Second)
		dave, _ := add(daves)
		first, _ := add(carols)
		for range maxProofs - 1 {
			_, ok := add(carols)
			ssetest.Want(t, "another one goes", ok, true)
		}
		ssetest.Want(t, "it is one of another page", isThere(ownPage+"2", dave), false)
		time.Sleep(Patience - time.Second)
		of(OfIssuer + "erin") // sweeps
		ssetest.Want(t, "the first one of carol waits", isThere(ownPage, first), true)
		ssetest.Want(t, "the ticket of carol", d.ticket(ownPage, carols.word, time.Now()), carols)
		_, ok := add(carols)
		ssetest.Want(t, "a ninth one goes", ok, false)
		ssetest.Want(t, "the ticket of carol is there", d.ticket(ownPage, carols.word, time.Now()) != nil, false)
		ssetest.Want(t, "that of dave waits", isThere(ownPage, dave), true)
		time.Sleep(time.Second)
		ssetest.Want(t, "that of dave waits after five minutes", isThere(ownPage, dave), false)
		ssetest.Want(t, "the ticket of dave is there after that", d.ticket(ownPage, daves.word, time.Now()) != nil, false)
		add(of(OfIssuer + "erin"))
		ssetest.Want(t, "what is kept", len(d.proofs), 1)
	})
}

// A principal that is removed while its login is being registered does not get it, nor does somebody else who has the
// name then.
func TestPrincipalRemovedWhileItsLoginBegins(t *testing.T) {
	w := newWorld(t, nil)
	g := newGate(t, w)
	link := g.ticket("alice", "client")
	g.get(link)
	registering, goOn := make(chan struct{}), make(chan struct{})
	w.register = func() { close(registering); <-goOn }
	done := make(chan *httptest.ResponseRecorder)
	go func() { done <- g.post(link, ownOrigin, "token of alice") }()
	<-registering
	_, err := ForgetPrincipals(g.state, testKey, func(o OfPrincipal) bool { return o.Principal != "alice" })
	ssetest.Must(t, err)
	close(goOn)
	rec := <-done
	found := refreshTo.FindStringSubmatch(rec.Body.String())
	if found == nil {
		t.Fatalf("the page leads nowhere: %d %s", rec.Code, rec.Body.String())
	}
	ssetest.Want(t, "status of the callback", g.get(follow(t, found[1]), lastCookie(rec)).Code, http.StatusForbidden)
	g.wantLoggedIn("alice", false)
}

// The page names the principal whose login it makes.
func TestPageNamesThePrincipal(t *testing.T) {
	g, _ := newGateOfIssuer(t, newWorld(t, nil), newWorld(t, nil))
	for _, principal := range []string{"alice", carol} {
		ssetest.WantText(t, "page", g.get(g.ticket(principal, "client")).Body.String(),
			"of <strong>"+principal+"</strong>\nneeds your login", "Go on only if you are <strong>"+principal+"</strong>")
	}
	_, full, _, _ := g.of(carol, "client").Advise(t.Context(), refusal(http.MethodPost, "", http.StatusUnauthorized, "Bearer"), true)
	if strings.Contains(full, "token") {
		t.Errorf("the text of the link speaks of a token: %s", full)
	}
}

// Two tabs, of which one is on the way to the gateway's issuer and one to that of the server, do not disturb each other.
func TestTwoTabs(t *testing.T) {
	g, _ := newGateOfIssuer(t, newWorld(t, nil), newWorld(t, nil))
	cookie, back := g.show(g.ticket(carol, "one"))
	rec := g.get(back, cookie)
	login := lastCookie(rec)
	other, backOfOther := g.show(g.ticket(carol, "two"))
	jar := []*http.Cookie{login, other}
	ssetest.Want(t, "status of the first one's callback", g.get(follow(t, rec.Header().Get("Location")), jar...).Code, http.StatusSeeOther)
	ssetest.Want(t, "status of the second one's proof", g.get(backOfOther, jar...).Code, http.StatusSeeOther)
}

// A client that the operator has registered at the issuer of the server is used, and nothing else is tried. Its secret
// may be replaced, and without it another client is registered.
func TestRegisteredClientOfAPage(t *testing.T) {
	w := newWorld(t, func(w *world) { w.lifetime = 1 })
	g := newGate(t, w)
	w.clients["ours"] = "s3cret"
	own := &g.page.Credentials
	own.Client, own.ClientIssuer = Client{ID: "ours", Secret: "s3cret", ByHand: true}, w.issuer.URL
	l := g.logIn("alice")
	ssetest.Want(t, "client", l.Client.ID, "ours")
	ssetest.Want(t, "registrations", w.count("/register"), 0)
	w.clients["ours"], own.Client.Secret = "another", "another"
	header, err := g.of("alice", "client").Authorizer(nil, g.page.Log)(t.Context(), "Bearer "+l.Access)
	ssetest.Must(t, err)
	ssetest.Want(t, "there is another token", header != "", true)
	own.ClientIssuer = "https://another.example"
	ssetest.Want(t, "status of the page where the server names another issuer", g.get(g.ticket("bob", "client")).Code,
		http.StatusBadGateway)
	ssetest.WantText(t, "log", g.log.String(), "the server takes tokens of ")
	own.Client, own.ClientIssuer = Client{}, ""
	delete(w.clients, "ours")
	l = g.logIn("alice")
	ssetest.Want(t, "how the client came to be", l.Client.How, "a client registered for this login")
}

// A renewal is a use.
func TestRenewalIsAUse(t *testing.T) {
	w := newWorld(t, func(w *world) { w.lifetime = 1 })
	g := newGate(t, w)
	l := g.logIn("alice")
	lock := lockOf(storeOf(g.state, w.url(), Own{Page: ownPage, Principal: "alice"}, Seal{Key: testKey}).path(w.url(), w.issuer.URL))
	long := time.Now().Add(-31 * 24 * time.Hour)
	ssetest.Must(t, os.Chtimes(lock, long, long))
	_, err := g.of("alice", "client").source().authorize(t.Context(), "Bearer "+l.Access, g.page.Log)
	ssetest.Must(t, err)
	info, err := os.Stat(lock)
	ssetest.Must(t, err)
	ssetest.Want(t, "it was used lately", info.ModTime().After(long.Add(time.Hour)), true)
}
