package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// get returns the status, and the protocol and the body, of the answer to a GET.
func get(t *testing.T, client *http.Client, url, token string) (int, string) {
	t.Helper()
	resp, body := ask(t, client, http.MethodGet, url, token)
	return resp.StatusCode, resp.Proto + " " + body
}

// wantStatus checks the status of the answer to a GET, and that its body has these parts.
func wantStatus(t *testing.T, client *http.Client, url, token string, want int, parts ...string) {
	t.Helper()
	code, body := get(t, client, url, token)
	ssetest.Want(t, "status of "+url, code, want)
	ssetest.WantText(t, "answer of "+url, body, parts...)
}

// ask sends a request, with a token unless that is "", and returns the answer and its body.
func ask(t *testing.T, client *http.Client, method, url, token string) (*http.Response, string) {
	t.Helper()
	req := clitest.Must(http.NewRequestWithContext(t.Context(), method, url, nil))
	req.Header.Set("Accept", "text/event-stream")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	ssetest.Must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ssetest.Must(t, err)
	return resp, string(body)
}

func newClient(t *testing.T, transport *http.Transport) *http.Client {
	t.Helper()
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestServeAndStop(t *testing.T) {
	t.Parallel()
	p := start(t, "--addr", "127.0.0.1:0", "--shutdown-timeout", "2s")
	if strings.HasSuffix(p.base(), ":0") || !strings.Contains(p.out.String(), "\n    "+p.url+"\n") {
		t.Errorf("stdout lacks the URL with the real port:\n%s", p.out.String())
	}
	client := newClient(t, &http.Transport{})
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		wantStatus(t, client, p.base()+path, "", http.StatusOK)
	}
	wantStatus(t, client, p.base()+"/connections", "", http.StatusNotFound)
	stream := ssetest.Open(t, client, p.url, nil)
	p.signals <- syscall.SIGTERM
	p.wantExit(exit.OK)
	if _, err := stream.Until("what never comes"); err != io.EOF {
		t.Errorf("the stream: got %v, want an orderly end", err)
	}
	if warnings := strings.Count(p.log.String(), "level=WARN"); warnings != 1 || !strings.Contains(p.log.String(), "path=/connections") { // that of the 404
		t.Errorf("an idle stream was no reason for a warning:\n%s", p.log.String())
	}
}

// The first command that is printed calls a tool, and the log says so when the connection
// ends.
func TestFirstCommand(t *testing.T) {
	t.Parallel()
	p := start(t, "--addr", "127.0.0.1:0")
	command := regexp.MustCompile(`(?m)^curl (\S+) -H '([^']*)' -d '([^']*)'$`).FindStringSubmatch(p.out.String())
	if command == nil || command[1] != p.url {
		t.Fatalf("no command for %s in\n%s", p.url, p.out.String())
	}
	name, value, _ := strings.Cut(command[2], ": ")
	req := ssetest.Request(t.Context(), http.MethodPost, command[1], command[3], "Content-Type", "", name, value, "Accept", "*/*") // as curl
	resp, err := newClient(t, &http.Transport{}).Do(req)
	ssetest.Must(t, err)
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || !strings.HasPrefix(string(body), `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hi"}]`) {
		t.Errorf("got %s, %v", body, err)
	}
	p.stop()
	log := p.log.String()
	if !strings.Contains(log, " requests=1 errors=0 ") || strings.Contains(log, "principal=") || strings.Contains(log, "level=WARN") {
		t.Errorf("want requests=1 errors=0, and nothing empty, in\n%s", log)
	}
}

func TestAdminAddress(t *testing.T) {
	p := start(t, "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0")
	client := newClient(t, &http.Transport{})
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/connections", "/status"} {
		wantStatus(t, client, p.admin+path, "", http.StatusOK)
		wantStatus(t, client, p.base()+path, "", http.StatusNotFound, "admin-addr: "+p.admin+path)
	}
	wantStatus(t, client, p.admin+"/sse", "", http.StatusNotFound)
	alone := start(t, "--addr", "127.0.0.1:0")
	for _, path := range []string{"/connections", "/status", reloadPath} {
		wantStatus(t, client, alone.base()+path, "", http.StatusNotFound, path+" is served with --admin-addr alone")
	}
}

func TestTokens401(t *testing.T) {
	const token = "0123456789abcdef"
	path := clitest.WriteFile(t, "tokens", "alice:"+token+"\n")
	p := start(t, "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--auth-tokens-file", path)
	client := newClient(t, &http.Transport{})
	for url, want := range map[string]int{
		p.url: 401, p.admin + "/metrics": 401, p.admin + "/connections": 401, p.admin + "/status": 401,
		p.admin + "/healthz": 200, p.admin + "/readyz": 200,
	} {
		wantStatus(t, client, url, "", want)
		wantStatus(t, client, url, "wrong-0123456789", want)
	}
	for _, path := range []string{"/metrics", "/connections", "/status"} {
		wantStatus(t, client, p.admin+path, token, http.StatusOK)
	}
	// A browser asks for a password if it is told to, and sends no bearer token.
	for _, tc := range []struct {
		path, password string
		want           int
	}{
		{"/status", "", 401}, {"/status", "wrong", 401}, {"/status", token, 200}, {"/status/style.css", token, 200},
		{"/status/events", "wrong", 401}, {"/connections", token, 401},
	} {
		req := clitest.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, p.admin+tc.path, nil))
		req.SetBasicAuth("anyone", tc.password)
		resp, err := client.Do(req)
		ssetest.Must(t, err)
		_ = resp.Body.Close()
		challenges := strings.Join(resp.Header.Values("WWW-Authenticate"), ", ")
		if resp.StatusCode != tc.want || strings.Contains(challenges, "Basic ") != (tc.want == 401 && strings.HasPrefix(tc.path, "/status")) {
			t.Errorf("%s with the password %q: got %d and %q, want %d", tc.path, tc.password, resp.StatusCode, challenges, tc.want)
		}
	}
	together := start(t, "--addr", "127.0.0.1:0", "--auth-tokens-file", path)
	wantStatus(t, client, together.base()+"/metrics", "", http.StatusUnauthorized)
	if strings.Contains(p.out.String()+p.log.String(), token) {
		t.Error("the token is in the output")
	}
}

func TestProtocols(t *testing.T) {
	t.Parallel()
	made := newCertificate(t)
	cert, key := clitest.WriteFile(t, "cert.pem", made.cert), clitest.WriteFile(t, "key.pem", made.key)
	h2c := new(http.Protocols)
	h2c.SetUnencryptedHTTP2(true)
	for name, tc := range map[string]struct {
		args      []string
		transport *http.Transport
		want      string
	}{
		"HTTP1": {nil, &http.Transport{}, "HTTP/1.1"},
		"h2c":   {nil, &http.Transport{Protocols: h2c}, "HTTP/2.0"},
		"TLS": {[]string{"--tls-cert", cert, "--tls-key", key},
			&http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}, "HTTP/2.0"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, append([]string{"--addr", "127.0.0.1:0"}, tc.args...)...)
			if name == "TLS" && !strings.HasPrefix(p.url, "https://") {
				t.Errorf("got %s, want https", p.url)
			}
			client := newClient(t, tc.transport)
			code, body := get(t, client, p.base()+"/healthz", "")
			if code != http.StatusOK || !strings.HasPrefix(body, tc.want) {
				t.Errorf("got %d %s, want 200 over %s", code, body, tc.want)
			}
			ssetest.Open(t, client, p.url, nil)
		})
	}
}

func TestAddressInUse(t *testing.T) {
	taken := clitest.Must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))
	defer taken.Close()
	for _, args := range [][]string{
		{"--addr", taken.Addr().String()},
		{"--addr", "127.0.0.1:0", "--admin-addr", taken.Addr().String()},
	} {
		p := launch(t, args...)
		p.wantExit(exit.Failure)
		want := args[len(args)-2] + ": another program serves " + taken.Addr().String() + ": stop it, or choose another port\n"
		if got := p.log.String(); !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", args, got, want)
		}
	}
}

// TestShutdownTimeout cuts a call that outlives the shutdown, and exits 0.
func TestShutdownTimeout(t *testing.T) {
	t.Parallel()
	p := start(t, "--addr", "127.0.0.1:0", "--shutdown-timeout", "100ms")
	sleepForLong(t, p)
	p.signals <- syscall.SIGTERM
	p.wantExit(exit.OK)
	if !strings.Contains(p.log.String(), "streams were cut") {
		t.Errorf("the log does not warn:\n%s", p.log.String())
	}
}

func TestSecondSignal(t *testing.T) {
	t.Parallel()
	for sig, want := range map[os.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130} {
		p := start(t, "--addr", "127.0.0.1:0", "--shutdown-timeout", "1h")
		sleepForLong(t, p)
		p.signals <- sig
		p.signals <- sig // taken only once the first is being handled
		p.wantExit(want)
	}
}

// sleepForLong has a call in flight that takes a minute.
func sleepForLong(t *testing.T, p *program) {
	t.Helper()
	progress := make(chan struct{}, 64)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { progress <- struct{}{} },
	})
	session, err := client.Connect(t.Context(), &mcp.SSEClientTransport{
		Endpoint: p.url, HTTPClient: newClient(t, &http.Transport{}),
	}, nil)
	ssetest.Must(t, err)
	params := &mcp.CallToolParams{Name: "sleep", Arguments: map[string]any{"seconds": 60}}
	params.SetProgressToken("p")
	called := make(chan struct{})
	go func() {
		defer close(called)
		_, _ = session.CallTool(context.Background(), params) // fails when it is cut
	}()
	t.Cleanup(func() {
		session.Close()
		<-called
	})
	<-progress
}

// wrongID is a server that does not read the ids of requests.
const wrongID = `read -r _
echo '{"jsonrpc":"2.0","id":99,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}'
while read -r _; do :; done`

// endlessList is a server whose pages of tools do not advance.
const endlessList = `read -r _
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}'
n=2
while read -r line; do
	case $line in *tools/list*) echo '{"jsonrpc":"2.0","id":'$n',"result":{"tools":[{"name":"t"}],"nextCursor":"again"}}'; n=$((n+1));; esac
done`

// manyTools is a server with 41 tools.
var manyTools = `read -r _
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}'
while read -r line; do
	case $line in *tools/list*) echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[` + strings.TrimSuffix(strings.Repeat(`{"name":"t"},`, 41), ",") + `]}}';; esac
done`

func TestExitCodes(t *testing.T) {
	oneWord := clitest.WriteFile(t, "gw.yaml", "servers: {a: {command: npx -y pkg}, b: {}}\n")
	for _, tc := range []struct {
		args     []string
		code     int
		out, log string
	}{
		{[]string{"--version"}, exit.OK, "sse-server ", ""},
		{[]string{"--version"}, exit.OK, "go1.", ""},
		{[]string{"--help"}, exit.OK, "Usage: sse-server", ""},
		{[]string{"help"}, exit.OK, "Usage: sse-server", ""},
		{[]string{"version"}, exit.OK, "sse-server ", ""},
		{[]string{"completion", "bash"}, exit.OK, "_mcp_sse()", ""},
		{[]string{"completion", "zsh"}, exit.OK, "#compdef sse-server", ""},
		{[]string{"completion", "fish"}, exit.OK, "complete -c sse-server", ""},
		{[]string{"completion"}, exit.Config, "", "completion: name a shell, one of bash, zsh, fish, as in: sse-server completion bash"},
		{[]string{"completion", "ksh"}, exit.Config, "", `completion: want a shell, one of bash, zsh, fish, but got "ksh"`},
		{[]string{"--help-all"}, exit.OK, "--max-connections", ""},
		{[]string{"--warm", "7", "check", "--", "true"}, exit.OK, "configuration ok\n", ""},
		{[]string{"check", "--config", oneWord}, exit.Config, "", `command: "npx -y pkg" is one word, and no program has that name: write the words separately: command: ["npx", "-y", "pkg"]`},
		{[]string{"check", "--config", clitest.WriteFile(t, "quotes.yaml", "command: sh -c \"a b\"\n")}, exit.Config, "", `is one word, and no program has that name: write the words separately, each in quotes: command: ["sh", "…"]`},
		{[]string{"check", "--", "npx -y pkg"}, exit.Config, "", `"npx -y pkg" is one word, and no program has that name: write the words separately, without quotes: sse-server check -- npx -y pkg`},
		{[]string{"--", "./no such file.py"}, exit.Config, "", `the command: start "./no such file.py": there is no such file, or the interpreter`},
		{[]string{"--", "/bin/sh no.sh"}, exit.Config, "", "without quotes: sse-server -- /bin/sh no.sh"},
		{[]string{"check", "--start", "--config", oneWord}, exit.Failure, "\nb: sse-server-demo ", `msg="configuration warning"`},
		{[]string{"check", "--start"}, exit.OK, "\ndemo: sse-server-demo ", ""},
		{[]string{"check", "--for", "Trae"}, exit.OK, "\n  trae: nothing is lost that is known of\n  trae: unknown: how long it waits for tools, ", ""},
		{[]string{"check", "--for", "codex-mcp-client"}, exit.OK, "\n  codex: not tried: a call that takes longer than 2m0s: it gives up\n  codex: unknown: ", ""},
		{[]string{"check", "--for", "claude.ai"}, exit.Config, "", "--for: claude.ai goes with check --url"},
		{[]string{"check", "--for", "claude.ai", "--url", "http://127.0.0.1:1/mcp"}, exit.Failure, "connector: address", ""},
		{[]string{"check", "--for", "tray"}, exit.Config, "", `--for: nothing is known of "tray", did you mean "trae"? want all, or one of claude-code, claude-desktop, `},
		{[]string{"check", "--for", "netscape"}, exit.Config, "", `--for: nothing is known of "netscape"; want all, or one of claude-code, claude-desktop, `},
		{[]string{"check", "--for", "zed"}, exit.OK, "\n  zed: nothing is lost that is known of\n  zed: unknown: how long it waits for tools, ", ""},
		{[]string{"check", "--start", "--url", "http://127.0.0.1:1/mcp"}, exit.Failure, "remote: FAILED: could not connect to the server: 127.0.0.1:1: nothing listens there (connection refused)", ""},
		{[]string{"check", "--start", "--", "sh", "-c", "echo no key >&2; exit 3"}, exit.Failure, "sh: FAILED: the program ended before it answered: exit status 3; stderr: no key\n", `msg="server stderr" server=sh command=sh`},
		{[]string{"check", "--start", "--", "cat"}, exit.Failure, "cat: FAILED: the program only sends back what it gets: it is not an MCP server\n  what to do: serve a program that speaks MCP", "server started"},
		{[]string{"check", "--start", "--start-timeout", "5s", "--", "sh", "-c", wrongID}, exit.OK, "\nsh: s 1, MCP 2025-06-18: 0 tools (", "does not name its answers"},
		{[]string{"check", "--start", "--", "sh", "-c", endlessList}, exit.Failure, `no list of tools: the server returns the same nextCursor for each page: "again"`, "server started"},
		{[]string{"check", "--url", "http://127.0.0.1:1/mcp"}, exit.Failure, "✗ TCP ", ""},
		{[]string{"check", "--offline", "--url", "http://127.0.0.1:1/mcp"}, exit.OK, "configuration ok\n", ""},
		{[]string{"check", "--wait", "70s"}, exit.Config, "", "--wait: has no effect without --url"},
		{[]string{"check", "me"}, exit.Config, "", `check: no server or view is called "me"; want one of demo`},
		{[]string{"tools", "--for", "netscape"}, exit.Config, "", `--for: nothing is known of "netscape"; want all, or one of `},
		{[]string{"--", "check"}, exit.Config, "", "sse-server: the command: start \"check\""}, // a word after -- is a program
		{[]string{"check", "--warm", "-1", "--", "true"}, exit.Config, "", "--warm"},
		{[]string{"--sessions", "shared", "--no-auto-initialize", "--prefix", "/"}, exit.Config, "", "sse-server: --sessions: contradicts"},
		{[]string{"--zzzz"}, exit.Config, "", "sse-server: unknown flag --zzzz\n"},
	} {
		p := launch(t, tc.args...)
		p.wantExit(tc.code)
		if !strings.Contains(p.out.String(), tc.out) || (tc.out == "") != (p.out.String() == "") {
			t.Errorf("%q: got stdout %q, want %q in it", tc.args, p.out.String(), tc.out)
		}
		if !strings.Contains(p.log.String(), tc.log) || (tc.log == "") != (p.log.String() == "") {
			t.Errorf("%q: got stderr %q, want %q in it", tc.args, p.log.String(), tc.log)
		}
	}
}

// The tools and texts of a server that clients lose are printed, with what helps, and are no failure.
func TestLosses(t *testing.T) {
	t.Parallel()
	const slow = "it waits 250ms for tools and goes on without, and the server took "
	run := func(args ...string) string {
		p := launch(t, append(append([]string{"check"}, args...), "--start-timeout", "10s", "--", "sh", "-c", "sleep 0.4; "+manyTools)...)
		p.wantExit(exit.OK)
		out, ok := strings.CutPrefix(p.out.String(), "configuration ok\n")
		if line, rest, _ := strings.Cut(out, "\n"); !ok || !strings.HasPrefix(line, "s: s 1, MCP 2025-06-18: 41 tools (") && !strings.HasPrefix(line, "sh: s 1, MCP 2025-06-18: 41 tools (") {
			t.Errorf("%q: got %q", args, out)
		} else {
			out = rest
		}
		return out
	}
	if out := run("--start"); out != "" {
		t.Errorf("without --for: got %q", out)
	}
	for client, want := range map[string][]string{
		"trae": {"trae: it takes 40 tools over all servers, and this one has 41: it drops the rest silently; include and exclude leave tools out, ", "trae: unknown: "},
		"pi":   {"pi: " + slow, "pi: unknown: "},
	} {
		lines := strings.Split(strings.TrimSuffix(run("--start", "--for", client), "\n"), "\n")
		if !slices.EqualFunc(lines, want, func(line, want string) bool { return strings.HasPrefix(line, "  "+want) }) {
			t.Errorf("--for %s: got %q, want lines that begin with %q", client, lines, want)
		}
	}
	if out := run("--for", "pi"); !strings.Contains(out, ": only a client that comes while the server boots for the first time has none") {
		t.Errorf("with the defaults: got %q", out)
	}
	if out := run("--for", "pi", "--warm", "0", "--no-remember"); !strings.Contains(out, "; --warm 1 starts it ahead of its clients\n") {
		t.Errorf("with --warm 0: got %q", out)
	}
	all := run("--for", "all")
	for _, name := range clients.Names(clients.All) {
		if !strings.Contains(all, "\n  "+name+": ") && !strings.HasPrefix(all, "  "+name+": ") {
			t.Errorf("--for all: nothing of %s in %q", name, all)
		}
	}
	if strings.Contains(all, "unknown: ") || !strings.Contains(all, "  opencode: nothing is lost that is known of\n") {
		t.Errorf("--for all: got %q", all)
	}
}

// A signal ends check --start, which ends the server that it has started.
func TestSignalWhileChecking(t *testing.T) {
	t.Parallel()
	var out, log output
	signals, taken := make(chan os.Signal), make(chan bool, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the end of the client is not seen
		select {
		case signals <- syscall.SIGINT:
			taken <- true
			<-r.Context().Done()
		case <-r.Context().Done(): // the start timeout
		}
	}))
	defer server.Close()
	m := &Main{
		Args:   []string{"check", "--start", "--start-timeout", "5s", "--url", server.URL},
		Stdout: &out, Stderr: &log, LookupEnv: clitest.Environment(nil), Notify: func(...os.Signal) <-chan os.Signal { return signals },
	}
	code := m.Run()
	server.Close() // waits for the handler
	if says := "Stopping: waiting for remote to end. The same signal again stops at once.\n"; !strings.Contains(log.String(), says) {
		t.Errorf("stderr has no %q:\n%s", says, log.String())
	}
	if code != exit.Failure || len(taken) != 1 || !strings.HasSuffix(out.String(), "remote: stopped\n") {
		t.Errorf("got exit code %d, signal taken: %v, stdout %q, log %q", code, len(taken) == 1, out.String(), log.String())
	}
}

// keyPair is a certificate of its own, in PEM.
type keyPair struct{ cert, key, serial string }

func newCertificate(t *testing.T) keyPair {
	t.Helper()
	key := clitest.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	keyDER := clitest.Must(x509.MarshalPKCS8PrivateKey(key))
	template := &x509.Certificate{SerialNumber: new(big.Int).SetBytes(keyDER[len(keyDER)-8:]), NotAfter: time.Now().Add(time.Hour)}
	made := clitest.Must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	text := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return keyPair{text("CERTIFICATE", made), text("PRIVATE KEY", keyDER), template.SerialNumber.String()}
}

// TestAllAddressesAreIPv6Too holds the reference to what it says of 0.0.0.0.
func TestAllAddressesAreIPv6Too(t *testing.T) {
	probe, err := new(net.ListenConfig).Listen(t.Context(), "tcp6", "[::1]:0")
	if err != nil {
		t.Skipf("no IPv6: %v", err)
	}
	probe.Close()
	p := start(t, "--addr", "0.0.0.0:0", "--insecure")
	client := newClient(t, &http.Transport{})
	for _, host := range []string{"127.0.0.1", "[::1]"} {
		url := strings.Replace(p.base(), "localhost", host, 1) + "/healthz"
		wantStatus(t, client, url, "", http.StatusOK)
	}
	p.stop()
	if !strings.Contains(p.log.String(), "level=WARN") || !strings.Contains(p.log.String(), "without authentication") {
		t.Errorf("the log does not warn:\n%s", p.log.String())
	}
}

// People who open the admin address see the status page.
func TestAdminAddressLeadsToTheStatusPage(t *testing.T) {
	p := start(t, "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0")
	if code, body := get(t, newClient(t, &http.Transport{}), p.admin+"/", ""); code != http.StatusOK || !strings.Contains(body, "<html") {
		t.Errorf("got %d %.100s", code, body)
	}
}

// A program that npx has started from another package, or an npm script, does not end with its parent process.
func TestOnlyOfNPXEndsWithItsParent(t *testing.T) {
	for _, tc := range []struct {
		command, script string
		want            bool
	}{
		{"exec", "mcp-sse", true},
		{"exec", "mcp-sse '--' 'srv'", true},
		{"exec", "'mcp-sse'", true},
		{"exec", "mcp-sse-tools", false},
		{"exec", "concurrently 'mcp-sse'", false},
		{"run-script", "mcp-sse", false},
		{"", "", false},
	} {
		env := map[string]string{"npm_command": tc.command, "npm_lifecycle_script": tc.script}
		m := &Main{LookupEnv: func(name string) (string, bool) { value, ok := env[name]; return value, ok }}
		ssetest.Want(t, tc.command+" "+tc.script, m.isOfNPX(), tc.want)
	}
}
