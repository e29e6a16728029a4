package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// childConfig is a server that is this test's own program, as the demo server.
func childConfig(t *testing.T, more string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("{command: [%q], env: {%s: demo}%s}", self, childVariable, more)
}

// startServers runs the program with a file of servers.
func startServers(t *testing.T, servers string, args ...string) *program {
	t.Helper()
	path := clitest.WriteFile(t, "gw.yaml", "servers:\n"+servers)
	return start(t, append([]string{"--config", path, "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--log-format", "json"}, args...)...)
}

// server is the URL of the stream of one of several servers.
func (p *program) server(name string) string {
	scheme, rest, _ := strings.Cut(p.url, "://")
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host + "/" + name + "/sse"
}

func connectTo(t *testing.T, url string) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.SSEClientTransport{
		Endpoint: url, HTTPClient: newClient(t, &http.Transport{}),
	}, nil)
	if err != nil {
		t.Fatalf("connect to %s: %v", url, err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// pidOf asks the server for its process.
func pidOf(t *testing.T, session *mcp.ClientSession) int {
	t.Helper()
	var info struct{ PID int }
	if err := json.Unmarshal([]byte(firstText(t, call(t, session, "server_info", nil))), &info); err != nil || info.PID == 0 {
		t.Fatalf("server_info: got %+v, err %v", info, err)
	}
	return info.PID
}

// Each server has its own routes, limits and processes, also beside one whose command is not
// there. One signal ends the processes of all.
func TestServersAreApart(t *testing.T) {
	t.Parallel()
	p := startServers(t, "  one: "+childConfig(t, ", max-connections: 1")+"\n  two: "+childConfig(t, ", max-connections: 2, sessions: shared")+
		"\n  gone: {command: [no-such-program-at-all]}\n")
	one, two, again := connectTo(t, p.server("one")), connectTo(t, p.server("two")), connectTo(t, p.server("two"))
	pids := map[int]bool{pidOf(t, one): true, pidOf(t, two): true, pidOf(t, again): true}
	if len(pids) != 2 {
		t.Errorf("got the processes %v, want one of each server", pids)
	}
	client := newClient(t, &http.Transport{})
	for _, name := range []string{"one", "two"} {
		if code, _ := get(t, client, p.server(name), ""); code != http.StatusServiceUnavailable {
			t.Errorf("one more connection to %s: got %d, want 503", name, code)
		}
	}
	if _, body := get(t, client, p.admin+"/metrics", ""); strings.Count(body, "\ngo_goroutines ") != 1 || !strings.Contains(body, "\nmcp_sse_children{server=\"two\"} 1\n") {
		t.Errorf("the metrics are not those of the process and of each server:\n%s", body)
	}
	p.stop()
	if code := <-p.code; code != exitOK {
		t.Errorf("after SIGTERM: got exit code %d, want 0", code)
	}
	for pid := range pids {
		process, err := os.FindProcess(pid)
		if err == nil {
			err = process.Signal(syscall.Signal(0))
		}
		if !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("process %d: got %v, want that it is gone", pid, err)
		}
	}
	for _, want := range []string{
		fmt.Sprintf(`"servers":{"one":%q,"two":%q,"gone":%q}`, p.server("one"), p.server("two"), p.server("gone")),
		`servers.gone: command: start \"no-such-program-at-all\"`,
	} {
		if log := p.log.String(); !strings.Contains(log, want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
}
