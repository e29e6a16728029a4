//go:build all

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
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
	cmd := exec.Command(built(t, "sse-server"), append([]string{"login", url, "--no-browser"}, args...)...)
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

// Five windows whose clients start sse-server stdio at the same time open one page, and all have the tools of the server
// after it.
func TestFiveWindowsMakeOneLogin(t *testing.T) {
	_, base := startProtected(t, startIssuer(t), "")
	dir := t.TempDir()
	opened, script := filepath.Join(dir, "opened"), filepath.Join(dir, "browser")
	follow, err := filepath.Abs(filepath.Join(clientsDir, "follow.mjs"))
	ssetest.Must(t, err)
	ssetest.Must(t, os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\necho x >> %s\nexec %s %s \"$1\"\n", opened, node(t), follow), 0o700))
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
	pages, err := os.ReadFile(opened)
	ssetest.Must(t, err)
	ssetest.Want(t, "pages that were opened", strings.Count(string(pages), "x"), 1)
}
