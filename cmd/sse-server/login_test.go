package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// personHeader has the person whose browser opens the issuer's page; without it that is "you".
const personHeader = "X-Person"

// protected is a server of go-sdk, with its OAuth in front, and its issuer at the same address.
type protected struct {
	*httptest.Server
	mu       sync.Mutex
	codes    map[string]url.Values
	tokens   map[string]bool
	whose    map[string]string // the person of a code or a token, if it is somebody else than "you"
	ended    bool              // refresh tokens are good no more
	isDown   bool              // the token endpoint fails
	wants    string            // a scope that no login has; empty: none
	device   string            // the answer to who asks with a device code; empty: the issuer has none; ok: a token
	banned   string            // an account that the issuer knows and the server refuses
	secrets  []string
	openings int // of the issuer's page
	// documents reads client id metadata documents: the issuer takes these, and registers no clients. nil: it registers.
	documents *http.Client
	clients   []string // of requests for tokens
}

func newProtected(t *testing.T) *protected {
	t.Helper()
	p := &protected{codes: map[string]url.Values{}, tokens: map[string]bool{}, whose: map[string]string{}}
	whoami := func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: r.Extra.TokenInfo.UserID}}}, nil, nil
	}
	var servers []*mcp.Server
	serverOf := func(person string) *mcp.Server { // each person has a tool of the own name, beside that of all
		server := mcp.NewServer(&mcp.Implementation{Name: "protected", Version: "1"}, &mcp.ServerOptions{Instructions: cmp.Or(person, "you") + " alone"})
		mcp.AddTool(server, &mcp.Tool{Name: "whoami"}, whoami)
		if person != "" {
			mcp.AddTool(server, &mcp.Tool{Name: "of_" + person}, whoami)
		}
		servers = append(servers, server)
		return server
	}
	byPerson := map[string]*mcp.Server{"": serverOf(""), "alice": serverOf("alice"), "bob": serverOf("bob")}
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.tokens[token] || p.banned != "" && p.whose[token] == p.banned {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{Expiration: time.Now().Add(time.Hour), UserID: cmp.Or(p.whose[token], "you")}, nil
	}
	routes := http.NewServeMux()
	p.Server = httptest.NewServer(routes)
	t.Cleanup(func() {
		p.Close()
		for _, server := range servers {
			for session := range server.Sessions() { // of gateways whose token was not good any more when they left
				_ = session.Close()
			}
		}
	})
	const metadata = "/.well-known/oauth-protected-resource/mcp"
	wanting := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.mu.Lock()
			scope := p.wants
			p.mu.Unlock()
			if scope != "" && r.Header.Get("Authorization") != "" {
				w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+scope+`"`)
				w.WriteHeader(http.StatusForbidden)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	routes.Handle("/mcp", wanting(auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{ResourceMetadataURL: p.URL + metadata})(
		mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
			p.mu.Lock()
			defer p.mu.Unlock()
			return byPerson[p.whose[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]]
		}, nil))))
	routes.Handle(metadata, auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{Resource: p.URL + "/mcp", AuthorizationServers: []string{p.URL}}))
	routes.HandleFunc("/", p.serveIssuer)
	return p
}

func (p *protected) secret() string {
	p.secrets = append(p.secrets, rand.Text())
	return p.secrets[len(p.secrets)-1]
}

func (p *protected) serveIssuer(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var answer any
	switch r.URL.Path {
	case "/.well-known/oauth-authorization-server":
		described := map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token",
			"revocation_endpoint": p.URL + "/revoke", "code_challenge_methods_supported": []string{"S256"}}
		if p.documents == nil {
			described["registration_endpoint"] = p.URL + "/register"
		} else {
			described["client_id_metadata_document_supported"] = true
		}
		if p.device != "" {
			described["device_authorization_endpoint"] = p.URL + "/device"
		}
		answer = described
	case "/device":
		answer = map[string]any{"device_code": p.secret(), "user_code": "ABCD-EFGH", "verification_uri": p.URL + "/activate", "interval": 1}
	case "/register":
		answer = map[string]any{"client_id": "c1"}
	case "/authorize":
		p.openings++
		code, back := p.secret(), clitest.Must(url.Parse(r.FormValue("redirect_uri")))
		if !p.knows(r.FormValue("client_id"), *back) {
			http.Error(w, "this client is not known", http.StatusBadRequest)
			return
		}
		p.codes[code], p.whose[code] = r.URL.Query(), r.Header.Get(personHeader)
		back.RawQuery = url.Values{"code": {code}, "state": {r.FormValue("state")}}.Encode()
		http.Redirect(w, r, back.String(), http.StatusFound)
		return
	case "/token":
		if p.isDown {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if r.FormValue("device_code") != "" && p.device != "ok" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			answer = map[string]string{"error": p.device}
			break
		}
		asked := p.codes[r.FormValue("code")]
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		p.secrets, p.clients = append(p.secrets, r.FormValue("code_verifier")), append(p.clients, r.FormValue("client_id"))
		if r.FormValue("grant_type") == "authorization_code" && asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) ||
			r.FormValue("grant_type") == "refresh_token" && p.ended {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			answer = map[string]string{"error": "invalid_grant"}
			break
		}
		token, refresh := p.secret(), p.secret()
		whose := cmp.Or(p.whose[r.FormValue("code")], p.whose[r.FormValue("refresh_token")])
		p.tokens[token], p.whose[token], p.whose[refresh] = true, whose, whose
		answer = map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 3600, "refresh_token": refresh}
	case "/revoke":
		clear(p.tokens)
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// knows reports whether a client may have a browser come back to an address. The issuer knows those that it registers,
// or reads their documents.
func (p *protected) knows(client string, back url.URL) bool {
	if p.documents == nil {
		return client == "c1"
	}
	resp, err := p.documents.Get(client)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var found struct {
		ID        string   `json:"client_id"`
		Redirects []string `json:"redirect_uris"`
	}
	if back.Hostname() == "127.0.0.1" {
		back.Host = back.Hostname() // any port
	}
	return resp.StatusCode == http.StatusOK && json.NewDecoder(resp.Body).Decode(&found) == nil && found.ID == client &&
		slices.Contains(found.Redirects, back.String())
}

// wantNoSecret checks that a text has nothing that only the issuer and the program may know.
func (p *protected) wantNoSecret(t *testing.T, what, text string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, secret := range p.secrets {
		if secret != "" && strings.Contains(text, secret) {
			t.Errorf("%s has a secret:\n%s", what, text)
		}
	}
}

// visit opens a link, as a browser does.
func visit(t *testing.T, link string) {
	t.Helper()
	resp, err := newClient(t, &http.Transport{}).Get(link)
	ssetest.Must(t, err)
	resp.Body.Close()
	ssetest.Want(t, "status of the last page", resp.StatusCode, http.StatusOK)
}

// linkIn returns the first link to the issuer in a text.
func (p *protected) linkIn(t *testing.T, text string) string {
	t.Helper()
	_, after, found := strings.Cut(text, p.URL+"/authorize")
	if !found {
		t.Fatalf("there is no link in: %s", text)
	}
	return p.URL + "/authorize" + strings.Fields(after)[0]
}

// logIn runs the command login, and logs in where it says.
func (p *protected) logIn(t *testing.T, env map[string]string, args ...string) string {
	t.Helper()
	return p.runLogin(t, env, append([]string{"login", p.URL + "/mcp"}, args...)...)
}

// runLogin is logIn with all arguments of the command.
func (p *protected) runLogin(t *testing.T, env map[string]string, args ...string) string {
	t.Helper()
	var out, log output
	m := &Main{Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &log,
		LookupEnv: clitest.Environment(env), Notify: func(...os.Signal) <-chan os.Signal { return make(chan os.Signal) }}
	code := make(chan int, 1)
	go func() { code <- m.Run() }()
	out.await(t, 1, "Paste it here")
	visit(t, p.linkIn(t, out.String()))
	if got := <-code; got != exit.OK {
		t.Fatalf("login ended with %d:\n%s%s", got, out.String(), log.String())
	}
	p.wantNoSecret(t, "the output of login", out.String()+log.String())
	return out.String()
}

// Where the browser is on another machine, a person pastes the address at which that ends, also after something else.
func TestLoginByAPastedAddress(t *testing.T) {
	remote, env := newProtected(t), clitest.State(t)
	stdin, typed := io.Pipe()
	defer typed.Close() // ends what reads it
	var out, log output
	m := &Main{Args: []string{"login", remote.URL + "/mcp", "--no-browser"}, Stdin: stdin, Stdout: &out, Stderr: &log,
		LookupEnv: clitest.Environment(env), Notify: func(...os.Signal) <-chan os.Signal { return make(chan os.Signal) }}
	code := make(chan int, 1)
	go func() { code <- m.Run() }()
	answers := map[string]int{}
	paste := func(line, answer string) {
		_, err := io.WriteString(typed, line+"\n")
		ssetest.Must(t, err)
		answers[answer]++
		out.await(t, answers[answer], answer)
	}
	out.await(t, 1, "Paste it here")
	elsewhere := newClient(t, &http.Transport{})
	elsewhere.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := elsewhere.Get(remote.linkIn(t, out.String()))
	ssetest.Must(t, err)
	resp.Body.Close()
	address := resp.Header.Get("Location")
	paste("", "Paste it here")
	paste("what is this?", "want the whole address that the browser shows at the end")
	paste(remote.linkIn(t, out.String()), "that is the address to open: paste the one at which the browser ends, http://127.0.0.1:")
	withoutState, _, _ := strings.Cut(address, "?")
	paste(withoutState+"?code=1", "want the whole address that the browser shows at the end")
	paste(withoutState+"?state="+clitest.Must(url.Parse(address)).Query().Get("state"), "want the whole address that the browser shows at the end")
	paste(strings.Replace(address, "state=", "state=x", 1), "this address is not of the login that waits")
	paste("  "+address+"\r", "Logged in at "+remote.URL+"/mcp, by "+remote.URL)
	ssetest.Want(t, "exit code", <-code, exit.OK)
	remote.wantNoSecret(t, "the output of login", out.String()+log.String())
	p := startWith(t, env, "--addr", "127.0.0.1:0", "--url", remote.URL+"/mcp")
	ssetest.Want(t, "tools", toolsOf(t, connectTo(t, p.url)), "whoami")
}

// Without a browser, and at an issuer with codes for another device, a person may type the code or open the address.
func TestLoginWithoutABrowser(t *testing.T) {
	for name, test := range map[string]struct {
		device string // what the issuer answers to the code at first
		visits bool
		logs   string
	}{
		"by the code":    {device: "ok"},
		"by the address": {device: "authorization_pending", visits: true},
		"by the address, after a code that is none": {device: "access_denied", visits: true, logs: `no code for another device: the token endpoint answered 400 "access_denied"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			remote := newProtected(t)
			remote.device = test.device
			var out, log output
			m := &Main{Args: []string{"login", remote.URL + "/mcp"}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &log,
				LookupEnv: clitest.Environment(clitest.State(t)), Notify: func(...os.Signal) <-chan os.Signal { return make(chan os.Signal) }}
			code := make(chan int, 1)
			go func() { code <- m.Run() }()
			out.await(t, 1, "Paste it here")
			ssetest.WantText(t, "output", out.String(), "and type the code ABCD-EFGH there:\n\n  "+remote.URL+"/activate\n\nOr:\nOpen this address in a browser")
			if test.logs != "" {
				log.await(t, 1, test.logs)
			}
			if test.visits {
				visit(t, remote.linkIn(t, out.String()))
			}
			ssetest.Want(t, "exit code", <-code, exit.OK)
			ssetest.WantText(t, "output", out.String(), "Paste it here:\nLogged in at "+remote.URL)
			ssetest.WantText(t, "log", log.String(), test.logs)
			remote.wantNoSecret(t, "the output", out.String()+log.String())
		})
	}
}

// One login serves all clients of a gateway, and logout ends it.
func TestLoginIsUsed(t *testing.T) {
	remote := newProtected(t)
	env := clitest.State(t)
	out := remote.logIn(t, env)
	ssetest.WantText(t, "output", out, "as a client registered for this login.", "Logged in at "+remote.URL+"/mcp, by "+remote.URL, "Its token is good until 2", ". It is renewed as needed.")
	p := startWith(t, env, "--addr", "127.0.0.1:0", "--url", remote.URL+"/mcp", "--log-level", "debug", "--error-details", "full")
	for range 2 {
		session := connectTo(t, p.url)
		ssetest.Want(t, "tools", toolsOf(t, session), "whoami")
	}
	listed := launchWith(t, env, "logins")
	listed.wantExit(exit.OK)
	ssetest.WantText(t, "logins", listed.out.String(), remote.URL+"/mcp\n  by "+remote.URL+" since", "\n  its token is good until 2", "; it is renewed as needed; last used")
	inJSON := launchWith(t, env, "logins", "--json")
	inJSON.wantExit(exit.OK)
	ssetest.WantText(t, "logins --json", inJSON.out.String(), `"isRenewed": true`)
	_, metrics := get(t, newClient(t, &http.Transport{}), p.base()+"/metrics", "")
	gone := launchWith(t, env, "logout", remote.URL+"/mcp")
	gone.wantExit(exit.OK)
	ssetest.WantText(t, "logout", gone.out.String(), "has ended the login")
	again := launchWith(t, env, "logout", remote.URL+"/mcp")
	again.wantExit(exit.OK)
	ssetest.WantText(t, "logout again", again.out.String(), "Nobody is logged in at")
	p.stop()
	remote.wantNoSecret(t, "what is printed", listed.out.String()+inJSON.out.String()+metrics+gone.out.String()+p.out.String()+p.log.String())
	left := clitest.Must(filepath.Glob(filepath.Join(env["XDG_STATE_HOME"], "sse-server", "logins", "*")))
	for _, file := range left {
		remote.wantNoSecret(t, file, string(clitest.Must(os.ReadFile(file))))
	}
}

// While nobody is logged in, a client keeps the server: it has one tool, whose answer is the link, and the tools of the
// server appear after the login, also one that was made elsewhere.
func TestNobodyIsLoggedInYet(t *testing.T) {
	for name, logIn := range map[string]func(*protected, map[string]string, string){
		"by the link": func(_ *protected, _ map[string]string, link string) { visit(t, link) },
		"elsewhere":   func(remote *protected, env map[string]string, _ string) { remote.logIn(t, env) },
	} {
		t.Run(name, func(t *testing.T) {
			remote, env := newProtected(t), clitest.State(t)
			p := startWith(t, env, "--addr", "127.0.0.1:0", "--url", remote.URL+"/mcp", "--no-start-check", "--log-level", "debug")
			changed := make(chan struct{}, 16)
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
				ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} }})
			session, err := client.Connect(t.Context(), &mcp.SSEClientTransport{Endpoint: p.url, HTTPClient: newClient(t, &http.Transport{})}, nil)
			ssetest.Must(t, err)
			t.Cleanup(func() { session.Close() })
			ssetest.Want(t, "tools", toolsOf(t, session), "login")
			ssetest.Want(t, "pages of the issuer that were opened", remote.openings, 0)
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "login"})
			ssetest.Must(t, err)
			text := result.Content[0].(*mcp.TextContent).Text
			ssetest.WantText(t, "answer", text, "Log in at "+remote.URL+"/authorize?")
			link := remote.linkIn(t, text)
			logIn(remote, env, link)
			select {
			case <-changed:
			case <-time.After(time.Minute):
				t.Fatal("the client is not told of the tools of the server")
			}
			awaitTools(t, session, "whoami")
			result, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "whoami"})
			ssetest.Must(t, err)
			ssetest.Want(t, "answer", result.Content[0].(*mcp.TextContent).Text, "you")
			p.stop()
			remote.wantNoSecret(t, "the log", p.log.String())
		})
	}
}

// An issuer that is down for a while takes no server from a client, and has nobody log in: the lists are those of before,
// a call is told to come later, and works once the issuer does. A client for which nothing is known hears it at once.
func TestIssuerOfALoginIsDown(t *testing.T) {
	for name, isKnown := range map[string]bool{"the lists are known": true, "nothing is known": false} {
		t.Run(name, func(t *testing.T) {
			remote, env := newProtected(t), clitest.State(t)
			remote.logIn(t, env)
			if isKnown {
				p := startWith(t, env, "--addr", "127.0.0.1:0", "--url", remote.URL+"/mcp", "--no-start-check")
				ssetest.Want(t, "tools", toolsOf(t, connectTo(t, p.url)), "whoami")
				p.stop() // what the server said is kept then
			}
			fail := func(is bool) {
				remote.mu.Lock()
				defer remote.mu.Unlock()
				remote.isDown = is
				if is {
					clear(remote.tokens)
				}
			}
			fail(true)
			p := startWith(t, env, "--addr", "127.0.0.1:0", "--url", remote.URL+"/mcp", "--no-start-check")
			const why = `the issuer cannot renew the login now: the token endpoint answered 503 "Service Unavailable"; call again later`
			_, body := get(t, newClient(t, &http.Transport{}), p.base()+"/readyz", "")
			ssetest.WantText(t, "/readyz", body, "the issuer cannot renew the login now: the token endpoint answered 503")
			if !isKnown {
				_, err := tryConnect(t, p.url, "")
				ssetest.WantText(t, "a client", err, why)
				return
			}
			session := connectTo(t, p.url)
			ssetest.Want(t, "tools", toolsOf(t, session), "whoami")
			ssetest.Want(t, "a call", whoami(t, session), why)
			fail(false)
			awaitWhoami(t, session, why)
			ssetest.Want(t, "pages of the issuer that were opened", remote.openings, 1)
			text := p.log.String()
			if strings.Contains(text, "run in a terminal") {
				t.Errorf("the log has the command: %s", text)
			}
			wantLine(t, text, "login not refreshed", " url="+remote.URL+"/mcp ")
		})
	}
}

// wantLine checks the first line of a log with a message: it has these parts, and no attribute twice.
func wantLine(t *testing.T, log, message string, parts ...string) {
	t.Helper()
	for line := range strings.Lines(log) {
		if strings.Contains(line, `msg="`+message+`"`) {
			ssetest.WantText(t, message, line, parts...)
			ssetest.Want(t, "names of the server in "+line, strings.Count(line, " server="), 1)
			return
		}
	}
	t.Errorf("the log has no line %q:\n%s", message, log)
}

// The line in the log that a login has ended has the command, as a person may read it on a terminal.
func TestEndOfALoginIsLogged(t *testing.T) {
	remote, env := newProtected(t), clitest.State(t)
	remote.logIn(t, env)
	p := startWith(t, env, "--addr", "127.0.0.1:0", "--url", remote.URL+"/mcp", "--no-start-check")
	session := connectTo(t, p.url)
	ssetest.Want(t, "tools", toolsOf(t, session), "whoami")
	remote.mu.Lock()
	remote.ended = true
	clear(remote.tokens)
	remote.mu.Unlock()
	ssetest.WantText(t, "a call", whoami(t, session), "the login at the server has ended")
	wantLine(t, p.log.String(), "login ended by the issuer", " url="+remote.URL+"/mcp ", " issuer="+remote.URL+" ",
		` remedy="run in a terminal: sse-server login `+remote.URL+`/mcp"`)
}

// whoami calls the tool of that name, and returns its text.
func whoami(t *testing.T, session *mcp.ClientSession) string {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "whoami"})
	ssetest.Must(t, err)
	return result.Content[0].(*mcp.TextContent).Text
}

// awaitWhoami calls the tool until the server answers; before that the answer says why it cannot.
func awaitWhoami(t *testing.T, session *mcp.ClientSession, why string) {
	t.Helper()
	tick, deadline := time.NewTicker(50*time.Millisecond), time.After(2*time.Minute)
	defer tick.Stop()
	for answer := whoami(t, session); answer != "you"; answer = whoami(t, session) {
		ssetest.Want(t, "a call", answer, why)
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the call does not work")
		}
	}
}

// So it is with a scope that a server wants of each request: the lists are those of before, and a call has the command
// for a login with that scope.
func TestLoginLacksAScopeForAllRequests(t *testing.T) {
	remote, env := newProtected(t), clitest.State(t)
	remote.logIn(t, env)
	p := startWith(t, env, "--addr", "127.0.0.1:0", "--url", remote.URL+"/mcp", "--no-start-check")
	ssetest.Want(t, "tools", toolsOf(t, connectTo(t, p.url)), "whoami")
	p.stop()
	want := func(scope string) {
		remote.mu.Lock()
		defer remote.mu.Unlock()
		remote.wants = scope
	}
	want("admin")
	p = startWith(t, env, "--addr", "127.0.0.1:0", "--url", remote.URL+"/mcp", "--no-start-check")
	session := connectTo(t, p.url)
	ssetest.Want(t, "tools", toolsOf(t, session), "whoami")
	why := `the login lacks the scope "admin": run in a terminal: sse-server login ` + remote.URL + "/mcp --scope admin"
	ssetest.Want(t, "a call", whoami(t, session), why)
	want("")
	remote.logIn(t, env, "--scope", "admin")
	awaitWhoami(t, session, why)
}

// What may not be used by all who reach an address is used by none of them.
func TestLoginIsNotForStrangers(t *testing.T) {
	remote, env := newProtected(t), clitest.State(t)
	remote.logIn(t, env)
	tokens := clitest.WriteFile(t, "tokens", "alice:"+secret+"\n")
	for name, c := range map[string]struct {
		args []string
		used bool
	}{
		"loopback":                {nil, true},
		"tokens":                  {[]string{"--auth-tokens-file", tokens}, false},
		"another host":            {[]string{"--allowed-hosts", "gw.example.com"}, false},
		"all addresses":           {[]string{"--addr", ":0", "--insecure"}, false},
		"off":                     {[]string{"--login", "off"}, false},
		"a header":                {[]string{"--header", "Authorization: Bearer x"}, false},
		"tokens, and it is meant": {[]string{"--auth-tokens-file", tokens, "--login", "shared"}, true},
	} {
		loaded := mustLoad(t, env, append([]string{"--url", remote.URL + "/mcp"}, c.args...)...)
		ssetest.Want(t, name, loaded.Each()[0].Remote().Credentials != nil, c.used)
	}
	refused := launchWith(t, env, "--url", remote.URL+"/mcp", "--login", "per-principal")
	refused.wantExit(exit.Config)
	ssetest.WantText(t, "per-principal", refused.log.String(), "--login: per-principal: without authentication")
}

// That nobody is logged in is said to those who run the gateway, with the command for those who may know it, and never
// with a link or a token.
func TestMissingLoginIsSaid(t *testing.T) {
	remote, env := newProtected(t), clitest.State(t)
	p := startWith(t, env, "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--url", remote.URL+"/mcp", "--no-start-check")
	client := newClient(t, &http.Transport{})
	session := connectTo(t, p.url)
	ssetest.Want(t, "tools", toolsOf(t, session), "login")
	look := func(path string) string {
		base := p.admin
		if strings.HasPrefix(path, "/mcp") {
			base = p.base()
		}
		request := clitest.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil))
		request.Header.Set("Accept", "application/json")
		resp, err := client.Do(request)
		ssetest.Must(t, err)
		defer resp.Body.Close()
		body := string(clitest.Must(io.ReadAll(resp.Body)))
		if strings.Contains(body, "/authorize") {
			t.Errorf("%s has a link: %s", path, body)
		}
		remote.wantNoSecret(t, path, body)
		return body
	}
	command := "sse-server login " + remote.URL + "/mcp"
	ssetest.WantText(t, "/readyz", look("/readyz"), `"not ready"`, "the server is waiting for a login: run in a terminal: "+command)
	ssetest.WantText(t, "/metrics", look("/metrics"), "\nmcp_sse_login_needed 1\n")
	ssetest.WantText(t, "state", look("/mcp?page=state.json"), `"state":"waiting for a login"`, `"loginCommand":"`+command+`"`)
	ssetest.WantText(t, "/status", look("/status"), "waiting for a login", command)
	remote.logIn(t, env)
	awaitTools(t, session, "whoami")
	// All viewers share what is there for a second.
	awaitText(t, "/status after the login", func() string { return look("/status") }, func(status string) bool {
		return !strings.Contains(status, "waiting for a login")
	})
	ssetest.Want(t, "/status after the login has the command", strings.Contains(look("/status"), command), false)
	ssetest.WantText(t, "/readyz after the login", look("/readyz"), `"ready"`)
	ssetest.WantText(t, "/metrics after the login", look("/metrics"), "\nmcp_sse_login_needed 0\n")
	if state := look("/mcp?page=state.json"); strings.Contains(state, "waiting for a login") || strings.Contains(state, "loginCommand") {
		t.Errorf("state after the login: %s", state)
	}
	safe := startWith(t, env, "--addr", "127.0.0.1:0", "--url", newProtected(t).URL+"/mcp", "--no-start-check", "--error-details", "safe")
	ssetest.Want(t, "tools", toolsOf(t, connectTo(t, safe.url)), "login")
	_, body := get(t, client, safe.base()+"/readyz", "")
	ssetest.WantText(t, "/readyz", body, `"reason":"the server is waiting for a login"`)
}

// The page of a server begins its login, and the browser comes back to the page. No other page begins one, and none
// begins for those who are not on the machine, or have tokens.
func TestLoginFromThePage(t *testing.T) {
	remote, env := newProtected(t), clitest.State(t)
	p := startWith(t, env, "--addr", "127.0.0.1:0", "--url", remote.URL+"/mcp", "--no-start-check")
	session, client := connectTo(t, p.url), newClient(t, &http.Transport{})
	ssetest.Want(t, "tools", toolsOf(t, session), "login")
	send := func(base, method, origin string) (int, string) {
		request := clitest.Must(http.NewRequestWithContext(t.Context(), method, base+"/mcp?page=login", nil))
		if origin != "" {
			request.Header.Set("Origin", origin)
		}
		resp, err := client.Do(request)
		ssetest.Must(t, err)
		defer resp.Body.Close()
		return resp.StatusCode, string(clitest.Must(io.ReadAll(resp.Body)))
	}
	for _, origin := range []string{"", "null", "https://evil.example", "http://127.0.0.1:1", "http://localhost:1"} {
		code, body := send(p.base(), http.MethodPost, origin)
		ssetest.Want(t, "status for the origin "+origin, code, http.StatusForbidden)
		ssetest.Want(t, "a link for the origin "+origin, strings.Contains(body, "/authorize"), false)
	}
	_, body := send(p.base(), http.MethodGet, p.base())
	ssetest.Want(t, "a link for a GET", strings.Contains(body, "/authorize"), false)
	code, body := send(p.base(), http.MethodPost, p.base())
	ssetest.Want(t, "status", code, http.StatusOK)
	var answer struct{ Link, Word string }
	ssetest.Must(t, json.Unmarshal([]byte(body), &answer))
	request := clitest.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, answer.Link, nil))
	request.Header.Set("Accept", "text/html")
	resp, err := client.Do(request)
	ssetest.Must(t, err)
	resp.Body.Close()
	ssetest.Want(t, "the last page", resp.Request.URL.String(), p.base()+"/mcp#logged-in="+answer.Word)
	ssetest.Want(t, "the link has the word", answer.Word == "" || strings.Contains(answer.Link, answer.Word), false)
	ssetest.Want(t, "status of the last page", resp.StatusCode, http.StatusOK)
	awaitTools(t, session, "whoami")
	shared := startWith(t, env, "--addr", "127.0.0.1:0", "--url", newProtected(t).URL+"/mcp", "--no-start-check", "--login", "shared",
		"--auth-tokens-file", clitest.WriteFile(t, "tokens", "alice:"+secret+"\n"))
	code, body = send(shared.base(), http.MethodPost, shared.base())
	ssetest.Want(t, "status with tokens", code, http.StatusUnauthorized)
	ssetest.Want(t, "a link with tokens", strings.Contains(body, "/authorize"), false)
}
