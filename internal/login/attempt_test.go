package login

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

func TestLogin(t *testing.T) {
	for name, c := range map[string]struct {
		set     func(*world)
		options func(*world, *Options)
		how     string // of the client
		scopes  string // that were asked for; none: the parameter was left out
		fails   string // with this text
	}{
		"registration":                          {how: "a client registered", scopes: "none"},
		"scopes of metadata":                    {set: func(w *world) { w.scopes = []string{"read", "write"} }, scopes: "read write offline_access"},
		"scopes of challenge":                   {set: func(w *world) { w.scopes, w.challenge = []string{"read"}, `scope="call list"` }, scopes: "call list offline_access"},
		"scopes of the person":                  {set: func(w *world) { w.scopes = []string{"read"} }, options: func(_ *world, o *Options) { o.Scopes = []string{"mine"} }, scopes: "mine offline_access"},
		"secret":                                {set: func(w *world) { w.confidential = true }, how: "a client registered"},
		"OpenID Connect":                        {set: func(w *world) { w.oidcOnly = true }, how: "a client registered"},
		"an issuer with a path":                 {set: func(w *world) { w.path = "/tenant/one" }, how: "a client registered"},
		"an issuer with a path, OpenID Connect": {set: func(w *world) { w.path, w.oidcOnly, w.appends = "/tenant", true, true }, how: "a client registered"},
		"an issuer with a path, no metadata": {set: func(w *world) { w.path, w.noMetadata = "/tenant", true },
			fails: "/.well-known/oauth-authorization-server/tenant, "},
		"its resource begins the URL": {set: func(w *world) { w.resource = w.server.URL }},
		"2025-03-26, metadata":        {set: func(w *world) { w.noResource = true }, how: "a client registered"},
		"2025-03-26, none":            {set: func(w *world) { w.noResource, w.noMetadata = true, true }, how: "a client registered"},
		"initialize is open":          {set: func(w *world) { w.isOpen = true }, how: "a client registered"},
		"iss":                         {set: func(w *world) { w.promisesIss = true }},
		"no expires_in":               {set: func(w *world) { w.noExpiry = true }},
		"a key": {set: func(w *world) {
			w.noResource, w.noMetadata, w.noRegistration = true, true, true
		}, fails: "the server names no issuer and has no registration: it probably wants a key: serve it with " +
			"--header 'Authorization: Bearer KEY'. If it has an issuer: --issuer URL --client-id ID"},
		"no registration": {set: func(w *world) { w.noRegistration = true }, fails: "registers no clients: register one there by hand, with the redirect http://127.0.0.1/callback, and name it with --client-id ID --issuer http://127.0.0.1:"},
		"registration refused, 400": {set: func(w *world) {
			w.registration = answers(400, "application/json", `{"error":"invalid_redirect_uri","error_description":"no x of https://a"}`)
		}, fails: `the issuer registers no client: it says "invalid_redirect_uri": register one there by hand`},
		"registration refused, 400 without an error": {set: func(w *world) { w.registration = answers(400, "application/json", `{}`) },
			fails: `the issuer registers no client: it says "": register one there by hand`},
		"registration refused, 403": {set: func(w *world) { w.registration = answers(403, "text/html", "<p>no of https://a") },
			fails: "the issuer registers no client: registration failed with status 403 Forbidden: register one there by hand"},
		"registration, an empty client_id": {set: func(w *world) {
			w.registration = answers(201, "application/json", `{"client_id":"","client_secret":"s"}`)
		},
			fails: "the issuer registers no client: registration response is missing required 'client_id' field: register one there by hand"},
		"registration, HTML": {set: func(w *world) { w.registration = answers(201, "text/html", "<p>client_id") },
			fails: "the issuer registers no client: failed to decode successful registration response: register one there by hand"},
		"registration, HTML and 400": {set: func(w *world) { w.registration = answers(400, "text/html", "<p>client_id") },
			fails: "the issuer registers no client: failed to decode registration error response: register one there by hand"},
		"resource refused":               {set: func(w *world) { w.refused = true }, fails: `the issuer refused the login: "invalid_target"; it was asked for no scopes: name those that it wants with --scope`},
		"resource refused, and left out": {set: func(w *world) { w.refused = true }, options: func(_ *world, o *Options) { o.NoResource = true }},
		"issuer of another name":         {set: func(w *world) { w.named = "https://evil.example" }, fails: "they are of another issuer"},
		"another issuer than was named":  {options: func(_ *world, o *Options) { o.ClientID, o.Issuer = "by-hand", "https://good.example" }, fails: "not of https://good.example"},
		"an issuer that is down": {set: func(w *world) { w.issuer.Close() },
			fails: " does not answer: nothing listens there (connection refused): try again later"},
		"no PKCE":                       {set: func(w *world) { w.noPKCE = true }, fails: "PKCE with S256"},
		"metadata of another resource":  {set: func(w *world) { w.resource = "https://other.example/mcp" }, fails: "they are of another resource"},
		"metadata of another path":      {set: func(w *world) { w.resource = w.server.URL + "/mcp2" }, fails: "they are of another resource"},
		"no metadata of a named issuer": {set: func(w *world) { w.noMetadata = true }, fails: "has no metadata at"},
		"iss of another issuer":         {set: func(w *world) { w.iss = "https://evil.example" }, fails: "the answer is of another issuer"},
		"no login":                      {set: func(w *world) { w.isOpen, w.noResource, w.noMetadata = true, true, true }, fails: ErrNoLogin.Error()},
		"no MCP server": {set: func(w *world) { w.isNoMCP, w.noResource, w.noMetadata = http.NotFound, true, true },
			fails: "/mcp (404 Not Found): check the path, usually /mcp or /sse"},
		"no MCP server, and metadata of another path": {set: func(w *world) { w.isNoMCP, w.resource = http.NotFound, w.server.URL+"/other" },
			fails: "no MCP server at http://127.0.0.1:"},
		"a page for browsers": {set: func(w *world) {
			w.isNoMCP, w.noResource, w.noMetadata = says(200, "text/html; charset=utf-8", "<p>"), true, true
		}, fails: "/mcp (a page for browsers): check the path"},
		"a server that does not work": {set: func(w *world) { w.isNoMCP, w.noResource, w.noMetadata = says(503, "text/html", ""), true, true },
			fails: "/mcp does not work now (503 Service Unavailable): try again later"},
		"a redirect": {set: func(w *world) { w.isNoMCP, w.noResource, w.noMetadata = says(302, "text/plain", ""), true, true },
			fails: "/mcp takes no request without a login (302 Found), and names no issuer: check the address"},
		"access without a login": {set: func(w *world) {
			w.isNoMCP, w.noResource, w.noMetadata = says(403, "application/json", "{}"), true, true
		}, fails: "refuses access (403 Forbidden), and names no issuer: if it wants a key, serve it with --header 'Authorization: Bearer KEY'"},
		"two answers in one at the token endpoint": {set: func(w *world) {
			w.token = answers(200, "application/json", `{"access_token":"a","token_type":"Bearer"}{"access_token":"b","token_type":"Bearer"}`)
		}, fails: "gave no token that can be read"},
		"HTML at the token endpoint": {set: func(w *world) { w.token = answers(200, "text/html", "<p>access_token") }, fails: "gave no token that can be read"},
		"an error at the token endpoint": {set: func(w *world) {
			w.token = answers(500, "application/json", `{"error":"server_error","error_description":"x"}`)
		}, fails: `answered 500 "server_error"`},
		"resource refused at the token endpoint": {set: func(w *world) {
			w.token = answers(400, "application/json", `{"error":"invalid_target","error_description":"x"}`)
		}, fails: `answered 400 "invalid_target"`},
		"a token that no header can have": {set: func(w *world) { w.token = answers(200, "application/json", `{"access_token":"a\r\nX: y"}`) }, fails: "no header can have"},
		"a token of another type":         {set: func(w *world) { w.token = answers(200, "application/json", `{"access_token":"a","token_type":"DPoP"}`) }, fails: `of the type "DPoP"`},
		"a redirect of the token endpoint": {set: func(w *world) {
			w.token = func(rw http.ResponseWriter, r *http.Request) bool {
				http.Redirect(rw, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
				return true
			}
		}, fails: "answered 307"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.set)
			o := w.options(t)
			if c.options != nil {
				c.options(w, &o)
			}
			l, page, err := w.logIn(t, o)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("got %v, want %q", err, c.fails)
				}
				w.wantNoSecret(t, "the error", err.Error())
				if all, err := o.Store.All(); len(all) > 0 || err != nil {
					t.Errorf("a login is kept: %v, %v", all, err)
				}
				if strings.Contains(c.fails, "token") && !strings.Contains(page, "The login has failed") {
					t.Errorf("the page says %s", page)
				}
				return
			}
			ssetest.Must(t, err)
			ssetest.WantText(t, "client", l.Client.How, c.how)
			if c.scopes != "" {
				ssetest.Want(t, "scopes", w.lastScopes, c.scopes)
			}
			want := or(w.resource, w.url())
			if o.NoResource {
				want = ""
			}
			ssetest.Want(t, "resources", w.resources, []string{want})
			ssetest.WantText(t, "page", page, "You are logged in at")
			kept, _, err := o.Store.Newest(w.url())
			ssetest.Must(t, err)
			ssetest.Want(t, "kept token", kept.Access, l.Access)
		})
	}
}

// answers returns a token endpoint with one answer.
func answers(status int, kind, body string) func(http.ResponseWriter, *http.Request) bool {
	return func(rw http.ResponseWriter, r *http.Request) bool {
		says(status, kind, body)(rw, r)
		return true
	}
}

// says returns a handler with one answer.
func says(status int, kind, body string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", kind)
		rw.WriteHeader(status)
		_, _ = io.WriteString(rw, body)
	}
}

// What comes back to the address of the redirect is of this login, or it is not taken.
func TestRedirects(t *testing.T) {
	w := newWorld(t, func(w *world) { w.promisesIss = true })
	a, err := Begin(t.Context(), w.options(t))
	ssetest.Must(t, err)
	defer a.Close()
	get := func(query string) int {
		resp, err := http.Get(a.Redirect() + "?" + query)
		ssetest.Must(t, err)
		resp.Body.Close()
		return resp.StatusCode
	}
	for _, query := range []string{"", "code=1", "code=1&state=x", "error=access_denied", "error=access_denied&state="} {
		ssetest.Want(t, "status of ?"+query, get(query), http.StatusBadRequest)
		ssetest.Want(t, "state", a.State(), Waiting)
	}
	for _, method := range []string{http.MethodPost, http.MethodHead} {
		request, err := http.NewRequestWithContext(t.Context(), method, a.Redirect(), nil)
		ssetest.Must(t, err)
		resp, err := http.DefaultClient.Do(request)
		ssetest.Must(t, err)
		resp.Body.Close()
		ssetest.Want(t, method, resp.StatusCode, http.StatusBadRequest)
	}
	// A login without a state takes nothing.
	_, err = (&Attempt{}).read(url.Values{"code": {"1"}})
	ssetest.Want(t, "error", err, errState)
	// A page elsewhere whose name leads to 127.0.0.1.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.Redirect()+"?code=1&state="+a.state, nil)
	ssetest.Must(t, err)
	request.Host = "evil.example"
	resp, err := http.DefaultClient.Do(request)
	ssetest.Must(t, err)
	resp.Body.Close()
	ssetest.Want(t, "another host", resp.StatusCode, http.StatusBadRequest)
	// Without the iss that the issuer promises, it is the answer of another issuer.
	ssetest.Want(t, "without iss", get("code=1&state="+a.state), http.StatusOK)
	_, err = a.Wait(t.Context())
	ssetest.WantText(t, "error", err, "(iss)")
	ssetest.Want(t, "requests for tokens", w.count("/token"), 0)
}

// The link has no secret but the state, and the browser is started with an address without that, which is good once:
// all users of a machine can read the arguments of its programs.
func TestAddressesForPeople(t *testing.T) {
	w := newWorld(t, func(w *world) { w.scopes = []string{"read"} })
	a, err := Begin(t.Context(), w.options(t))
	ssetest.Must(t, err)
	defer a.Close()
	link, err := url.Parse(a.Link())
	ssetest.Must(t, err)
	ssetest.Want(t, "parameters of the link", slices.Sorted(maps.Keys(link.Query())), []string{"client_id", "code_challenge",
		"code_challenge_method", "prompt", "redirect_uri", "resource", "response_type", "scope", "state"})
	for what, secret := range map[string]string{"verifier": a.verifier, "state": a.state, "challenge": link.Query().Get("code_challenge")} {
		if strings.Contains(a.BrowserAddress(), secret) || what == "verifier" && strings.Contains(a.Link(), secret) {
			t.Errorf("an address has the %s: %s, %s", what, a.BrowserAddress(), a.Link())
		}
	}
	stopped := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	at := strings.TrimSuffix(a.BrowserAddress(), a.start)
	for _, one := range []struct {
		address, location string
		status            int
	}{
		{at, "", http.StatusNotFound}, {at + "x", "", http.StatusNotFound},
		{a.BrowserAddress(), a.Link(), http.StatusFound}, {a.BrowserAddress(), "", http.StatusGone},
	} {
		resp, err := stopped.Get(one.address)
		ssetest.Must(t, err)
		resp.Body.Close()
		if one.status != http.StatusGone {
			ssetest.Want(t, "state", a.State(), Waiting)
		}
		ssetest.Want(t, "status of "+one.address, resp.StatusCode, one.status)
		ssetest.Want(t, "Location of "+one.address, resp.Header.Get("Location"), one.location)
	}
	ssetest.Want(t, "state", a.State(), Failed) // another user may have opened the address first, and has the state
	_, err = a.Wait(t.Context())
	ssetest.WantText(t, "error", err, "opened twice")
}

func TestPaste(t *testing.T) {
	w := newWorld(t, nil)
	o := w.options(t)
	a, err := Begin(t.Context(), o)
	ssetest.Must(t, err)
	defer a.Close()
	// The browser is on another machine, where nobody takes the redirect.
	stopped := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := stopped.Get(a.Link())
	ssetest.Must(t, err)
	resp.Body.Close()
	address := resp.Header.Get("Location")
	ssetest.WantText(t, "half an address", a.Paste(t.Context(), address[:20]), "want the whole address")
	ssetest.WantText(t, "one of another login", a.Paste(t.Context(), a.Redirect()+"?code=1&state=x"), "not of the login")
	ssetest.Must(t, a.Paste(t.Context(), "  "+address+"\r\n"))
	l, err := a.Wait(t.Context())
	ssetest.Must(t, err)
	ssetest.Must(t, a.Paste(t.Context(), address)) // once more: nothing is sent
	ssetest.Want(t, "requests for tokens", w.count("/token"), 1)
	ssetest.Want(t, "state", a.State(), Done)
	ssetest.Want(t, "server", l.Server, w.url())
}

func TestDevice(t *testing.T) {
	w := newWorld(t, func(w *world) { w.device = true })
	o := w.options(t)
	a, err := Begin(t.Context(), o)
	ssetest.Must(t, err)
	defer a.Close()
	code, err := a.Device(t.Context())
	ssetest.Must(t, err)
	ssetest.Want(t, "code", code.Code, "ABCD-EFGH")
	for named, want := range map[int64]int64{-1: 5, 0: 5, 1: 1, 7: 7, 1 << 60: 60} {
		ssetest.Want(t, "interval", intervalOf(named), want)
	}
	w.approved = true
	w.token = answers(http.StatusBadRequest, "application/json", `{"error":"access_denied"}`)
	ssetest.WantText(t, "error of a code that is refused", a.AwaitDevice(t.Context(), code), "access_denied")
	ssetest.Want(t, "state after that", a.State(), Waiting)
	w.token = nil
	ssetest.Must(t, a.AwaitDevice(t.Context(), code))
	l, err := a.Wait(t.Context())
	ssetest.Must(t, err)
	ssetest.Want(t, "resources", w.resources, []string{w.url()})
	if l.Refresh == "" {
		t.Error("no refresh token")
	}
}

// Ctrl-C, or five minutes, end a login, and nothing is left of it.
func TestNobodyLogsIn(t *testing.T) {
	w := newWorld(t, nil)
	for name, c := range map[string]struct {
		timeout time.Duration
		want    string
	}{"interrupted": {time.Hour, "was given up"}, "late": {0, "nobody has logged in within 5 minutes"}} {
		a, err := Begin(t.Context(), w.options(t))
		ssetest.Must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
		if c.timeout > 0 {
			cancel()
		}
		_, err = a.Wait(ctx)
		cancel()
		ssetest.WantText(t, name, err, c.want)
		a.Close()
		if _, err := http.Get(a.Redirect()); err == nil {
			t.Errorf("%s: the address of the redirect is still served", name)
		}
		// The person comes back late.
		ssetest.Must(t, a.Paste(t.Context(), a.Redirect()+"?code=1&state="+a.state))
		ssetest.Want(t, "requests for tokens", w.count("/token"), 0)
	}
}

// An issuer of another site is used only if the person says so: a server may name one that looks like another's.
func TestOtherSite(t *testing.T) {
	for server, issuers := range map[string]map[string]bool{
		"https://mcp.linear.app/mcp": {"https://auth.linear.app": true, "https://linear.app/x": true, "https://linear.app.evil.com": false, "https://login.example.com": false},
		"https://a.github.io/mcp":    {"https://b.github.io": false, "https://a.github.io": true},
		"http://127.0.0.1:1/mcp":     {"http://127.0.0.1:2": true, "http://127.0.0.2:1": false, "http://localhost:1": false},
	} {
		at, _ := url.Parse(server)
		for issuerURL, want := range issuers {
			to, _ := url.Parse(issuerURL)
			ssetest.Want(t, server+" and "+issuerURL, sameSite(at, to), want)
		}
	}
	hostile := &OtherSiteError{Server: "a.example", Issuer: "https://b.example/$(id)"}
	ssetest.WantText(t, "quoted for a shell", hostile, "--issuer 'https://b.example/$(id)'")
	for _, agrees := range []bool{false, true} {
		w := newWorld(t, nil)
		w.issuer.URL = strings.Replace(w.issuer.URL, "127.0.0.1", "localhost", 1)
		o, asked := w.options(t), []string(nil)
		_, _, err := w.logIn(t, o)
		ssetest.WantText(t, "nobody to ask", err, "another site, and nobody has confirmed that", "--issuer "+w.issuer.URL)
		o.Confirm = func(server, issuer string) bool { asked = []string{server, issuer}; return agrees }
		_, _, err = w.logIn(t, o)
		ssetest.Want(t, "login", err == nil, agrees)
		ssetest.Want(t, "asked", asked, []string{strings.TrimPrefix(w.server.URL, "http://"), w.issuer.URL})
		o.Confirm, o.Issuer = nil, w.issuer.URL
		w.mustLogIn(t, o)
	}
}

// An issuer that names the page of another site, and a token endpoint of its own, would get that site's codes: the
// person is asked, also for a named issuer. Addresses of this machine or network are no pages of a public server.
func TestAddressesOfAnotherSite(t *testing.T) {
	const honest = "https://honest.example/authorize"
	w := newWorld(t, func(w *world) { w.authorize, w.device = honest+"?b=%26client_id%3Dx&a=1#f", true })
	o, asked := w.options(t), ""
	for _, named := range []string{"", w.issuer.URL} {
		o.Issuer = named
		_, err := Begin(t.Context(), o)
		ssetest.WantText(t, "nobody to ask", err, w.issuer.URL, "authorization_endpoint "+honest, "in a terminal", "with --endpoint-host honest.example")
	}
	o.EndpointHosts = []string{"example", "other.example"}
	_, err := Begin(t.Context(), o)
	ssetest.WantText(t, "another host is expected", err, "--endpoint-host honest.example")
	ssetest.Want(t, "registrations", w.count("/register"), 0)
	o.EndpointHosts = []string{"other.example", "Honest.example"}
	expected, err := Begin(t.Context(), o)
	ssetest.Must(t, err)
	expected.Close()
	o.EndpointHosts = nil
	agrees := true
	o.ConfirmElsewhere = func(_, addresses string) bool { asked = addresses; return agrees }
	a, err := Begin(t.Context(), o)
	ssetest.Must(t, err)
	defer a.Close()
	ssetest.Want(t, "asked", asked, "authorization_endpoint "+honest)
	if !strings.HasPrefix(a.Link(), honest+"?a=1&b=%26client_id%3Dx&") || strings.Contains(a.Link(), "#") {
		t.Errorf("the link is %s", a.Link())
	}
	w.activate, agrees = "https://honest.example/device", false
	_, err = a.Device(t.Context())
	ssetest.WantText(t, "device", err, "verification_uri "+w.activate)
	ssetest.Want(t, "state", a.State(), Waiting)
	// The server is public: no page of this machine or network is opened.
	a.guard = newGuard(nil, netip.Addr{})
	a.plan.issuer.AuthorizationEndpoint = "http://127.0.0.1:1/authorize"
	_, err = a.makeLink()
	ssetest.WantText(t, "link", err, errInside.Error())
}

func TestCanonical(t *testing.T) {
	for address, want := range map[string]string{
		"https://MCP.Example.com:443/mcp": "https://mcp.example.com/mcp", "https://u:p@mcp.example.com#f": "https://mcp.example.com/",
		"http://localhost:8080/mcp?k=1": "http://localhost:8080/mcp?k=1", "http://example.com/mcp": "", "mcp.example.com": "", "file:///etc": "", "http://10.0.0.1/": "",
	} {
		got, err := Canonical(address)
		if want == "" {
			if err == nil {
				t.Errorf("%s: got %s", address, got)
			}
			continue
		}
		ssetest.Must(t, err)
		ssetest.Want(t, address, got.String(), want)
	}
}

// The last use of a login is none of the login before, whose file it has.
func TestLastUse(t *testing.T) {
	w := newWorld(t, nil)
	o := w.options(t)
	c := Credentials{StateDir: filepath.Dir(o.Store.dir), Server: o.Server}
	for _, which := range []string{"first", "second"} {
		l := w.mustLogIn(t, o)
		ssetest.Want(t, "last use of the "+which, o.Store.LastUse(l), time.Time{})
		_, _, err := header(t, c.source(), "")
		ssetest.Must(t, err)
		ssetest.Want(t, which+" is used", o.Store.LastUse(l).Before(l.At), false)
	}
}

func TestLogout(t *testing.T) {
	for _, noRevocation := range []bool{false, true} {
		w := newWorld(t, func(w *world) { w.noRevocation = noRevocation })
		o := w.options(t)
		l := w.mustLogIn(t, o)
		revoked, err := Logout(t.Context(), o.Store, l)
		ssetest.Must(t, err)
		ssetest.Want(t, "revoked", revoked, !noRevocation)
		ssetest.Want(t, "good refresh tokens", len(w.refresh) == 0, !noRevocation)
		if all, err := o.Store.All(); len(all) > 0 || err != nil {
			t.Errorf("kept: %v, %v", all, err)
		}
	}
}

// A login that has ended is forgotten without a failure, also where the issuer does not end what is left of it.
func TestLogoutAfterTheEnd(t *testing.T) {
	w := newWorld(t, func(w *world) { w.isJWT = true })
	o := w.options(t)
	w.mustLogIn(t, o)
	change(t, o, func(l *Login) { l.Ended, l.Refresh = time.Now(), "" })
	l, _, err := o.Store.Newest(o.Server)
	ssetest.Must(t, err)
	revoked, err := Logout(t.Context(), o.Store, l)
	ssetest.Must(t, err)
	ssetest.Want(t, "revoked", revoked, false)
}

// Nothing of the order of the states changes unseen.
func TestStatesInOrder(t *testing.T) {
	w := newWorld(t, nil)
	var seen []State
	var a *Attempt
	w.token = func(http.ResponseWriter, *http.Request) bool { seen = append(seen, a.State()); return false }
	a, err := Begin(t.Context(), w.options(t))
	ssetest.Must(t, err)
	defer a.Close()
	seen = append(seen, a.State())
	resp, err := http.Get(a.Link())
	ssetest.Must(t, err)
	resp.Body.Close()
	if _, err := a.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if seen = append(seen, a.State()); !slices.Equal(seen, []State{Waiting, Exchanging, Done}) {
		t.Errorf("got %v", seen)
	}
}
