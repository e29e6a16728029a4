package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/diagnosis"
	"github.com/mcp-sse/mcp-sse/internal/clients"
)

// After the banner each server is started once, and a line says what it is, or several why it fails and
// what to do. The program goes on in any case.
func TestStartCheck(t *testing.T) {
	t.Parallel()
	file := clitest.WriteFile(t, "gw.yaml", "servers:\n  good: "+childConfig(t, "")+
		"\n  bad: {command: [sh, -c, 'echo starting >&2; echo \"Error: no API_KEY\" >&2; exit 3'], warm: 0}\n  forwards: {url: 'http://127.0.0.1:1/mcp', forward-header: [X-User]}\n")
	p := start(t, "-c", file, "--addr", "127.0.0.1:0", "--start-check")
	good := p.out.await(t, 1, "good      (devel), MCP 2025-11-25: 2 tools (")
	if runtime.GOOS == "linux" && !strings.Contains(good, " MiB)") {
		t.Errorf("%q does not have the memory of the server", good)
	}
	p.out.await(t, 1, "bad       FAILED after ")
	p.out.await(t, 1, "            | starting\n")
	p.out.await(t, 1, "            | Error: no API_KEY\n")
	p.out.await(t, 1, "          What to do: give it what it asks for with --env NAME=VALUE.\n")
	p.out.await(t, 1, "forwards  not checked: it gets something of each client\n")
	if strings.ContainsAny(p.out.String(), "\r\x1b") {
		t.Errorf("a pipe gets a live line: %q", p.out.String())
	}
	p.stop()
	p.wantExit(exitOK)
}

// A shared session goes on for the first client.
func TestStartCheckOfASharedSession(t *testing.T) {
	t.Parallel()
	p := start(t, "--addr", "127.0.0.1:0", "--sessions", "shared", "--env", childVariable+"=demo", "--", clitest.Must(os.Executable()))
	p.out.await(t, 1, ": 2 tools (")
	connectTo(t, p.url)
	if n := strings.Count(p.log.String(), `msg="server started"`); n != 1 {
		t.Errorf("%d servers were started, want the shared one", n)
	}
}

// Also a server of which nothing is started ahead is checked, so that one that fails is known before its first client.
func TestServerThatIsNotWarmIsChecked(t *testing.T) {
	t.Parallel()
	p := start(t, "--warm", "0", "--addr", "127.0.0.1:0", "--", "sh", "-c", "exit 3")
	p.out.await(t, 1, "sh  FAILED after ")
	p.out.await(t, 1, "What to do: ")
	p.out.await(t, 1, "sse-server keeps running: each client that connects starts the server again.\n")
	p = start(t, "--warm", "0", "--addr", "127.0.0.1:0", "--no-start-check", "--", "sh", "-c", "exit 3")
	p.stop()
	if strings.Contains(p.out.String()+p.log.String(), "FAILED") || strings.Contains(p.log.String(), "server started") {
		t.Errorf("the server was started:\n%s%s", p.out.String(), p.log.String())
	}
}

// A pipe has no live line: it is told now and then what is still starting.
func TestPipeIsToldWhatIsStarting(t *testing.T) {
	t.Parallel()
	p := launchMain(t, &Main{
		Args:      []string{"--addr", "127.0.0.1:0", "--close-timeout", "50ms", "--", "sleep", "1000"},
		LookupEnv: clitest.Environment(nil), Silence: 1,
	})
	p.out.await(t, 2, "sleep  still starting (")
	p.stop()
	p.out.await(t, 1, "sleep  not checked: stopped\n")
	p.wantExit(exitOK)
}

// A signal ends the start check, and the process that it has started.
func TestSignalDuringTheStartCheck(t *testing.T) {
	t.Parallel()
	p := start(t, "--addr", "127.0.0.1:0", "--close-timeout", "50ms", "--", "sleep", "1000")
	p.log.await(t, 1, `msg="server started"`)
	p.stop()
	p.wantExit(exitOK)
	if started, ended := strings.Count(p.log.String(), `msg="server started"`), strings.Count(p.log.String(), `msg="server exited"`); started != ended {
		t.Errorf("%d servers were started, and %d ended", started, ended)
	}
}

// The error of a client whose server is still starting has what that says.
func TestLastWordsOfASlowStart(t *testing.T) {
	t.Parallel()
	p := start(t, "--no-start-check", "--warm", "0", "--addr", "127.0.0.1:0", "--initialization-timeout", "500ms", "--close-timeout", "50ms",
		"--", "sh", "-c", "no-such-tool; exec sleep 1000")
	for {
		request := clitest.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, p.url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "application/json, text/event-stream")
		response := clitest.Must(newClient(t, &http.Transport{}).Do(request))
		body := clitest.Must(io.ReadAll(response.Body))
		response.Body.Close()
		if strings.Contains(string(body), "still starting") && regexp.MustCompile(`its stderr says: [^"]*no-such-tool: (command )?not found`).Match(body) {
			return
		}
		if !strings.Contains(string(body), "still starting") {
			t.Fatalf("got %s", body)
		}
	}
}

// On a terminal the line is at the bottom, and what others write goes above it.
func TestLiveLine(t *testing.T) {
	var screen bytes.Buffer
	live := &liveLine{terminal: &screen}
	log := live.over(&screen)
	live.show("a starting (0 s)")
	live.show("a starting (0 s)")
	_, _ = io.WriteString(log, "a line\n")
	live.show(strings.Repeat("ä", 100))
	live.show("")
	_, _ = io.WriteString(log, "the last\n")
	const clear = "\r\x1b[K"
	want := clear + "a starting (0 s)" + clear + "a line\na starting (0 s)" + clear + strings.Repeat("ä", 77) + "…" + clear + "the last\n"
	if screen.String() != want {
		t.Errorf("got %q, want %q", screen.String(), want)
	}
	if w := new(liveLine).over(&screen); w != io.Writer(&screen) {
		t.Error("without a terminal, writers are others")
	}
}

// Each remedy is found by what real programs say.
func TestRemedies(t *testing.T) {
	var met []string
	for says, want := range map[string]string{
		"npm error 404  '@x/y@*' is not in this registry.":                             "name of the package",
		"getaddrinfo ENOTFOUND registry.npmjs.org":                                     "reaches the network",
		"docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock":   "start Docker",
		"docker: Error response from daemon: pull access denied for nope":              "name of the image",
		"Error: Cannot find module '/srv/dist/index.js'":                               "install what the program needs",
		"start x: exec format error":                                                   "#!/bin/sh",
		"python3: can't open file '/x/server.py': [Errno 2] No such file or directory": "check the path",
		"bash: line 1: foo: command not found":                                         "spelling of the program",
		"Error: listen EADDRINUSE: address already in use :::3000":                     "option for stdio",
		"Error: GITHUB_TOKEN is required":                                              "--env NAME=VALUE",
		"dial tcp 127.0.0.1:1: connect: connection refused":                            "start what the program connects to",
		"sh: 1: no-such-tool: not found":                                               "spelling of the program",
		"Error: DATABASE_URL is required":                                              "--env NAME=VALUE",
		"please set SMTP_HOST":                                                         "--env NAME=VALUE",
		"ERROR: duplicate primary_key":                                                 "run the command alone",
		"list tools: context deadline exceeded":                                        "--request-timeout",
		"the server refused access (401 Unauthorized): configure the credentials":      "--header",
		"tls: failed to verify certificate: x509: unknown authority":                   "certificate",
		"the program only sends back what it gets: it is not an MCP server":            "speaks MCP",
		"the server did not answer initialize in time":                                 "--start-timeout",
		"error: unknown option '--x'":                                                  "arguments after --",
		"something else":                                                               "run the command alone",
	} {
		got := remedyFor(mustLoad(t, nil, "--", "x").Each()[0], says)
		if !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", says, got, want)
		}
		met = append(met, got)
	}
	remote := remedyFor(mustLoad(t, nil, "--url", "http://127.0.0.1:1/mcp").Each()[0], "connection refused")
	if !strings.Contains(remote, "--url names") {
		t.Errorf("of a remote server: got %q", remote)
	}
	met = append(met, remote)
	for _, remedy := range remedies {
		if !slices.Contains(met, remedy.what) {
			t.Errorf("no program says what leads to %q", remedy.what)
		}
	}
}

// What servers say cannot steer the terminal.
func TestControlCharactersAreVisible(t *testing.T) {
	if got, want := visible("a\x1b[31m\tb\r\nä\u202e\xff✓"), "a\\x1b[31m b\\r\\nä\\u202e\ufffd✓"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	const evil = "x\x1b]0;evil\a"
	var out bytes.Buffer
	m := &Main{Stdout: &out}
	m.tellStep(diagnosis.Step{Name: evil, Detail: evil, Remedy: evil})
	m.tellLosses("cursor", clients.Offer{Name: evil, Tools: []clients.Tool{{Name: strings.Repeat(evil, 10)}}})
	(&startCheck{out: &out, live: new(liveLine)}).say(evil, failed(mustLoad(t, nil, "--", "x").Each()[0], 0, errors.New(evil+"; stderr: "+evil))...)
	if strings.ContainsAny(out.String(), "\x1b\a") || strings.Count(out.String(), "\\x1b") < 6 {
		t.Errorf("got %q", out.String())
	}
}

// noList is a server that answers initialize, and tools/list with an error.
const noList = `read x; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"7"}}}'
while read line; do case $line in *tools/list*) id=${line#*\"id\":}; echo '{"jsonrpc":"2.0","id":'${id%%[,\}]*}',"error":{"code":-32603,"message":"broken list"}}';; esac; done`

// A server whose list of tools fails has started all the same.
func TestNoListOfTools(t *testing.T) {
	t.Parallel()
	p := start(t, "--addr", "127.0.0.1:0", "--start-check", "--", "sh", "-c", noList)
	line := p.out.await(t, 1, "sh  ")
	if !strings.Contains(line, "sh  7, MCP 2025-06-18: no list of tools: the server answered ") || !strings.Contains(line, "broken list") || strings.Contains(p.out.String(), "FAILED") {
		t.Errorf("got %s", p.out.String())
	}
	p = launch(t, "check", "--start", "--", "sh", "-c", noList)
	p.wantExit(exitFailure)
	if out := p.out.String(); !strings.Contains(out, "sh: s 7, MCP 2025-06-18: no list of tools: the server answered ") || strings.Contains(out, "FAILED") {
		t.Errorf("got %s", out)
	}
}
