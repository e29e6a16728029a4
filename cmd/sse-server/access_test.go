package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// startIssuer starts an issuer of JWTs, and returns its URL and a function that signs one of alice for a resource.
func startIssuer(t *testing.T) (url string, sign func(resource string, scopes ...string) string) {
	t.Helper()
	url, signFor := startIssuerOf(t)
	return url, func(resource string, scopes ...string) string { return signFor("alice", resource, scopes...) }
}

// startIssuerOf is startIssuer. The function signs a JWT of anybody. The issuer also gives one to the person of a browser,
// by a code.
func startIssuerOf(t *testing.T) (url string, sign func(subject, resource string, scopes ...string) string) {
	t.Helper()
	key := clitest.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	signer := clitest.Must(jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil))
	var srv *httptest.Server
	var codes sync.Map // the request of a code, with its person
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any
		switch r.URL.Path {
		case "/keys":
			answer = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public()}}}
		case "/authorize":
			code := rand.Text()
			codes.Store(code, r)
			http.Redirect(w, r, r.FormValue("redirect_uri")+"?code="+code+"&state="+r.FormValue("state"), http.StatusFound)
			return
		case "/token":
			asked, isThere := codes.LoadAndDelete(r.FormValue("code"))
			if !isThere || asked.(*http.Request).FormValue("client_id") != r.FormValue("client_id") {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			answer = map[string]any{"token_type": "Bearer", "expires_in": 60,
				"access_token": sign(asked.(*http.Request).Header.Get(personHeader), r.FormValue("resource"))}
		default:
			answer = map[string]string{"issuer": srv.URL, "jwks_uri": srv.URL + "/keys", "authorization_endpoint": srv.URL + "/authorize", "token_endpoint": srv.URL + "/token"}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	srv.Config.SetKeepAlivesEnabled(false)
	t.Cleanup(srv.Close)
	sign = func(subject, resource string, scopes ...string) string {
		claims, _ := json.Marshal(map[string]any{"iss": srv.URL, "sub": subject, "aud": resource, "exp": time.Now().Unix() + 600, "scope": strings.Join(scopes, " ")})
		signed := clitest.Must(signer.Sign(claims))
		token, _ := signed.CompactSerialize()
		return token
	}
	return srv.URL, sign
}

func TestOAuth(t *testing.T) {
	t.Parallel()
	const static, base = "static-0123456789abcdef", "public-url: https://gw.example.com\noauth: {issuer: ISSUER}\n"
	issuer, sign := startIssuer(t)
	withIssuer := strings.ReplaceAll(base, "ISSUER", issuer)
	l := startLive(t, "servers: {a: {}, b: {}}\n")
	nobody, err := tryConnect(t, l.server("a"), "")
	ssetest.Must(t, err)
	sum := sha256.Sum256([]byte(static))
	l.write(t, "tokens", fmt.Sprintf("ops:sha256:%x\n", sum))
	l.write(t, "gw.yaml", withIssuer+"auth-tokens-file: {DIR}/tokens\nservers: {a: {}, b: {scopes: [x]}}\n")
	l.wantReload(t)
	_ = nobody.Wait()
	l.log.await(t, 1, "reason=revoked")

	token := sign("https://gw.example.com/a/mcp")
	for _, test := range []struct{ server, token, want string }{
		{"b", token, "its audience must be https://gw.example.com/b/mcp"},
		{"b", sign("https://gw.example.com/b/sse"), "the token lacks the scope x"},
		{"a", fmt.Sprintf("%x", sum), "the token is not a JWT"},
		{"a", "", "send Authorization: Bearer"},
	} {
		if _, body := ask(t, l.client, http.MethodPost, l.server(test.server), test.token); !strings.Contains(body, test.want) {
			t.Errorf("%s: got %s, want %s", test.server, body, test.want)
		}
	}
	at := strings.TrimSuffix(l.server("b"), "/b/mcp") + "/.well-known/oauth-protected-resource/b/mcp"
	wantStatus(t, l.client, at, "", http.StatusOK, `"resource":"https://gw.example.com/b/mcp"`, `"scopes_supported":["x"]`)
	wantStatus(t, l.client, at+"x", "", http.StatusNotFound)
	if code, _ := l.reload(t, token); code != http.StatusUnauthorized {
		t.Errorf("a token of the issuer makes an operator: got %d", code)
	}
	alice, err := tryConnect(t, l.server("a"), token)
	ssetest.Must(t, err)
	ops, err := tryConnect(t, l.server("b"), static)
	ssetest.Must(t, err)
	reload := func(content string) {
		t.Helper()
		l.write(t, "gw.yaml", content)
		if code, body := l.reload(t, static); code != http.StatusOK {
			t.Fatalf("reload: got %d %s", code, body)
		}
	}
	reload(withIssuer + "auth-tokens-file: {DIR}/tokens\nmax-connections: 7\nservers: {a: {}, b: {}}\n")
	echo(t, alice)
	echo(t, ops)
	other, signOther := startIssuer(t)
	reload(strings.ReplaceAll(base, "ISSUER", other) + "auth-tokens-file: {DIR}/tokens\nservers: {a: {}, b: {}}\n")
	l.log.await(t, 2, "reason=revoked") // the alice of another issuer is somebody else
	_, err = tryConnect(t, l.server("a"), signOther("https://gw.example.com/a/mcp"))
	ssetest.Must(t, err)
	echo(t, ops)
	reload("auth-tokens-file: {DIR}/tokens\nservers: {a: {}, b: {}}\n")
	l.log.await(t, 3, "reason=revoked")
	echo(t, ops)
	if log := l.log.String(); !strings.Contains(log, "principal=oauth:alice") || strings.Contains(log, "eyJ") {
		t.Errorf("the log has no principal, or a token:\n%s", log)
	}
}

// Where strangers reach the main address, its routes for operators need a token of the file.
func TestOAuthMakesNoOperators(t *testing.T) {
	t.Parallel()
	issuer, sign := startIssuer(t)
	l := &live{dir: t.TempDir(), client: newClient(t, &http.Transport{})}
	l.write(t, "gw.yaml", "public-url: https://gw.example.com\noauth: {issuer: "+issuer+"}\n")
	p := start(t, "--config", filepath.Join(l.dir, "gw.yaml"), "--addr", "127.0.0.1:0")
	for _, token := range []string{"", sign("https://gw.example.com/mcp")} {
		wantStatus(t, l.client, strings.TrimSuffix(p.url, "/mcp")+"/metrics", token, http.StatusUnauthorized, "operators need a token")
	}
}

// person is a client with a token, at any URL of the program.
type person struct {
	*live
	token    string
	progress chan struct{}
}

// connect returns a session over each transport. A call's progress goes to the channel of the person.
func (p person) connect(t *testing.T, server string) (both []*mcp.ClientSession) {
	t.Helper()
	http := newClient(t, &http.Transport{})
	http.Transport = withHeader{http.Transport, "Authorization", "Bearer " + p.token}
	for _, transport := range []mcp.Transport{
		&mcp.SSEClientTransport{Endpoint: p.server(server), HTTPClient: http},
		&mcp.StreamableClientTransport{Endpoint: p.server(server), HTTPClient: http},
	} {
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
			ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { p.progress <- struct{}{} },
		})
		session, err := client.Connect(t.Context(), transport, nil)
		ssetest.Must(t, err)
		t.Cleanup(func() { session.Close() })
		both = append(both, session)
	}
	return both
}

// withoutSession returns the names of the tools that a client of MCP 2026-07-28 is told.
func (p person) withoutSession(t *testing.T, server string) string {
	t.Helper()
	req := ssetest.Request(t.Context(), http.MethodPost, p.server(server), `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`,
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list", "Authorization", "Bearer "+p.token)
	res, err := p.client.Do(req)
	ssetest.Must(t, err)
	defer res.Body.Close()
	var names []string
	for _, found := range regexp.MustCompile(`"name":"(\w+__\w+)"`).FindAllStringSubmatch(string(clitest.Must(io.ReadAll(res.Body))), -1) {
		names = append(names, found[1])
	}
	return strings.Join(names, " ")
}

// wantTools checks the tools of a view in all kinds of clients: those of open sessions, and one without.
func (p person) wantTools(t *testing.T, view, want string, open ...*mcp.ClientSession) {
	t.Helper()
	for _, session := range open {
		ssetest.Want(t, "tools", toolsOf(t, session), want)
	}
	ssetest.Want(t, "tools without a session", p.withoutSession(t, view), want)
}

// sleepAt starts a long call in each session, waits until the server has begun with it, and returns a function that
// waits for the ends of the calls.
func (p person) sleepAt(t *testing.T, tool string, sessions []*mcp.ClientSession) (ends func() []error) {
	t.Helper()
	ended := make(chan error, len(sessions))
	for _, session := range sessions {
		params := &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"seconds": 60}}
		params.SetProgressToken(tool)
		go func() {
			_, err := session.CallTool(context.WithoutCancel(t.Context()), params)
			ended <- err
		}()
		<-p.progress
	}
	return func() (all []error) {
		for range sessions {
			all = append(all, <-ended)
		}
		return all
	}
}

// A token has the servers, and in views the tools, of its principal: over both transports and without a session, from
// the start and after each reload. A principal that loses a server loses its streams and calls at once, and keeps the
// rest.
func TestPrincipals(t *testing.T) {
	t.Parallel()
	const tokens = "alice:alice-0123456789abcdef\nbob:bob-0123456789abcdef\n"
	const file = "auth-tokens-file: {DIR}/tokens\noperators: [alice]\nservers: {open: {}, secret: {principals: %s}, none: {principals: []}}\n" +
		"views: {team: {servers: {open: {}, secret: {}, none: {}}}, private: {principals: ['al*'], servers: {open: {}, secret: {}}}}\n"
	l := startLive(t, "servers: {x: {}}\n", "--no-start-check")
	l.write(t, "tokens", tokens)
	l.write(t, "gw.yaml", fmt.Sprintf(file, "[alice]"))
	l.wantReload(t)
	alice, bob := person{l, "alice-0123456789abcdef", make(chan struct{}, 100)}, person{l, "bob-0123456789abcdef", nil}
	root := strings.TrimSuffix(l.server("x"), "x/mcp")
	const open, all = "open__echo open__sleep", "open__echo open__sleep secret__echo secret__sleep"

	for server, want := range map[string][3]int{"open": {401, 200, 200}, "secret": {401, 200, 403}, "none": {401, 403, 403}, "team": {401, 200, 200}, "private": {401, 200, 403}} {
		for i, token := range []string{"", alice.token, bob.token} {
			status, challenge := statusOf(t, l.client, l.server(server), token)
			if status != want[i] || (challenge != "") != (status == http.StatusUnauthorized) {
				t.Errorf("%s with the token %q: got %d and the challenge %q, want %d", server, token, status, challenge, want[i])
			}
		}
	}
	for token, want := range map[string]string{"": "/team/mcp, /open/mcp", bob.token: "/team/mcp, /open/mcp", alice.token: "/team/mcp, /private/mcp, /open/mcp, /secret/mcp"} {
		_, body := get(t, l.client, root, token)
		_, listed, _ := strings.Cut(body, "each at its own path: ")
		listed, _, _ = strings.Cut(listed, ";") // what follows is of the page
		if paths := strings.Split(listed, ", "); len(paths) != len(strings.Split(want, ", ")) || slices.ContainsFunc(paths, func(path string) bool { return !strings.Contains(want, path) }) {
			t.Errorf("the list for %q: got %s, want %s", token, listed, want)
		}
	}
	for _, path := range []string{"/status", "/connections"} {
		wantStatus(t, l.client, l.admin+path, alice.token, http.StatusOK)
		wantStatus(t, l.client, l.admin+path, bob.token, http.StatusForbidden, `"bob\" is no operator`)
	}
	wantStatus(t, l.client, l.admin+"/metrics", bob.token, http.StatusOK)
	if code, _ := l.reload(t, bob.token); code != http.StatusForbidden {
		t.Errorf("bob reloads: got %d", code)
	}

	ofAlice, ofBob, direct := alice.connect(t, "team"), bob.connect(t, "team"), alice.connect(t, "secret")
	alice.wantTools(t, "team", all, ofAlice...)
	bob.wantTools(t, "team", open, ofBob...)
	for _, session := range ofBob {
		say(t, session, "open__echo")
		if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "secret__echo"}); err == nil || !strings.Contains(err.Error(), `unknown tool "secret__echo"`) {
			t.Errorf("bob calls a tool that is not theirs: got %v", err)
		}
	}
	for _, session := range ofAlice {
		say(t, session, "secret__echo")
	}
	ends := alice.sleepAt(t, "secret__sleep", ofAlice)

	change := func(principals string) {
		t.Helper()
		l.write(t, "gw.yaml", fmt.Sprintf(file, principals))
		if code, body := l.reload(t, alice.token); code != http.StatusOK {
			t.Fatalf("reload: got %d %s", code, body)
		}
	}
	change("[bob]")
	for _, err := range ends() {
		if err == nil || !strings.Contains(err.Error(), "the session with secret was lost") {
			t.Errorf("a call at a server that alice has lost: got %v", err)
		}
	}
	_ = direct[0].Wait()
	if _, err := direct[1].ListTools(t.Context(), nil); err == nil {
		t.Error("a session with a server that alice has lost goes on")
	}
	alice.wantTools(t, "team", open, ofAlice...)
	bob.wantTools(t, "team", all, ofBob...)
	for _, session := range ofBob {
		say(t, session, "secret__echo")
	}
	for _, session := range ofAlice {
		say(t, session, "open__echo")
		if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "secret__echo"}); err == nil || !strings.Contains(err.Error(), `unknown tool "secret__echo"`) {
			t.Errorf("alice calls a tool that is lost: got %v", err)
		}
	}
	change("['*']")
	alice.wantTools(t, "team", all, ofAlice...)
	say(t, ofAlice[0], "secret__echo")
	echo(t, alice.connect(t, "secret")[1])
}

// A principal that loses a view by a reload loses its streams and sessions there, and keeps what else it may use. All
// others stay connected.
func TestViewThatIsLost(t *testing.T) {
	t.Parallel()
	const file = "auth-tokens-file: {DIR}/tokens\noperators: [bob]\nservers: {a: {}, b: {}}\n" +
		"views: {team: {principals: %s, servers: {a: {}, b: {}}}}\n"
	l := startLive(t, "servers: {x: {}}\n", "--no-start-check")
	l.write(t, "tokens", "alice:alice-0123456789abcdef\nbob:bob-0123456789abcdef\n")
	l.write(t, "gw.yaml", fmt.Sprintf(file, "[alice, bob]"))
	l.wantReload(t)
	alice, bob := person{l, "alice-0123456789abcdef", nil}, person{l, "bob-0123456789abcdef", nil}
	ofAlice, ofBob := alice.connect(t, "team"), bob.connect(t, "team")
	for _, session := range slices.Concat(ofAlice, ofBob) {
		say(t, session, "a__echo")
	}
	l.write(t, "gw.yaml", fmt.Sprintf(file, "[bob]"))
	if code, body := l.reload(t, bob.token); code != http.StatusOK {
		t.Fatalf("reload: got %d %s", code, body)
	}
	for i := range ofAlice {
		ssetest.WantText(t, "a connection that ends", l.log.await(t, i+1, "reason=revoked"), "server=team")
	}
	_ = ofAlice[0].Wait()
	if _, err := ofAlice[1].ListTools(t.Context(), nil); err == nil {
		t.Error("a session of a view that alice has lost goes on")
	}
	for server, want := range map[string]int{"team": http.StatusForbidden, "a": http.StatusOK} {
		status, _ := statusOf(t, l.client, l.server(server), alice.token)
		ssetest.Want(t, "alice at "+server, status, want)
	}
	for _, session := range ofBob {
		say(t, session, "b__echo")
	}
	ssetest.Want(t, "connections that have ended", strings.Count(l.log.String(), "reason=revoked"), 2)
}

// A principal of an issuer has its prefix: at a server, and in views, one is let in, and another one is not.
func TestPrincipalsOfAnIssuer(t *testing.T) {
	t.Parallel()
	issuer, sign := startIssuerOf(t)
	l := startLive(t, "servers: {x: {}}\n", "--no-start-check")
	l.write(t, "gw.yaml", "public-url: https://gw.example.com\noauth: {issuer: "+issuer+"}\n"+
		"servers: {open: {}, secret: {principals: ['oauth:alice']}}\nviews: {team: {servers: {open: {}, secret: {}}}}\n")
	l.wantReload(t)
	for subject, want := range map[string]struct {
		status int
		tools  string
	}{
		"alice": {http.StatusOK, "open__echo open__sleep secret__echo secret__sleep"},
		"bob":   {http.StatusForbidden, "open__echo open__sleep"},
	} {
		status, challenge := statusOf(t, l.client, l.server("secret"), sign(subject, "https://gw.example.com/secret/mcp"))
		ssetest.Want(t, "the status for "+subject, status, want.status)
		ssetest.Want(t, "the challenge for "+subject, challenge, "")
		at := person{live: l, token: sign(subject, "https://gw.example.com/team/mcp")}
		ssetest.Want(t, "the tools of "+subject, at.withoutSession(t, "team"), want.tools)
	}
}

// statusOf returns the status of a POST of a ping, and the challenge.
func statusOf(t *testing.T, client *http.Client, url, token string) (status int, challenge string) {
	t.Helper()
	header := []string{"Content-Type", "application/json"}
	if token != "" {
		header = append(header, "Authorization", "Bearer "+token)
	}
	res, err := client.Do(ssetest.Request(t.Context(), http.MethodPost, url, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, header...))
	ssetest.Must(t, err)
	_ = res.Body.Close()
	return res.StatusCode, res.Header.Get("WWW-Authenticate")
}

// withToken is a transport that sends the token that is in it now; over HTTP+SSE the stream may have another one.
type withToken struct {
	http.RoundTripper
	now, ofStream *string
}

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	token := *w.now
	if r.Method == http.MethodGet && w.ofStream != nil {
		token = *w.ofStream
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return w.RoundTripper.RoundTrip(r)
}

// A token of OAuth for a view has those servers whose scopes it has. The newest token of a session counts; over HTTP+SSE
// that of the stream does too. Tokens of the file have all. A reload that changes scopes costs nobody more than that.
func TestScopesInViews(t *testing.T) {
	t.Parallel()
	issuer, sign := startIssuer(t)
	const file = "public-url: https://gw.example.com\noauth: {issuer: %s}\nauth-tokens-file: {DIR}/tokens\n" +
		"servers: {a: {scopes: [a]}, b: {scopes: [%s]}, c: {}}\nviews: {team: {servers: {a: {}, b: {}, c: {}}}}\n"
	l := startLive(t, "servers: {x: {}}\n", "--no-start-check")
	l.write(t, "tokens", "ops:static-0123456789abcdef\n")
	l.write(t, "gw.yaml", fmt.Sprintf(file, issuer, "b"))
	l.wantReload(t)
	of := func(scopes ...string) string { return sign("https://gw.example.com/team/mcp", scopes...) }
	const ofA, ofB, ofC = "a__echo a__sleep", "b__echo b__sleep", "c__echo c__sleep"
	connect := func(now, ofStream *string) *mcp.ClientSession {
		t.Helper()
		http := newClient(t, &http.Transport{})
		http.Transport = withToken{http.Transport, now, ofStream}
		var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: l.server("team"), HTTPClient: http, DisableStandaloneSSE: true}
		if ofStream != nil {
			transport = &mcp.SSEClientTransport{Endpoint: l.server("team"), HTTPClient: http}
		}
		session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil)
		ssetest.Must(t, err)
		t.Cleanup(func() { session.Close() })
		return session
	}
	now := of("a")
	session := connect(&now, nil)
	for _, step := range []struct{ token, want string }{
		{of("a"), ofA + " " + ofC}, {of("b", "x"), ofB + " " + ofC}, {of("a", "b"), ofA + " " + ofB + " " + ofC}, {of(), ofC},
	} {
		now = step.token
		ssetest.Want(t, "tools by the newest token", toolsOf(t, session), step.want)
		ssetest.Want(t, "tools without a session", person{live: l, token: step.token}.withoutSession(t, "team"), step.want)
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "a__echo"}); err == nil || !strings.Contains(err.Error(), `unknown tool "a__echo"`) {
		t.Errorf("a tool that the newest token does not have: got %v", err)
	}
	for _, tokens := range [][2]string{{of("a", "b"), of("b")}, {of("b"), of("a", "b")}} {
		ssetest.Want(t, "tools over HTTP+SSE", toolsOf(t, connect(&tokens[0], &tokens[1])), ofB+" "+ofC)
	}
	static := "static-0123456789abcdef"
	ssetest.Want(t, "tools by a token of the file", toolsOf(t, connect(&static, nil)), ofA+" "+ofB+" "+ofC)
	now = of("a", "b")
	say(t, session, "a__echo")
	l.write(t, "gw.yaml", fmt.Sprintf(file, issuer, "z"))
	if code, body := l.reload(t, static); code != http.StatusOK {
		t.Fatalf("reload: got %d %s", code, body)
	}
	ssetest.Want(t, "tools after the reload", toolsOf(t, session), ofA+" "+ofC)
}
