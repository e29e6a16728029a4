package main

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

const (
	publicURL               = "https://gw.example.com"
	aliceToken, bobToken    = "alice-0123456789abcdef", "bob-0123456789abcdef"
	tokensOfBoth            = "alice:" + aliceToken + "\nbob:" + bobToken + "\n"
	ownLogins               = "public-url: " + publicURL + "\nauth-tokens-file: {DIR}/tokens\nservers:\n  notes: {url: URL/mcp, login: per-principal}\n"
	pageOfNotes, ticketName = publicURL + "/login/notes", "?ticket="
)

// startOwn runs a gateway at which each principal has a login of its own at the server.
func startOwn(t *testing.T, remote *protected, env map[string]string, file string) *live {
	t.Helper()
	l := &live{dir: t.TempDir(), client: newClient(t, &http.Transport{})}
	l.write(t, "tokens", tokensOfBoth)
	l.write(t, "gw.yaml", strings.ReplaceAll(file, "URL/", remote.URL+"/"))
	l.program = startWith(t, env, "--config", filepath.Join(l.dir, "gw.yaml"), "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0",
		"--initialization-timeout", "5m", "--log-level", "debug", "--no-start-check")
	return l
}

// surfer is the browser of a person, which reaches the gateway by its public address.
type surfer struct {
	t *testing.T
	*http.Client
	person string
}

// proxied sends what is for the public address to the gateway, as a proxy does.
type proxied struct {
	http.RoundTripper
	gateway, person string
}

func (p proxied) RoundTrip(r *http.Request) (*http.Response, error) {
	asked := r
	r = r.Clone(r.Context())
	if strings.HasPrefix(r.URL.String(), publicURL+"/") {
		to := clitest.Must(url.Parse(p.gateway))
		r.Host, r.URL.Scheme, r.URL.Host = r.URL.Host, to.Scheme, to.Host
	} else {
		r.Header.Set(personHeader, p.person)
	}
	resp, err := p.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Request = asked
	}
	return resp, err
}

func newSurfer(t *testing.T, l *live, person string) *surfer {
	t.Helper()
	client := newClient(t, &http.Transport{})
	client.Transport, client.Jar = proxied{client.Transport, l.server(""), person}, clitest.Must(cookiejar.New(nil))
	return &surfer{t, client, person}
}

// get opens an address, and returns the address and the page at its end.
func (s *surfer) get(address string) (status int, at, page string) {
	s.t.Helper()
	resp, err := s.Get(address)
	ssetest.Must(s.t, err)
	defer resp.Body.Close()
	return resp.StatusCode, resp.Request.URL.String(), string(clitest.Must(io.ReadAll(resp.Body)))
}

// post sends the form of a ticket's page, as a page of an origin has a browser do.
func (s *surfer) post(address, origin, token string) (status int, page string) {
	s.t.Helper()
	at, ticket, _ := strings.Cut(address, ticketName)
	form := url.Values{"ticket": {ticket}, "token": {token}}
	r := clitest.Must(http.NewRequestWithContext(s.t.Context(), http.MethodPost, at, strings.NewReader(form.Encode())))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	resp, err := s.Do(r)
	ssetest.Must(s.t, err)
	defer resp.Body.Close()
	return resp.StatusCode, string(clitest.Must(io.ReadAll(resp.Body)))
}

var refresh = regexp.MustCompile(`http-equiv="refresh" content="0;url=([^"]+)"`)

// consent opens the page of a ticket and sends its form. It returns the address at the issuer.
func (s *surfer) consent(link, token string) string {
	s.t.Helper()
	status, _, page := s.get(link)
	ssetest.Want(s.t, "status of the page", status, http.StatusOK)
	ssetest.WantText(s.t, "page", page, "needs your login at the server <strong>notes</strong>", `action="`+pageOfNotes+`"`)
	status, page = s.post(link, publicURL, token)
	ssetest.Want(s.t, "status of the consent", status, http.StatusOK)
	found := refresh.FindStringSubmatch(page)
	if found == nil {
		s.t.Fatalf("the page leads nowhere: %s", page)
	}
	return html.UnescapeString(found[1])
}

// logIn logs in by a link.
func (s *surfer) logIn(link, token string) {
	s.t.Helper()
	status, at, page := s.get(s.consent(link, token))
	ssetest.Want(s.t, "status of the last page", status, http.StatusOK)
	ssetest.Want(s.t, "last page", at, pageOfNotes+"/done")
	ssetest.WantText(s.t, "last page", page, "You are logged in.")
	if strings.Contains(page, "href") {
		s.t.Errorf("the last page has a link: %s", page)
	}
}

// call returns the text of a tool's answer.
func call(t *testing.T, session *mcp.ClientSession, tool string) string {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool})
	ssetest.Must(t, err)
	return result.Content[0].(*mcp.TextContent).Text
}

// linkOf returns the link to the page of a login in a text.
func linkOf(t *testing.T, text string) string {
	t.Helper()
	_, after, found := strings.Cut(text, pageOfNotes+ticketName)
	if !found {
		t.Fatalf("there is no link in: %s", text)
	}
	return pageOfNotes + ticketName + strings.Fields(after)[0]
}

// ask connects a client of a principal that is not logged in, and returns its link.
func (l *live) ask(t *testing.T, token string) (session *mcp.ClientSession, link string) {
	t.Helper()
	session, err := tryConnect(t, l.server("notes"), token)
	ssetest.Must(t, err)
	ssetest.Want(t, "tools before the login", toolsOf(t, session), "login")
	return session, linkOf(t, call(t, session, "login"))
}

// A principal logs in by the link that its client has got, and its client goes on in a session with the server.
func TestPrincipalLogsIn(t *testing.T) {
	t.Parallel()
	remote, env := newProtected(t), clitest.State(t)
	l := startOwn(t, remote, env, ownLogins)
	session, link := l.ask(t, aliceToken)
	for path, want := range map[string]string{"/readyz": `"status":"ready"`, "/metrics": "mcp_sse_login_needed{server=\"notes\"} 0\n"} {
		_, body := get(t, l.client, l.admin+path, aliceToken)
		ssetest.WantText(t, path, body, want)
	}
	newSurfer(t, l, "alice").logIn(link, aliceToken)
	awaitTools(t, session, "of_alice whoami")
	ssetest.Want(t, "who asks", call(t, session, "whoami"), "alice")
	kept := clitest.Must(filepath.Glob(filepath.Join(env["XDG_STATE_HOME"], "sse-server", "logins", "of-principals", "*.json")))
	ssetest.Want(t, "files", len(kept), 1)
	remote.wantNoSecret(t, "the file", string(clitest.Must(os.ReadFile(kept[0]))))
	l.stop()
	remote.wantNoSecret(t, "the log", l.log.String())
	if strings.Contains(l.log.String(), strings.TrimPrefix(link, pageOfNotes+ticketName)) {
		t.Errorf("the log has the link:\n%s", l.log.String())
	}
}

// A principal that has logged in with an account that the server refuses gets another link, and logs in by that.
func TestPrincipalWithAnAccountThatIsRefused(t *testing.T) {
	t.Parallel()
	remote := newProtected(t)
	remote.banned = "mallory"
	l := startOwn(t, remote, clitest.State(t), ownLogins)
	session, link := l.ask(t, aliceToken)
	newSurfer(t, l, "mallory").logIn(link, aliceToken)
	_, again := l.ask(t, aliceToken) // a client that comes after it
	if again == link {
		t.Fatal("the link is the one that was used")
	}
	newSurfer(t, l, "alice").logIn(again, aliceToken)
	awaitTools(t, session, "of_alice whoami")
	ssetest.Want(t, "who asks", call(t, session, "whoami"), "alice")
}

// wantReloadAs reloads with a token.
func (l *live) wantReloadAs(t *testing.T, token string) {
	t.Helper()
	code, body := l.reload(t, token)
	ssetest.Want(t, "status of the reload: "+body, code, http.StatusOK)
}

// restart ends the gateway, and starts it again with the same files.
func (l *live) restart(t *testing.T, env map[string]string) {
	t.Helper()
	l.stop()
	l.program = startWith(t, env, "--config", filepath.Join(l.dir, "gw.yaml"), "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0",
		"--initialization-timeout", "5m", "--log-level", "debug", "--no-start-check")
}

// wantAs checks that clients of all kinds act at the server as a person: over both transports, and without a session.
func (l *live) wantAs(t *testing.T, server, token, who string) {
	t.Helper()
	someone := person{live: l, token: token}
	for _, session := range someone.connect(t, server) {
		awaitTools(t, session, "of_"+who+" whoami")
		ssetest.Want(t, "who asks", call(t, session, "whoami"), who)
		ssetest.Must(t, session.Close())
	}
	body := someone.postModern(t, server, "tools/list", "")
	ssetest.WantText(t, "tools without a session", body, `"of_`+who+`"`)
	for _, other := range []string{"alice", "bob"} {
		if other != who && strings.Contains(body, other) {
			t.Errorf("%s is told of %s: %s", who, other, body)
		}
	}
	body = someone.postModern(t, server, "tools/call", `,"name":"whoami","arguments":{}`)
	ssetest.WantText(t, "a call without a session", body, `"text":"`+who+`"`)
}

// postModern sends a request of a client of MCP 2026-07-28, and returns the answer.
func (p person) postModern(t *testing.T, server, method, params string) string {
	t.Helper()
	return p.postModernAs(t, server, method, params, "{}")
}

// postModernAs is postModern of a client with these capabilities.
func (p person) postModernAs(t *testing.T, server, method, params, capabilities string) string {
	t.Helper()
	header := []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Authorization", "Bearer " + p.token}
	if _, name, ok := strings.Cut(params, `"name":"`); ok {
		name, _, _ = strings.Cut(name, `"`)
		header = append(header, "Mcp-Name", name)
	}
	req := ssetest.Request(t.Context(), http.MethodPost, p.server(server), `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},`+
		`"io.modelcontextprotocol/clientCapabilities":`+capabilities+`}`+params+`}}`, header...)
	res, err := p.client.Do(req)
	ssetest.Must(t, err)
	defer res.Body.Close()
	return string(clitest.Must(io.ReadAll(res.Body)))
}

// state returns the state that the page of a server shows to a token.
func (l *live) state(t *testing.T, server, token string) string {
	t.Helper()
	req := ssetest.Request(t.Context(), http.MethodGet, l.server(server)+"?page=state.json", "", "Authorization", "Bearer "+token)
	req.Header.Set("Accept", "application/json")
	res, err := l.client.Do(req)
	ssetest.Must(t, err)
	defer res.Body.Close()
	return string(clitest.Must(io.ReadAll(res.Body)))
}

// Two principals never cross: each acts at the server with its own login alone, also when both begin at once, after a
// renewal, a reload and a restart, and in a view. Once the logins have ended, memory tells each what its own said.
func TestTwoPrincipalsNeverCross(t *testing.T) {
	t.Parallel()
	remote, env := newProtected(t), clitest.State(t)
	l := startOwn(t, remote, env, ownLogins+"views:\n  all: {servers: {notes: {}}}\n")
	ofAlice, linkOfAlice := l.ask(t, aliceToken)
	ofBob, linkOfBob := l.ask(t, bobToken)
	alice, bob := newSurfer(t, l, "alice"), newSurfer(t, l, "bob")
	toAlice, toBob := alice.consent(linkOfAlice, aliceToken), bob.consent(linkOfBob, bobToken)
	bob.get(toBob)
	awaitTools(t, ofBob, "of_bob whoami")
	ssetest.Want(t, "tools of alice, who has not logged in", toolsOf(t, ofAlice), "login")
	_, _, page := alice.get(toAlice)
	ssetest.WantText(t, "last page of alice", page, "You are logged in.")
	awaitTools(t, ofAlice, "of_alice whoami")
	wantBoth := func(when string) {
		t.Helper()
		t.Run(when, func(t *testing.T) {
			for token, who := range map[string]string{aliceToken: "alice", bobToken: "bob"} {
				t.Run(who, func(t *testing.T) { // both at once
					t.Parallel()
					for range 2 {
						l.wantAs(t, "notes", token, who)
						l.wantAs(t, "all", token, who)
					}
				})
			}
		})
		for token, other := range map[string]string{aliceToken: "bob", bobToken: "alice"} {
			for _, server := range []string{"notes", "all"} {
				state := l.state(t, server, token)
				ssetest.WantText(t, "state of "+server, state, `"state"`)
				if strings.Contains(state, other) {
					t.Errorf("the state of %s tells of %s: %s", server, other, state)
				}
			}
		}
		if t.Failed() {
			t.Fatalf("%s:\n%s", when, l.log.String())
		}
	}
	wantBoth("at first")
	remote.mu.Lock()
	clear(remote.tokens) // each is renewed at a 401
	remote.mu.Unlock()
	wantBoth("after a renewal")
	l.wantReloadAs(t, bobToken)
	wantBoth("after a reload")
	l.restart(t, env)
	wantBoth("after a restart")
	remote.mu.Lock()
	remote.ended = true
	clear(remote.tokens)
	remote.mu.Unlock()
	for token, who := range map[string]string{aliceToken: "alice", bobToken: "bob"} {
		someone := person{live: l, token: token}
		for i, session := range someone.connect(t, "notes") {
			if i == 0 { // the other one goes on in a session of before
				awaitTools(t, session, "of_"+who+" whoami")
			}
			link := linkOf(t, call(t, session, "whoami"))
			_, _, page := newSurfer(t, l, who).get(link)
			ssetest.WantText(t, "page", page, "needs your login")
			status, _ := newSurfer(t, l, who).post(link, publicURL, map[string]string{aliceToken: bobToken, bobToken: aliceToken}[token])
			ssetest.Want(t, "status with the token of the other one", status, http.StatusForbidden)
		}
	}
	l.stop()
	remote.wantNoSecret(t, "the log", l.log.String())
	for _, file := range clitest.Must(filepath.Glob(filepath.Join(env["XDG_STATE_HOME"], "sse-server", "logins", "*", "*"))) {
		if data, err := os.ReadFile(file); err == nil {
			remote.wantNoSecret(t, file, string(data))
		}
	}
}

// A principal that is removed loses its login, at a reload and at a start, and the others keep theirs.
func TestRemovedPrincipalLosesItsLogin(t *testing.T) {
	t.Parallel()
	for _, again := range map[string]func(*live, map[string]string){
		"reload": func(l *live, _ map[string]string) { l.wantReloadAs(t, bobToken) },
		"start":  func(l *live, env map[string]string) { l.restart(t, env) },
	} {
		remote, env := newProtected(t), clitest.State(t)
		l := startOwn(t, remote, env, ownLogins)
		for token, who := range map[string]string{aliceToken: "alice", bobToken: "bob"} {
			_, link := l.ask(t, token)
			newSurfer(t, l, who).logIn(link, token)
		}
		l.write(t, "tokens", "bob:"+bobToken+"\n")
		again(l, env)
		l.log.await(t, 1, "login of a principal forgotten: it is no more")
		l.write(t, "tokens", tokensOfBoth)
		l.wantReloadAs(t, bobToken)
		_, _ = l.ask(t, aliceToken)
		l.wantAs(t, "notes", bobToken, "bob")
		l.stop()
	}
}

// A principal that is removed while the gateway has another public-url, or none, is not found again by whoever has its
// name and the public-url later.
func TestRemovedPrincipalDoesNotComeBack(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(string) string{
		"another": func(file string) string { return strings.Replace(file, publicURL, "https://other.example.com", 1) },
		"none": func(file string) string {
			return strings.NewReplacer("public-url: "+publicURL+"\n", "", ", login: per-principal", "").Replace(file)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			remote, env := newProtected(t), clitest.State(t)
			l := startOwn(t, remote, env, ownLogins)
			_, link := l.ask(t, aliceToken)
			newSurfer(t, l, "alice").logIn(link, aliceToken)
			file := strings.ReplaceAll(ownLogins, "URL/", remote.URL+"/")
			l.write(t, "gw.yaml", change(file))
			l.write(t, "tokens", "bob:"+bobToken+"\n")
			l.restart(t, env)
			l.write(t, "gw.yaml", file)
			l.write(t, "tokens", "alice:"+bobToken+"\n") // somebody else
			l.restart(t, env)
			_, _ = l.ask(t, bobToken)
			l.stop()
			remote.mu.Lock()
			defer remote.mu.Unlock()
			ssetest.Want(t, "tokens that are good at the issuer", len(remote.tokens), 0)
		})
	}
}

// The commands say which principals are logged in, and end the login of one.
func TestCommandsKnowPrincipals(t *testing.T) {
	t.Parallel()
	remote, env := newProtected(t), clitest.State(t)
	l := startOwn(t, remote, env, ownLogins)
	for token, who := range map[string]string{aliceToken: "alice", bobToken: "bob"} {
		_, link := l.ask(t, token)
		newSurfer(t, l, who).logIn(link, token)
	}
	run := func(args ...string) string {
		p := launchWith(t, env, args...)
		p.wantExit(exit.OK)
		remote.wantNoSecret(t, "what is printed", p.out.String()+p.log.String())
		return p.out.String()
	}
	ssetest.WantText(t, "logins", run("logins"), remote.URL+"/mcp\n  of the principal alice, at "+pageOfNotes+"\n  by "+remote.URL+" since ", "of the principal bob")
	ssetest.WantText(t, "logins --json", run("logins", "--json"), `"principal": "alice"`, `"page": "`+pageOfNotes+`"`)
	ssetest.WantText(t, "logout of all", run("logout", remote.URL+"/mcp"), "Nobody is logged in at", "The principal alice has a login of its own there, which --principal ends.")
	ssetest.WantText(t, "logout", run("logout", remote.URL+"/mcp", "--principal", "alice"), "alice is logged out of "+remote.URL+"/mcp: "+remote.URL+" has ended the login")
	ssetest.WantText(t, "logout again", run("logout", remote.URL+"/mcp", "--principal", "alice"), "alice is not logged in at")
	if left := run("logins"); strings.Contains(left, "alice") || !strings.Contains(left, "bob") {
		t.Errorf("left: %s", left)
	}
	_, _ = l.ask(t, aliceToken)
}

// The logout of a principal deletes no login that the key of ids does not open, unless it is told to: the issuer could not
// be told any more.
func TestLogoutOfAPrincipalNeedsTheKey(t *testing.T) {
	t.Parallel()
	remote, env := newProtected(t), clitest.State(t)
	key, other := clitest.WriteFile(t, "key", strings.Repeat("k", 64)+"\n"), clitest.WriteFile(t, "other", strings.Repeat("o", 64)+"\n")
	l := startOwn(t, remote, env, "id-key-file: "+key+"\n"+ownLogins)
	logIn := func() {
		t.Helper()
		_, link := l.ask(t, aliceToken)
		newSurfer(t, l, "alice").logIn(link, aliceToken)
	}
	logIn()
	const ended, stays = "has ended the login", "stays: this key of ids does not open it"
	for _, c := range []struct {
		args  string
		code  int
		want  string
		again bool // somebody logs in before
	}{
		{args: "URL/mcp --principal alice", code: exit.Failure, want: stays},
		{args: "URL/mcp --principal alice --id-key-file " + other, code: exit.Failure, want: stays},
		{args: "URL/mcp --forget", code: exit.Config, want: "has no effect without --principal"},
		{args: "URL/mcp --principal alice --id-key-file " + key, want: ended},
		{args: "notes --principal alice --config " + filepath.Join(l.dir, "gw.yaml"), want: ended, again: true},
		{args: "URL/mcp --principal alice --forget", want: "The issuer was not told", again: true},
		{args: "URL/mcp --principal alice", want: "alice is not logged in at"},
	} {
		if c.again {
			logIn()
		}
		p := launchWith(t, env, append([]string{"logout"}, strings.Fields(strings.ReplaceAll(c.args, "URL/", remote.URL+"/"))...)...)
		p.wantExit(c.code)
		ssetest.WantText(t, c.args, p.out.String()+p.log.String(), c.want)
	}
}

// A principal gets its link in the shape that its client understands: as text, by the error -32042 in a session, and by
// input_required without one.
func TestLinkOfAPrincipalInEachShape(t *testing.T) {
	t.Parallel()
	l := startOwn(t, newProtected(t), clitest.State(t), ownLogins)
	someone := person{live: l, token: aliceToken}
	const visits = `{"elicitation":{"url":{}}}`
	ssetest.WantText(t, "without a session", someone.postModernAs(t, "notes", "tools/call", `,"name":"whoami","arguments":{}`, visits),
		`"resultType":"input_required"`, `"url":"`+pageOfNotes+ticketName)
	ssetest.WantText(t, "without a session, as text", someone.postModern(t, "notes", "tools/call", `,"name":"whoami","arguments":{}`),
		`"isError":true`, "Log in at "+pageOfNotes+ticketName)
	client := newClient(t, &http.Transport{})
	post := func(session, body string) (string, string) {
		req := ssetest.Request(t.Context(), http.MethodPost, l.server("notes"), body, "Authorization", "Bearer "+aliceToken)
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		res, err := client.Do(req)
		ssetest.Must(t, err)
		defer res.Body.Close()
		return res.Header.Get("Mcp-Session-Id"), string(clitest.Must(io.ReadAll(res.Body)))
	}
	session, _ := post("", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":`+visits+`,"clientInfo":{"name":"c","version":"1"}}}`)
	_, answer := post(session, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"whoami","arguments":{}}}`)
	ssetest.WantText(t, "in a session", answer, `"code":-32042`, `"url":"`+pageOfNotes+ticketName)
}
