package login

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// world is a server with its issuer, which has a person that agrees to all. The fields before mu are set first.
type world struct {
	server, issuer *httptest.Server
	challenge      string           // of the server's 401, after Bearer; default: the address of its metadata
	isOpen         bool             // initialize needs no token
	isNoMCP        http.HandlerFunc // answers at the server's URL, which has no MCP; nil: it has
	noResource     bool             // no metadata of the server
	noWellKnown    bool             // they are at /metadata alone
	resource       string           // in its metadata; default: the server's URL
	scopes         []string
	noMetadata     bool   // of the issuer
	oidcOnly       bool   // they are where OpenID Connect has them
	path           string // of the issuer
	appends        bool   // it has its metadata below its path alone
	named          string // issuer in its metadata; default: its URL
	noPKCE         bool
	noRegistration bool
	confidential   bool // clients get a secret
	refused        bool // the issuer takes no resource
	noExpiry       bool
	lifetime       int // of tokens, in seconds; default 3600
	noRefresh      bool
	rotates        bool // a refresh token is good once; used again, it ends the login
	iss            string
	promisesIss    bool
	device         bool
	noRevocation   bool
	isJWT          bool         // the issuer ends no access token
	documents      bool         // client id metadata documents
	document       http.Handler // serves these, whatever their host; nil: none is read
	authorize      string       // authorization_endpoint; default: the issuer's
	activate       string       // verification_uri; default: the issuer's
	interval       int          // of the device code, in seconds; default 1
	token          func(w http.ResponseWriter, r *http.Request) (handled bool)
	registration   func(w http.ResponseWriter, r *http.Request) (handled bool)
	register       func() // is called before a client is registered; nil: nothing is done

	mu         sync.Mutex
	asked      []string // what was asked, in order
	codes      map[string]url.Values
	clients    map[string]string // secrets by id
	access     map[string]bool   // good tokens
	refresh    map[string]bool   // good ones
	used       map[string]bool   // refresh tokens that were replaced
	resources  []string          // of requests for tokens
	askers     []string          // of requests for tokens: the kind of grant, the client, and its secret if it has one
	secrets    []string          // whatever nobody may see
	redirects  []string          // that clients have registered
	approved   bool              // the device code
	lastScopes string            // that were asked for; none: the parameter was left out
}

func newWorld(t *testing.T, set func(*world)) *world {
	t.Helper()
	w := &world{codes: map[string]url.Values{}, clients: map[string]string{"by-hand": ""}, access: map[string]bool{},
		refresh: map[string]bool{}, used: map[string]bool{}}
	w.server = httptest.NewServer(http.HandlerFunc(w.serveServer))
	w.issuer = httptest.NewServer(http.HandlerFunc(w.serveIssuer))
	t.Cleanup(w.server.Close)
	t.Cleanup(w.issuer.Close)
	if set != nil {
		set(w)
	}
	return w
}

func (w *world) url() string { return w.server.URL + "/mcp" }

// secret returns a new secret that nobody may see.
func (w *world) secret(kind string) string {
	s := kind + "-" + rand.Text()
	w.secrets = append(w.secrets, s)
	return s
}

func (w *world) serveServer(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case r.URL.Path == "/mcp" && w.isNoMCP != nil:
		w.isNoMCP(rw, r)
	case r.URL.Path == "/mcp":
		body, _ := io.ReadAll(r.Body)
		_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !w.access[token] && !(w.isOpen && strings.Contains(string(body), `"initialize"`)) {
			challenge := w.challenge
			if challenge == "" && !w.noResource {
				challenge = `resource_metadata="` + w.server.URL + `/.well-known/oauth-protected-resource/mcp"`
			}
			rw.Header().Set("WWW-Authenticate", strings.TrimSpace("Bearer "+challenge))
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(rw, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource") && !w.noResource && !w.noWellKnown,
		r.URL.Path == "/metadata" && w.noWellKnown:
		writeJSON(rw, map[string]any{"resource": or(w.resource, w.url()), "authorization_servers": []string{w.issuer.URL + w.path},
			"scopes_supported": w.scopes})
	case w.noResource: // MCP 2025-03-26: it is its own issuer
		w.serveLocked(rw, r, w.server.URL)
	default:
		http.NotFound(rw, r)
	}
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func writeJSON(rw http.ResponseWriter, v any) {
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(v)
}

// pathAt returns what a path is at an issuer without one; empty: it is none of this issuer. Its metadata are at
// /.well-known/NAME/PATH (RFC 8414), or at /PATH/.well-known/NAME (OpenID Connect discovery).
func (w *world) pathAt(path string) string {
	if w.path == "" {
		return path
	}
	if name, ok := strings.CutPrefix(path, "/.well-known/"); ok {
		name, ok = strings.CutSuffix(name, w.path)
		if !ok || w.appends {
			return ""
		}
		return "/.well-known/" + name
	}
	rest, ok := strings.CutPrefix(path, w.path)
	if !ok || strings.HasPrefix(rest, "/.well-known/") && !w.appends {
		return ""
	}
	return rest
}

func (w *world) serveIssuer(rw http.ResponseWriter, r *http.Request) {
	r.URL.Path = w.pathAt(r.URL.Path)
	if r.URL.Path == "/token" && w.token != nil && w.token(rw, r) {
		return
	}
	if r.URL.Path == "/register" && w.registration != nil && w.registration(rw, r) {
		return
	}
	if r.URL.Path == "/register" && w.register != nil {
		w.register()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serveLocked(rw, r, w.issuer.URL+w.path)
}

func (w *world) serveLocked(rw http.ResponseWriter, r *http.Request, base string) {
	_ = r.ParseForm()
	w.asked = append(w.asked, r.URL.Path)
	switch r.URL.Path {
	case "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration":
		if w.noMetadata || w.oidcOnly && strings.Contains(r.URL.Path, "oauth") {
			http.NotFound(rw, r)
			return
		}
		found := map[string]any{"issuer": or(w.named, base), "authorization_endpoint": or(w.authorize, base+"/authorize"),
			"token_endpoint": base + "/token", "scopes_supported": []string{"everything", "offline_access"}}
		if !w.noPKCE {
			found["code_challenge_methods_supported"] = []string{"plain", "S256"}
		}
		if !w.noRegistration {
			found["registration_endpoint"] = base + "/register"
		}
		if !w.noRevocation {
			found["revocation_endpoint"] = base + "/revoke"
		}
		if w.device {
			found["device_authorization_endpoint"] = base + "/device"
		}
		if w.confidential {
			found["token_endpoint_auth_methods_supported"] = []string{"client_secret_basic"}
		}
		found["authorization_response_iss_parameter_supported"] = w.promisesIss
		found["client_id_metadata_document_supported"] = w.documents
		writeJSON(rw, found)
	case "/register":
		if w.noRegistration {
			http.NotFound(rw, r)
			return
		}
		var asked struct {
			Redirects []string `json:"redirect_uris"`
		}
		_ = json.NewDecoder(r.Body).Decode(&asked)
		w.redirects = asked.Redirects
		id, got := "client-"+rand.Text(), map[string]any{}
		w.clients[id] = ""
		if w.confidential {
			w.clients[id] = w.secret("secret")
			got["client_secret"] = w.clients[id]
		}
		got["client_id"] = id
		rw.WriteHeader(http.StatusCreated)
		writeJSON(rw, got)
	case "/authorize":
		q := r.URL.Query()
		if why := w.documentProblem(q); why != "" {
			http.Error(rw, why, http.StatusBadRequest)
			return
		}
		back, _ := url.Parse(q.Get("redirect_uri"))
		answer := url.Values{"state": {q.Get("state")}}
		if w.refused && q.Has("resource") {
			answer.Set("error", "invalid_target")
		} else {
			code := w.secret("code")
			w.codes[code], w.lastScopes = q, q.Get("scope")
			if !q.Has("scope") {
				w.lastScopes = "none"
			}
			answer.Set("code", code)
		}
		if w.iss != "" {
			answer.Set("iss", w.iss)
		} else if w.promisesIss {
			answer.Set("iss", base)
		}
		back.RawQuery = answer.Encode()
		http.Redirect(rw, r, back.String(), http.StatusFound)
	case "/device":
		writeJSON(rw, map[string]any{"device_code": w.secret("device"), "user_code": "ABCD-EFGH",
			"verification_uri": or(w.activate, base+"/activate"), "expires_in": 60, "interval": cmp.Or(w.interval, 1)})
	case "/token":
		w.serveToken(rw, r)
	case "/revoke":
		if w.isJWT && w.access[r.Form.Get("token")] {
			refuse(rw, "unsupported_token_type")
			return
		}
		delete(w.refresh, r.Form.Get("token"))
		delete(w.access, r.Form.Get("token"))
	default:
		http.NotFound(rw, r)
	}
}

// documentProblem reads the client id metadata document that the client of a request for a code names, and returns why
// it is not taken; empty: it is, or no client has one here.
func (w *world) documentProblem(asked url.Values) string {
	at := asked.Get("client_id")
	if w.document == nil || !strings.HasPrefix(at, "https://") {
		return ""
	}
	rec := httptest.NewRecorder()
	w.document.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, at, nil))
	var found struct {
		ID        string   `json:"client_id"`
		Name      string   `json:"client_name"`
		Redirects []string `json:"redirect_uris"`
		Method    string   `json:"token_endpoint_auth_method"`
	}
	redirect, err := url.Parse(asked.Get("redirect_uri"))
	switch {
	case err != nil:
		return "the redirect is no URL"
	case rec.Code != http.StatusOK || rec.Header().Get("Content-Type") != "application/json" ||
		json.Unmarshal(rec.Body.Bytes(), &found) != nil:
		return "there is no document"
	case found.ID != at || found.Name == "" || found.Method != "none":
		return "the document is not of this client"
	}
	if redirect.Hostname() == "127.0.0.1" { // RFC 8252, 7.3
		redirect.Host = redirect.Hostname()
	}
	if !slices.Contains(found.Redirects, redirect.String()) {
		return "the document does not have the redirect"
	}
	return ""
}

func refuse(rw http.ResponseWriter, code string) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(rw).Encode(map[string]string{"error": code})
}

func (w *world) serveToken(rw http.ResponseWriter, r *http.Request) {
	id, secret := r.Form.Get("client_id"), r.Form.Get("client_secret")
	if user, password, ok := r.BasicAuth(); ok {
		id, secret = user, password
	}
	known, ok := w.clients[id]
	isDocument := w.documents && strings.HasPrefix(id, "https://")
	if !isDocument && (!ok || known != secret) {
		refuse(rw, "invalid_client")
		return
	}
	w.resources = append(w.resources, r.Form.Get("resource"))
	w.askers = append(w.askers, strings.TrimSpace(r.Form.Get("grant_type")+" "+id+" "+secret))
	switch r.Form.Get("grant_type") {
	case "authorization_code":
		asked, ok := w.codes[r.Form.Get("code")]
		delete(w.codes, r.Form.Get("code"))
		sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
		w.secrets = append(w.secrets, r.Form.Get("code_verifier"))
		if !ok || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) ||
			asked.Get("code_challenge_method") != "S256" || asked.Get("redirect_uri") != r.Form.Get("redirect_uri") ||
			asked.Get("client_id") != id {
			refuse(rw, "invalid_grant")
			return
		}
	case "refresh_token":
		was := r.Form.Get("refresh_token")
		switch {
		case w.used[was]: // it was stolen, for all that the issuer knows
			clear(w.refresh)
			clear(w.access)
			fallthrough
		case !w.refresh[was]:
			refuse(rw, "invalid_grant")
			return
		}
		if w.rotates {
			delete(w.refresh, was)
			w.used[was] = true
		}
	case deviceGrant:
		if !w.approved {
			w.approved = true // the next time
			refuse(rw, "authorization_pending")
			return
		}
	default:
		refuse(rw, "unsupported_grant_type")
		return
	}
	access := w.secret("access")
	w.access[access] = true
	got := map[string]any{"access_token": access, "token_type": "bearer"}
	if !w.noExpiry {
		got["expires_in"] = max(w.lifetime, 1)
		if w.lifetime == 0 {
			got["expires_in"] = 3600
		}
	}
	if !w.noRefresh && (r.Form.Get("grant_type") != "refresh_token" || w.rotates) {
		fresh := w.secret("refresh")
		w.refresh[fresh] = true
		got["refresh_token"] = fresh
	}
	writeJSON(rw, got)
}

// count returns how often a path of the issuer was asked.
func (w *world) count(path string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.asked {
		if one == path {
			n++
		}
	}
	return n
}

// renews reports whether a refresh token is good.
func (w *world) renews(refresh string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refresh[refresh]
}

// wantNoSecret checks that a text has none of the secrets.
func (w *world) wantNoSecret(t *testing.T, what, text string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, secret := range w.secrets {
		if secret != "" && strings.Contains(text, secret) {
			t.Errorf("%s has a secret (%s): %s", what, secret[:6], text)
		}
	}
}

// options are those of a login in this world.
func (w *world) options(t *testing.T) Options {
	t.Helper()
	return Options{Server: w.url(), Store: NewStore(filepath.Join(ssetest.PrivateDir(t), "state"))}
}

// logIn logs in, as a person would whose browser follows redirects. It returns the last page.
func (w *world) logIn(t *testing.T, o Options) (*Login, string, error) {
	t.Helper()
	a, err := Begin(t.Context(), o)
	if err != nil {
		return nil, "", err
	}
	defer a.Close()
	resp, err := http.Get(a.Link())
	ssetest.Must(t, err)
	page, err := io.ReadAll(resp.Body)
	ssetest.Must(t, err)
	resp.Body.Close()
	if at := resp.Request.URL.String(); !strings.HasSuffix(at, "/done") && resp.StatusCode == http.StatusOK {
		t.Errorf("the browser ends at %s", at)
	}
	w.wantNoSecret(t, "the last page", string(page)+resp.Request.URL.String())
	w.wantNoSecret(t, "the link", a.Link())
	l, err := a.Wait(t.Context())
	return l, string(page), err
}

// mustLogIn logs in, and returns the login.
func (w *world) mustLogIn(t *testing.T, o Options) *Login {
	t.Helper()
	l, _, err := w.logIn(t, o)
	ssetest.Must(t, err)
	if !slices.Contains(w.secrets, l.Access) {
		t.Fatalf("the token is not of the issuer")
	}
	return l
}
