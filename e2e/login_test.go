//go:build all

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// loginLink is the address that login prints on a line of its own.
var loginLink = regexp.MustCompile(`(?m)^ +(http://\S+)$`)

// openLink opens a link as a browser does whose person agrees to all.
func openLink(t *testing.T, link string) string {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar}
	defer client.CloseIdleConnections()
	resp, err := client.Get(link)
	ssetest.Must(t, err)
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	ssetest.Must(t, err)
	return string(page)
}

// logInAt runs sse-server login, and returns what it printed.
func logInAt(t *testing.T, url string, args ...string) string {
	t.Helper()
	return logInWith(t, url, append([]string{url}, args...)...)
}

// logInWith is logInAt with all arguments of the command.
func logInWith(t *testing.T, url string, args ...string) string {
	t.Helper()
	cmd := exec.Command(built(t, "sse-server"), append([]string{"login", "--no-browser"}, args...)...)
	cmd.Env = ssetest.WithState(t)
	stdin, err := cmd.StdinPipe()
	ssetest.Must(t, err)
	defer stdin.Close()
	p := run(t, cmd)
	ssetest.WantText(t, "the last page", openLink(t, p.awaitMatch("the link", &p.out, loginLink)), "You are logged in at "+url)
	if err := p.wait(); err != nil {
		t.Fatalf("login: %v\n%s%s", err, p.out.String(), p.log.String())
	}
	return p.out.String()
}

// A person logs in at oidc-provider once, and all clients of a gateway use the protected server. Logout ends that at the
// issuer.
func TestLoginAtARealIssuer(t *testing.T) {
	t.Parallel()
	_, base := startProtected(t, startIssuer(t), "")
	url := base + "/jwt/mcp"
	printed := logInAt(t, url)
	ssetest.WantText(t, "what login prints", printed, "as a client registered for this login.", "It is renewed as needed.")
	g := startGateway(t, "--url", url)
	for range 2 {
		useGoSDK(t, &mcp.StreamableClientTransport{Endpoint: g.url})
	}
	logout := exec.Command(built(t, "sse-server"), "logout", url)
	logout.Env = ssetest.WithState(t)
	out, err := logout.CombinedOutput()
	ssetest.Must(t, err)
	ssetest.WantText(t, "what logout prints", string(out), "has ended the login")
	if log := g.log.String(); strings.Contains(log, "eyJ") {
		t.Errorf("the log has a token:\n%s", g.log.Tail())
	}
}

// newBrowser returns a program that opens an address as a browser does whose person agrees to all, and what is printed
// for each that it has opened.
func newBrowser(t *testing.T) (script string, pages func() []string) {
	t.Helper()
	opened, script := t.TempDir(), filepath.Join(t.TempDir(), "browser")
	follow, err := filepath.Abs(filepath.Join(clientsDir, "follow.mjs"))
	ssetest.Must(t, err)
	ssetest.Must(t, os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\nexec %s %s \"$1\" > \"$(mktemp %s/XXXXXX)\" 2>&1\n",
		node(t), follow, opened), 0o700))
	return script, func() (all []string) {
		entries, err := os.ReadDir(opened)
		ssetest.Must(t, err)
		for _, entry := range entries {
			page, err := os.ReadFile(filepath.Join(opened, entry.Name()))
			ssetest.Must(t, err)
			all = append(all, string(page))
		}
		return all
	}
}

// Five windows whose clients start sse-server stdio at the same time open one page, and all have the tools of the server
// after it.
func TestFiveWindowsMakeOneLogin(t *testing.T) {
	_, base := startProtected(t, startIssuer(t), "")
	script, pages := newBrowser(t)
	t.Setenv("BROWSER", script)
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			a := startAgent(t, "--url", base+"/jwt/mcp")
			for { // until the test is over
				tools, err := a.ListTools(within(t), nil)
				if err != nil {
					t.Error(err)
					return
				}
				if slices.ContainsFunc(tools.Tools, func(tool *mcp.Tool) bool { return tool.Name == "echo" }) {
					return
				}
				<-time.After(100 * time.Millisecond)
			}
		})
	}
	all.Wait()
	ssetest.Want(t, "pages that were opened", len(pages()), 1)
}

// keptLogin returns the file of the only login of a test, and what it has.
func keptLogin(t *testing.T) (file string, kept map[string]any) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(ssetest.StateDir(t), "sse-server", "logins", "*.json"))
	if len(files) != 1 {
		t.Fatalf("the files of logins: %v", files)
	}
	data, err := os.ReadFile(files[0])
	ssetest.Must(t, err)
	ssetest.Must(t, json.Unmarshal(data, &kept))
	return files[0], kept
}

// endLogin has the issuer end the only login of a test, and the access token expire, so that its next use is a refresh
// that the issuer answers with invalid_grant.
func endLogin(t *testing.T) {
	t.Helper()
	_, kept := keptLogin(t)
	client := kept["client"].(map[string]any)
	resp, err := http.PostForm(kept["revokeUrl"].(string), url.Values{
		"token": {kept["refreshToken"].(string)}, "token_type_hint": {"refresh_token"}, "client_id": {client["id"].(string)},
	})
	ssetest.Must(t, err)
	resp.Body.Close()
	ssetest.Want(t, "the answer to the revocation", resp.StatusCode, http.StatusOK)
	expireLogin(t)
}

// callEcho calls the tool echo, and returns the text of the answer.
func callEcho(t *testing.T, session *mcp.ClientSession) (text string, isError bool) {
	t.Helper()
	return callText(t, session, "echo", map[string]any{"message": "hi"})
}

// callText calls a tool, and returns the text of the answer.
func callText(t *testing.T, session *mcp.ClientSession, tool string, arguments map[string]any) (text string, isError bool) {
	t.Helper()
	result, err := session.CallTool(within(t), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	ssetest.Must(t, err)
	return result.Content[0].(*mcp.TextContent).Text, result.IsError
}

// linkIn returns the link that a text gives.
func linkIn(t *testing.T, text string) string {
	t.Helper()
	_, link, _ := strings.Cut(text, "Log in at ")
	link, _, hasLink := strings.Cut(link, " ")
	if !hasLink {
		t.Fatalf("there is no link in %q", text)
	}
	return link
}

// A login that its issuer ends costs no client its tools, also not one that comes after a restart of the gateway: it has
// what the server said before. A call gets the link, and after the login it works.
func TestToolsOutliveALogin(t *testing.T) {
	t.Parallel()
	_, base := startProtected(t, startIssuer(t), "")
	server := base + "/jwt/mcp"
	logInAt(t, server)
	connect := func(g *gateway) (*mcp.ClientSession, *mcp.ListToolsResult) {
		session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "0"}, nil).
			Connect(within(t), &mcp.StreamableClientTransport{Endpoint: g.url}, nil)
		ssetest.Must(t, err)
		t.Cleanup(func() { _ = session.Close() })
		tools, err := session.ListTools(within(t), nil)
		ssetest.Must(t, err)
		return session, tools
	}
	namesOf := func(tools *mcp.ListToolsResult) (names []string) {
		for _, tool := range tools.Tools {
			names = append(names, tool.Name)
		}
		return names
	}
	first := startGateway(t, "--url", server)
	before, tools := connect(first)
	want := namesOf(tools)
	ssetest.Want(t, "the server has echo", slices.Contains(want, "echo"), true)
	wantName := before.InitializeResult().ServerInfo.Name
	_ = before.Close()
	first.stop()

	endLogin(t)
	g := startGateway(t, "--url", server)
	session, tools := connect(g)
	ssetest.Want(t, "the server's name", session.InitializeResult().ServerInfo.Name, wantName)
	ssetest.Want(t, "tools without a login", strings.Join(namesOf(tools), " "), strings.Join(want, " "))
	text, isError := callEcho(t, session)
	link := linkIn(t, text)
	ssetest.Want(t, "a call without a login fails", isError, true)
	if _, kept := keptLogin(t); kept["ended"] == nil {
		t.Error("the issuer has not ended the login")
	}
	ssetest.WantText(t, "the last page", openLink(t, link), "You are logged in at "+server)
	for isError {
		if text, isError = callEcho(t, session); isError {
			<-time.After(100 * time.Millisecond) // until the test is over
		}
	}
	ssetest.Want(t, "the call after the login", text, "hi")
}

// formOf matches the action and the hidden fields of a form of oidc-provider.
var (
	formOf   = regexp.MustCompile(`<form [^>]*action="([^"]+)"`)
	hiddenOf = regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)"`)
	codeOf   = regexp.MustCompile(`type the code (\S+) there`)
)

// logInOnAnotherDevice runs sse-server login, and has a person type its code on another device. It returns the program,
// which has ended.
func logInOnAnotherDevice(t *testing.T, server string) *running {
	t.Helper()
	cmd := exec.Command(built(t, "sse-server"), "login", server, "--no-browser")
	cmd.Env = ssetest.WithState(t)
	p := run(t, cmd)
	address, code := p.awaitMatch("the address", &p.out, loginLink), p.awaitMatch("the code", &p.out, codeOf)
	device := newHTTP(t)
	device.Jar, _ = cookiejar.New(nil)
	read := func(resp *http.Response, err error) string {
		ssetest.Must(t, err)
		defer resp.Body.Close()
		page, err := io.ReadAll(resp.Body)
		ssetest.Must(t, err)
		return string(page)
	}
	submit := func(page string, fields url.Values) string {
		form := formOf.FindStringSubmatch(page)
		if form == nil {
			t.Fatalf("there is no form in %s", page)
		}
		for _, hidden := range hiddenOf.FindAllStringSubmatch(page, -1) {
			fields.Set(hidden[1], hidden[2])
		}
		return read(device.PostForm(form[1], fields))
	}
	confirm := submit(read(device.Get(address)), url.Values{"user_code": {code}})
	ssetest.WantText(t, "the page that asks for a confirmation", confirm, code)
	ssetest.WantText(t, "the last page", submit(confirm, url.Values{}), "Sign-in Success")
	if err := p.wait(); err != nil {
		t.Fatalf("login: %v\n%s%s", err, p.out.String(), p.log.String())
	}
	return p
}

// Where there is no browser and the issuer has the device flow (RFC 8628), a person types a code on another device.
func TestLoginOnAnotherDevice(t *testing.T) {
	t.Parallel()
	_, base := startProtected(t, startProgram(t, nil, node(t), "provider.mjs", "device").url, "")
	server := base + "/jwt/mcp"
	p := logInOnAnotherDevice(t, server)
	ssetest.WantText(t, "what login prints", p.out.String(), "Logged in at "+server, "It is renewed as needed.")
	useGoSDK(t, &mcp.StreamableClientTransport{Endpoint: startGateway(t, "--url", server).url})
}
