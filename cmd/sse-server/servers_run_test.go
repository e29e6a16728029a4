package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
)

// childConfig is a server that is this test's own program, as the demo server.
func childConfig(t *testing.T, more string) string {
	t.Helper()
	self := clitest.Must(os.Executable())
	return fmt.Sprintf("{command: [%q], warm: 0, env: {%s: demo}%s}", self, childVariable, more)
}

// server is the URL of one of several servers.
func (p *program) server(name string) string {
	scheme, rest, _ := strings.Cut(p.url, "://")
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host + "/" + name + "/mcp"
}

// connectTo connects a client that declares nothing: however late its initialize comes, it
// costs one start.
func connectTo(t *testing.T, url string) *mcp.ClientSession {
	t.Helper()
	session, err := tryConnect(t, url, "")
	if err != nil {
		t.Fatalf("connect to %s: %v", url, err)
	}
	return session
}

// tryConnect is connectTo with a token.
func tryConnect(t *testing.T, url, token string) (*mcp.ClientSession, error) {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	http := newClient(t, &http.Transport{})
	if token != "" {
		http.Transport = withHeader{http.Transport, "Authorization", "Bearer " + token}
	}
	session, err := client.Connect(t.Context(), &mcp.SSEClientTransport{Endpoint: url, HTTPClient: http}, nil)
	if err == nil {
		t.Cleanup(func() { session.Close() })
	}
	return session, err
}

// withHeader is a transport that adds a header to each request.
type withHeader struct {
	http.RoundTripper
	name, value string
}

func (w withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(w.name, w.value)
	return w.RoundTripper.RoundTrip(r)
}

// Each server has its own routes, limits and processes, also beside one whose command is not
// there. One signal ends the processes of all.
func TestServersAreApart(t *testing.T) {
	t.Parallel()
	p := startLive(t, "servers:\n  one: "+childConfig(t, ", max-connections: 1")+"\n  two: "+childConfig(t, ", max-connections: 2, sessions: shared")+
		"\n  gone: {command: [no-such-program-at-all]}\n", "--log-format", "json", "--no-start-check")
	for _, name := range []string{"one", "two", "two"} {
		connectTo(t, p.server(name))
	}
	pids := map[string]bool{}
	for _, match := range regexp.MustCompile(`"pid":(\d+)`).FindAllStringSubmatch(p.log.String(), -1) {
		pids[match[1]] = true
	}
	if len(pids) != 2 {
		t.Errorf("got the processes %v, want one of each server", pids)
	}
	for _, name := range []string{"one", "two"} {
		wantStatus(t, p.client, p.server(name), "", http.StatusServiceUnavailable)
	}
	if _, body := get(t, p.client, p.admin+"/metrics", ""); strings.Count(body, "\ngo_goroutines ") != 1 || !strings.Contains(body, "\nmcp_sse_children{server=\"two\"} 1\n") {
		t.Errorf("the metrics are not those of the process and of each server:\n%s", body)
	}
	p.stop()
	p.wantExit(exit.OK)
	for pid := range pids {
		number, _ := strconv.Atoi(pid)
		if err := syscall.Kill(number, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %s: got %v, want that it is gone", pid, err)
		}
	}
	for _, want := range []string{
		fmt.Sprintf(`"servers":{"one":%q,"two":%q,"gone":%q}`, p.server("one"), p.server("two"), p.server("gone")),
		`:4:19: command: start \"no-such-program-at-all\"`,
	} {
		if log := p.log.String(); !strings.Contains(log, want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
}
