//go:build all

package e2e

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// secretOf matches a line of clients/provider.mjs with something that nobody else may see.
var secretOf = regexp.MustCompile(`(?m)^secret (\S+)$`)

// processList returns the arguments of all processes from now on, until the returned function is called.
func processList(t *testing.T) (stop func() string) {
	t.Helper()
	ended, seen, done := make(chan struct{}), map[string]bool{}, make(chan struct{})
	go func() {
		defer close(done)
		for {
			entries, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			for _, entry := range entries {
				if arguments, err := os.ReadFile(entry); err == nil {
					seen[strings.ReplaceAll(string(arguments), "\x00", " ")] = true
				}
			}
			select {
			case <-ended:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	stop = sync.OnceValue(func() string {
		close(ended)
		<-done
		return strings.Join(slices.Collect(maps.Keys(seen)), "\n")
	})
	t.Cleanup(func() { stop() })
	return stop
}

// onlooker has what others than the program itself may see of a login, by where that is.
type onlooker struct {
	t         *testing.T
	seen      map[string]string
	processes func() string
	traces    *output
}

// lookOn notes the processes and the traces of a test from now on.
func lookOn(t *testing.T) *onlooker {
	t.Helper()
	o := &onlooker{t: t, seen: map[string]string{}, traces: &output{}}
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = o.traces.Write(body) // protobuf has texts as they are
	}))
	t.Cleanup(collector.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	o.processes = processList(t)
	return o
}

// remember has a program keep what a server says to the login.
func (o *onlooker) remember(server string) {
	o.t.Helper()
	a := startAgent(o.t, "--url", server)
	a.awaitTools(o.t, "echo")
	ssetest.Must(o.t, a.Close())
	o.seen["the log of a program of one client"] = a.log.String()
}

// lookAt notes what a gateway serves: to its operator, and as the page in the browser at an address. It notes all files
// too, but those whose place is to have secrets. At least one of them must be in a folder whose name ends so.
func (o *onlooker) lookAt(when, folder string, g *gateway, client *http.Client, page, authorization string) {
	o.t.Helper()
	for _, at := range []string{
		g.admin + "/metrics", g.admin + "/status", g.admin + "/connections", g.admin + "/readyz", page, page + "?page=state.json",
	} {
		req, err := http.NewRequestWithContext(within(o.t), http.MethodGet, at, nil)
		ssetest.Must(o.t, err)
		req.Header.Set("Accept", "text/html")
		req.Header.Set("Authorization", authorization)
		resp, err := client.Do(req)
		ssetest.Must(o.t, err)
		body, err := io.ReadAll(resp.Body)
		ssetest.Must(o.t, err)
		resp.Body.Close()
		if !strings.HasSuffix(at, "/readyz") {
			ssetest.Want(o.t, "status of "+at, resp.StatusCode, http.StatusOK)
		}
		o.seen[at+" "+when] = fmt.Sprint(resp.Header, string(body))
	}
	found := 0
	ssetest.Must(o.t, filepath.WalkDir(filepath.Join(ssetest.StateDir(o.t), "sse-server"), func(path string, d fs.DirEntry, err error) error {
		at := filepath.Dir(path)
		isSecret := strings.HasSuffix(at, "logins") && strings.HasSuffix(path, ".json") || filepath.Base(path) == keyFile
		var data []byte
		if err == nil && !d.IsDir() && !isSecret {
			data, err = os.ReadFile(path)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // a program has deleted it meanwhile
			return nil
		case err != nil:
			return err
		}
		o.seen[path+" "+when] = string(data)
		if strings.HasSuffix(at, folder) && len(data) > 0 {
			found++
		}
		return nil
	}))
	if found == 0 {
		o.t.Errorf("%s there is no file in a folder …%s", when, folder)
	}
}

// run runs sse-server to its end, and notes what it prints.
func (o *onlooker) run(args ...string) {
	o.t.Helper()
	cmd := exec.Command(built(o.t, "sse-server"), args...)
	cmd.Env = ssetest.WithState(o.t)
	out, err := cmd.CombinedOutput()
	if err != nil {
		o.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	o.seen[strings.Join(args, " ")] = string(out)
}

// noteGateway notes what a gateway that has ended has printed and logged.
func (o *onlooker) noteGateway(g *gateway) {
	o.seen["the log of the gateway"], o.seen["what it prints"] = g.log.String(), g.out.String()
	ssetest.WantText(o.t, "the log of the gateway", o.seen["the log of the gateway"], `"level":"DEBUG"`)
}

// secretsOf returns the codes, verifiers and tokens that clients/provider.mjs has seen.
func secretsOf(issuer *program) (all []string) {
	for _, found := range secretOf.FindAllStringSubmatch(issuer.log.String(), -1) {
		all = append(all, found[1])
	}
	return all
}

// wantNone checks that nothing has a secret, of which there are at least so many.
func (o *onlooker) wantNone(atLeast int, secrets ...string) {
	o.t.Helper()
	o.seen["the process list"], o.seen["the traces"] = o.processes(), o.traces.String()
	ssetest.WantText(o.t, "the traces", o.seen["the traces"], "tools/call echo")
	if len(secrets) < atLeast {
		o.t.Errorf("the issuer has seen %d secrets", len(secrets))
	}
	for _, secret := range secrets {
		if len(secret) < 16 {
			o.t.Errorf("%q is no secret", secret)
		}
		for where, text := range o.seen {
			if strings.Contains(text, secret) {
				o.t.Errorf("%s has the secret %.6s…", where, secret)
			}
		}
	}
}

// wantRefreshed has the only login of a test refreshed by a call.
func wantRefreshed(t *testing.T, session *mcp.ClientSession) {
	t.Helper()
	expireLogin(t)
	_, kept := keptLogin(t)
	was := kept["accessToken"]
	text, _ := callEcho(t, session)
	ssetest.Want(t, "a call with the refreshed login", text, "hi")
	if _, kept = keptLogin(t); kept["accessToken"] == was {
		t.Error("the login is not refreshed")
	}
}

// No token, code or verifier is in a log, an error, a metric, a trace, an address or text of a page, the process list or
// what is remembered: not at the login, a refresh, its end, or a logout.
func TestNobodySeesASecretOfALogin(t *testing.T) {
	o := lookOn(t)
	issuer := startProgram(t, nil, node(t), "provider.mjs")
	_, base := startProtected(t, issuer.url, "")
	server := base + "/jwt/mcp"
	script, pages := newBrowser(t)
	t.Setenv("BROWSER", script)

	a := startAgent(t, "--url", server, "--log-level", "debug")
	a.awaitTools(t, "echo")
	o.remember(server)
	g := startGateway(t, "--url", server)
	session := connectSDK(t, g.url)
	text, _ := callEcho(t, session)
	ssetest.Want(t, "a call with the login", text, "hi")
	o.lookAt("with the login", ".said", g, newHTTP(t), g.url, "")
	wantRefreshed(t, session)
	o.run("logins")
	o.run("logins", "--json")

	endLogin(t)
	text, isError := callEcho(t, session)
	o.seen["a call after the end"] = text
	ssetest.Want(t, "a call after the end fails", isError, true)
	o.lookAt("after the end", ".said", g, newHTTP(t), g.url, "")
	needed, _ := g.metric("mcp_sse_login_needed")
	ssetest.Want(t, "mcp_sse_login_needed", needed, 1)
	o.run("logout", server)
	_ = session.Close()
	_ = a.Close()
	g.stop()
	o.noteGateway(g)
	o.seen["the last page"], o.seen["the log of stdio"] = strings.Join(pages(), "\n"), a.log.String()
	o.wantNone(7, secretsOf(issuer)...) // code, verifier, two tokens; a refresh token, and two tokens for it
	ssetest.WantText(t, "the last page", o.seen["the last page"], "200 http://127.0.0.1:", "/done")
	ssetest.WantText(t, "the process list", o.seen["the process list"], "follow.mjs http://127.0.0.1:", "/start/")
}

// It is the same where a person types a code on another device, whose device code is a secret too.
func TestNobodySeesASecretOfALoginOnAnotherDevice(t *testing.T) {
	o := lookOn(t)
	issuer := startProgram(t, nil, node(t), "provider.mjs", "device")
	_, base := startProtected(t, issuer.url, "")
	server := base + "/jwt/mcp"
	p := logInOnAnotherDevice(t, server)
	o.seen["what login prints"], o.seen["the log of login"] = p.out.String(), p.log.String()
	o.remember(server)
	g := startGateway(t, "--url", server)
	session := connectSDK(t, g.url)
	wantRefreshed(t, session)
	o.lookAt("with the login", ".said", g, newHTTP(t), g.url, "")
	o.run("logins", "--json")
	endLogin(t)
	text, isError := callEcho(t, session)
	ssetest.Want(t, "a call after the end fails", isError, true)
	o.seen["a call after the end"] = text
	o.lookAt("after the end", ".said", g, newHTTP(t), g.url, "")
	o.run("logout", server)
	_ = session.Close()
	g.stop()
	o.noteGateway(g)
	o.wantNone(6, secretsOf(issuer)...) // device code, two tokens; a refresh token, and two tokens for it
	ssetest.WantText(t, "the process list", o.seen["the process list"], "sse-server login "+server)
}

// keyFile has the key of ids, from which the key is derived that seals the logins of principals.
const keyFile = "id-key"

// Of the logins of principals the links, the cookies, the tokens of the gateway and the key are secrets too, and so is
// what a principal of the gateway's issuer shows there. Their files have none: not after a refresh, nor after the end.
func TestNobodySeesASecretOfAPrincipal(t *testing.T) {
	for name, isOfIssuer := range map[string]bool{"of the file of tokens": false, "of an issuer": true} {
		t.Run(name, func(t *testing.T) {
			o := lookOn(t)
			issuer := startRotating(t)
			more, who := "auth-tokens-file: "+writeTokensOfTwo(t)+"\noperators: [alice]\n", "alice"
			proofs := func() []string { return nil }
			if isOfIssuer {
				tokens := startProgram(t, nil, node(t), "provider.mjs")
				more += "oauth: {issuer: " + strconv.Quote(tokens.url) + ", page-client-id: page}\nscopes: [mcp]\n"
				who = tokenOf(t, tokens.url, notesURL)
				proofs = func() []string { return secretsOf(tokens) }
			}
			g := startGateway(t, "--config", fileOfOwnLoginsAt(t, issuer.URL+"/mcp", more))
			g.url = "http://" + g.awaitMatch("the address", &g.log, regexp.MustCompile(`"addr":"([^"]+)"`)) + "/notes/mcp"
			got := logInByPage(t, g, who)
			o.seen["the page that leads on"], o.seen["the last page"] = got.onward, got.last
			session := connectAs(t, g, who)
			text, _ := callEcho(t, session)
			ssetest.Want(t, "a call with the login", text, "hi")
			operator := publicClient(t, g, tokensOfTwo["alice"])
			o.lookAt("with the login", "of-principals", g, operator, notesURL, "Bearer "+tokensOfTwo["alice"])
			o.run("logins")
			o.run("logins", "--json")

			issuer.forget(false)
			text, _ = callEcho(t, session)
			ssetest.Want(t, "a call with the refreshed login", text, "hi")
			ssetest.Want(t, "refreshes", issuer.renewed(), 1)
			issuer.forget(true)
			text, isError := callEcho(t, session)
			ssetest.Want(t, "a call after the end fails", isError, true)
			next := pageLink.FindStringSubmatch(text)
			if next == nil {
				t.Fatalf("there is no link in %q", text)
			}
			o.seen["a call after the end"] = strings.ReplaceAll(text, next[1], "")
			o.lookAt("after the end", "of-principals", g, operator, notesURL, "Bearer "+tokensOfTwo["alice"])
			resp, body := post(t, g.url, "tools/list", "Authorization", "Bearer "+tokensOfTwo["alice"]+"x")
			ssetest.Want(t, "status with a wrong token", resp.StatusCode, http.StatusUnauthorized)
			o.seen["an answer to a wrong token"] = fmt.Sprint(resp.Header, body)
			o.run("logins", "--json")
			_ = session.Close()
			g.stop()
			o.noteGateway(g)
			key, err := os.ReadFile(filepath.Join(ssetest.StateDir(t), "sse-server", keyFile))
			ssetest.Must(t, err)
			if isOfIssuer { // code, verifier and two tokens: of the client, and of the proof
				ssetest.Want(t, "secrets of the gateway's issuer", len(proofs()), 8)
				ssetest.Want(t, "cookies", len(got.cookies), 2)
			}
			// Code, verifier, two tokens; a refresh token, and two tokens for it; and these.
			o.wantNone(13, slices.Concat(issuer.seen(), proofs(), got.cookies, []string{got.ticket, next[1],
				tokensOfTwo["alice"], tokensOfTwo["bob"], strings.TrimSpace(string(key))})...)
		})
	}
}
