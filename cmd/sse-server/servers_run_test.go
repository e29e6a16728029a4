package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
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

// One server has a command that is not there, another's vanishes after the start,
// a third dies at once: the others are served as ever.
func TestServersThatAreDown(t *testing.T) {
	vanishing := filepath.Join(t.TempDir(), "server")
	if err := os.WriteFile(vanishing, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := startServers(t, fmt.Sprintf(`
  gone: {command: [no-such-program-at-all]}
  vanished: {command: [%q]}
  dying: {command: ["false"]}
  works: %s
  demo: {}
`, vanishing, childConfig(t, "")))
	if err := os.Remove(vanishing); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(p.log.String(), "servers.gone: command: start \\\"no-such-program-at-all\\\"") {
		t.Errorf("the log does not warn of the program that is not there:\n%s", p.log.String())
	}
	for _, name := range []string{"works", "demo"} {
		if got := firstText(t, call(t, connectTo(t, p.server(name)), "echo", map[string]any{"message": name})); got != name {
			t.Errorf("%s: got %q", name, got)
		}
	}
	client := newClient(t, &http.Transport{})
	code, body := get(t, client, p.admin+"/readyz", "")
	var ready struct {
		Status  string
		Servers map[string]struct{ Status, Reason string }
	}
	if err := json.Unmarshal([]byte(body[strings.Index(body, "{"):]), &ready); err != nil || code != http.StatusOK || ready.Status != "ready" {
		t.Fatalf("/readyz: got %d %s, err %v, want 200", code, body, err)
	}
	for name, want := range map[string]struct {
		code           int
		status, reason string
	}{
		"gone": {503, "not ready", "could not be started or reached"}, "vanished": {503, "not ready", "could not be started or reached"},
		"dying": {503, "not ready", "could not be started or reached"}, "works": {200, "ready", ""}, "demo": {200, "ready", ""},
	} {
		code, body := get(t, client, p.admin+"/readyz?server="+name, "")
		if code != want.code || !strings.Contains(body, `"status":"`+want.status+`"`) || !strings.Contains(body, want.reason) {
			t.Errorf("/readyz?server=%s: got %d %s, want %+v", name, code, body, want)
		}
		if got := ready.Servers[name]; got.Status != want.status || !strings.Contains(got.Reason, want.reason) {
			t.Errorf("/readyz: %s: got %+v, want %+v", name, got, want)
		}
	}
	if code, _ := get(t, client, p.admin+"/readyz?server=other", ""); code != http.StatusNotFound {
		t.Errorf("/readyz?server=other: got %d, want 404", code)
	}
}

// Each server has limits, metrics and log lines of its own, and one signal ends
// the processes of all.
func TestServersAreApart(t *testing.T) {
	p := startServers(t, "  one: "+childConfig(t, ", max-connections: 1")+"\n  two: "+childConfig(t, ", max-connections: 2, sessions: shared")+"\n")
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
	_, metrics := get(t, client, p.admin+"/metrics", "")
	for _, want := range []string{
		`mcp_sse_connections{server="one",transport="sse"} 1`, `mcp_sse_connections{server="two",transport="sse"} 2`,
		`mcp_sse_children{server="two"} 1`,
		`mcp_sse_connections_rejected_total{reason="max_connections",server="one",transport="sse"} 1`,
	} {
		if !strings.Contains(metrics, "\n"+want+"\n") {
			t.Errorf("%s is missing in the metrics", want)
		}
	}
	if n := strings.Count(metrics, "\ngo_goroutines "); n != 1 {
		t.Errorf("the figures of the process are there %d times", n)
	}
	if !regexp.MustCompile(`\nmcp_sse_children\{server="one"\} [1-9]`).MatchString(metrics) { // two, while an unused one ends
		t.Error("no child of one in the metrics")
	}
	_, connections := get(t, client, p.admin+"/connections", "")
	if strings.Count(connections, `{"server":"one"`) != 1 || strings.Count(connections, `{"server":"two"`) != 2 {
		t.Errorf("/connections: got %s, want one of one and two of two", connections)
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
	log := p.log.String()
	if want := fmt.Sprintf(`"servers":{"one":%q,"two":%q}`, p.server("one"), p.server("two")); !strings.Contains(log, want) {
		t.Errorf("the log lacks %s:\n%s", want, log)
	}
	for _, line := range regexp.MustCompile(`.*"msg":"(?:connection opened|session started|server started|connection closed)".*`).FindAllString(log, -1) {
		if !strings.Contains(line, `"server":"one"`) && !strings.Contains(line, `"server":"two"`) {
			t.Errorf("no server in %s", line)
		}
	}
}

// With tokens, all servers want one.
func TestTokensOfServers(t *testing.T) {
	const token = "0123456789abcdef"
	p := startServers(t, "  a: {}\n  b: {}\n", "--auth-tokens-file", clitest.WriteFile(t, "tokens", "alice:"+token+"\n"))
	client := newClient(t, &http.Transport{})
	for _, url := range []string{p.server("a"), p.server("b"), p.admin + "/metrics", p.admin + "/connections"} {
		if code, _ := get(t, client, url, ""); code != http.StatusUnauthorized {
			t.Errorf("%s without a token: got %d, want 401", url, code)
		}
	}
	for target, want := range map[string]int{"/readyz": 200, "/readyz?server=a": 200, "/readyz?server=x": 404, "/healthz": 200} {
		if code, _ := get(t, client, p.admin+target, ""); code != want {
			t.Errorf("%s: got %d, want %d", target, code, want)
		}
	}
	if code, _ := get(t, client, p.server("c"), token); code != http.StatusNotFound {
		t.Errorf("a server that is not there: got %d, want 404", code)
	}
}

// TestExampleOfServers checks that the example file of deploy/ is taken, and
// shows what it promises.
func TestExampleOfServers(t *testing.T) {
	data, err := os.ReadFile("../../deploy/servers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tokens := clitest.WriteFile(t, "tokens", "alice:0123456789abcdef\n")
	text := strings.ReplaceAll(string(data), "/run/credentials/sse-server.service/tokens", tokens)
	p := launchWith(t, map[string]string{"GITHUB_TOKEN": secret}, "check", "--config", clitest.WriteFile(t, "servers.yaml", text))
	if code := <-p.code; code != exitOK {
		t.Fatalf("got exit code %d\n%s", code, p.log.String())
	}
	if out := p.out.String(); !strings.Contains(out, "servers:\n") || strings.Contains(out+p.log.String(), secret) {
		t.Errorf("got\n%s\n%s\nwant the servers and no secret", out, p.log.String())
	}
}
