package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/observe"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
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
	p.out.await(t, 1, "          What to do: give it what it asks for with env:\n")
	p.out.await(t, 1, "forwards  not checked: it gets something of each client\n")
	if strings.ContainsAny(p.out.String(), "\r\x1b") {
		t.Errorf("a pipe gets a live line: %q", p.out.String())
	}
	p.stop()
	p.wantExit(exit.OK)
}

// The line about a server that is remembered comes from memory, and nothing is started.
func TestStartCheckOfAKnownServer(t *testing.T) {
	t.Parallel()
	args := []string{"--addr", "127.0.0.1:0", "--start-check", "--env", childVariable + "=demo", "--", clitest.Must(os.Executable())}
	env := map[string]string{"XDG_STATE_HOME": t.TempDir()}
	p := startWith(t, env, args...)
	p.out.await(t, 1, ": 2 tools (")
	p.stop()
	p.wantExit(exit.OK)
	p = startWith(t, env, args...)
	p.out.await(t, 1, ": 2 tools (from memory, starts with the first call)\n")
	p.stop()
	p.wantExit(exit.OK)
	if log := p.log.String(); strings.Contains(log, `msg="server started"`) {
		t.Errorf("a known server was started:\n%s", log)
	}
}

// A server whose memory is older than remember-for is started, and the line says what it is now.
func TestStartCheckOfAnOldMemory(t *testing.T) {
	t.Parallel()
	args := []string{"--addr", "127.0.0.1:0", "--start-check", "--remember-for", "1ns", "--env", childVariable + "=demo", "--", clitest.Must(os.Executable())}
	env := map[string]string{"XDG_STATE_HOME": t.TempDir()}
	for range 2 {
		p := startWith(t, env, args...)
		p.out.await(t, 1, ": 2 tools (")
		p.stop()
		p.wantExit(exit.OK)
		if text := p.out.String(); strings.Contains(text, "from memory") || !strings.Contains(p.log.String(), `msg="server started"`) {
			t.Errorf("it was not started:\n%s%s", text, p.log.String())
		}
	}
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
	p.wantExit(exit.OK)
}

// A start that is only wrong is told within seconds, with what the program has written and what to do.
func TestWrongStartIsToldWhileItGoesOn(t *testing.T) {
	t.Parallel()
	const shell = "What to do: name an MCP server: this is a shell, which takes its messages for commands\n"
	for command, want := range map[string][]string{
		"bash":            {"bash: line 1: ", shell},
		"sh":              {": not found\n", shell},
		"python3 -i":      {"What to do: name an MCP server after it, such as a script: the command is a shell or interpreter alone"},
		"exec sleep 1000": {"it has not answered initialize; it has not read what was sent to its stdin", "What to do: wait, if it boots for long; else name a program that speaks MCP"},
		"echo 'MCP server listening on port 3001' >&2; exec sleep 1000":       {"| MCP server listening on port 3001\n", "What to do: serve it with --url http://127.0.0.1:3001/mcp, as it seems to serve HTTP itself"},
		"echo 'Server running on http://localhost:8931/sse'; exec sleep 1000": {"| Server running on http://localhost:8931/sse\n", "What to do: serve it with --url http://127.0.0.1:8931/mcp"},
		"exec sh": {shell},
	} {
		args := strings.Fields(command)
		if strings.Contains(command, "exec ") {
			args = []string{"sh", "-c", command}
		}
		p := launchMain(t, &Main{
			Args:      append([]string{"--addr", "127.0.0.1:0", "--close-timeout", "50ms", "--"}, args...),
			LookupEnv: clitest.Environment(nil), Silence: 200 * time.Millisecond,
		})
		for _, text := range want {
			p.out.await(t, 1, text)
		}
		p.stop()
		p.wantExit(exit.OK)
	}
}

// On a terminal, too, a person reads at once that a server waits for a login: a late start is not kept out of the log.
func TestLateStartIsInTheLog(t *testing.T) {
	t.Parallel()
	p := launchMain(t, &Main{
		Args:      []string{"--addr", "127.0.0.1:0", "--close-timeout", "50ms", "--", "sh", "-c", "echo please visit https://login.example.com/ >&2; exec sleep 1000"},
		LookupEnv: clitest.Environment(nil), Silence: 200 * time.Millisecond, starts: observe.NewStarts(),
	})
	p.log.await(t, 1, "please visit https://login.example.com/")
	p.stop()
	p.wantExit(exit.OK)
}

// The start check tells of the process that was asked to initialize, not of the warm one that started after it.
func TestWrongStartIsToldOfTheProcessThatWasAsked(t *testing.T) {
	t.Parallel()
	goOn := filepath.Join(t.TempDir(), "go-on")
	ssetest.Must(t, syscall.Mkfifo(goOn, 0o600))
	p := launchMain(t, &Main{
		Args:      []string{"--addr", "127.0.0.1:0", "--close-timeout", "50ms", "--", "sh", "-c", `read x; : <"$0"; echo listening on port 3001 >&2; exec sleep 1000`, goOn},
		LookupEnv: clitest.Environment(nil), Silence: 1,
	})
	p.log.await(t, 1, "warm server starts")
	ssetest.Must(t, os.WriteFile(goOn, nil, 0)) // returns when the one that was asked has opened it
	p.out.await(t, 1, "    | listening on port 3001\n")
	p.stop()
	p.wantExit(exit.OK)
}

// A signal ends the start check, and the process that it has started.
func TestSignalDuringTheStartCheck(t *testing.T) {
	t.Parallel()
	p := start(t, "--addr", "127.0.0.1:0", "--close-timeout", "50ms", "--", "sleep", "1000")
	p.log.await(t, 1, `msg="server started"`)
	p.stop()
	p.wantExit(exit.OK)
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

// A client on this machine is told what to do, as the start check says it, and others are not.
func TestRemedyReachesClients(t *testing.T) {
	t.Parallel()
	for details, want := range map[string]string{"auto": `"remedy":"give it what it asks for with --env NAME=VALUE"`, "safe": `"details":"the server `} {
		p := start(t, "--no-start-check", "--warm", "0", "--addr", "127.0.0.1:0", "--error-details", details,
			"--", "sh", "-c", `echo "Error: no API_KEY" >&2; exit 3`)
		request := clitest.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, p.url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "application/json, text/event-stream")
		response := clitest.Must(newClient(t, &http.Transport{}).Do(request))
		body := string(clitest.Must(io.ReadAll(response.Body)))
		response.Body.Close()
		if !strings.Contains(body, want) || strings.Contains(body, "API_KEY") != (details == "auto") || strings.Contains(body, "remedy") != (details == "auto") {
			t.Errorf("%s: got %s, want %s", details, body, want)
		}
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
	p.wantExit(exit.Failure)
	if out := p.out.String(); !strings.Contains(out, "sh: s 7, MCP 2025-06-18: no list of tools: the server answered ") || strings.Contains(out, "FAILED") {
		t.Errorf("got %s", out)
	}
}

// The line of a server has its tools, prompts and resources, as far as it has any.
func TestStartCheckCountsWhatAServerHas(t *testing.T) {
	t.Parallel()
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "3.1"}, nil)
	type none struct{}
	mcp.AddTool(server, &mcp.Tool{Name: "buy"}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	})
	for _, name := range []string{"a", "b", "c"} {
		server.AddPrompt(&mcp.Prompt{Name: name}, nil)
	}
	for _, uri := range []string{"file:///a", "file:///b"} {
		server.AddResource(&mcp.Resource{Name: uri, URI: uri}, nil)
	}
	s := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(s.Close)
	p := start(t, "--addr", "127.0.0.1:0", "--name", "shop", "--url", s.URL)
	p.out.await(t, 1, ": 1 tool, 3 prompts, 2 resources (")
}

// Servers are started for their check at the same time: each of these waits until the other has started.
func TestServersAreCheckedInParallel(t *testing.T) {
	t.Parallel()
	both := filepath.Join(t.TempDir(), "both")
	ssetest.Must(t, syscall.Mkfifo(both, 0o600))
	waits := func(at string) string { // an end of the pipe opens when the other one does
		return fmt.Sprintf("{command: [sh, -c, ': %s %s; exec \"$0\"', %q], warm: 0, env: {%s: demo}}", at, both, clitest.Must(os.Executable()), childVariable)
	}
	file := clitest.WriteFile(t, "gw.yaml", "servers:\n  one: "+waits("<")+"\n  two: "+waits(">")+"\n")
	p := start(t, "-c", file, "--addr", "127.0.0.1:0")
	p.out.await(t, 2, ": 2 tools (")
}

// A program that sends back what it gets is no MCP server, and the log says so when a client comes.
func TestLogOfAProgramThatSendsBack(t *testing.T) {
	t.Parallel()
	p := start(t, "--no-start-check", "--warm", "0", "--addr", "127.0.0.1:0", "--", "cat")
	if _, err := tryConnect(t, p.url, ""); err == nil {
		t.Errorf("a client has a session with cat")
	}
	p.log.await(t, 1, "sends back")
}
