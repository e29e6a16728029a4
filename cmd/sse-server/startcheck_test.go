package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/diagnosis"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/terminal"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
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
	p.out.await(t, 1, "          What to do: give it what it asks for with env:.\n")
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
		if text := p.out.String(); strings.Contains(text, fromMemory) || !strings.Contains(p.log.String(), `msg="server started"`) {
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
	const shell = "What to do: name an MCP server: this is a shell, which takes its messages for commands.\n"
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

// silent is a server whose start goes on until it is given up.
type silent struct{}

func (silent) Dial(ctx context.Context) (jsonrpc.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// By default that takes five seconds at most.
func TestWrongStartIsToldWithinFiveSeconds(t *testing.T) {
	c := mustLoad(t, nil, "--", "bash")
	synctest.Test(t, func(t *testing.T) {
		gw, err := gateway.New(silent{}, gateway.Options{})
		ssetest.Must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer func() { ssetest.Must(t, gw.Shutdown(context.WithoutCancel(ctx))) }()
		var out output
		ended := make(chan struct{})
		go func() { // ends with ctx
			defer close(ended)
			(&Main{Stdout: &out, live: new(terminal.Line)}).checkStarts(ctx, map[string]*gateway.Gateway{"": gw}, c)
		}()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		ssetest.WantText(t, "after 5 s", out.String(), "What to do: name an MCP server")
		cancel()
		<-ended
	})
}

// What is told is what the process says that was asked to initialize, not the warm one that started after it.
func TestWrongStartIsToldOfTheProcessThatWasAsked(t *testing.T) {
	t.Parallel()
	goOn := filepath.Join(t.TempDir(), "go-on")
	ssetest.Must(t, syscall.Mkfifo(goOn, 0o600))
	p := launchMain(t, &Main{
		Args:      []string{"--addr", "127.0.0.1:0", "--close-timeout", "50ms", "--", "sh", "-c", `read x; : <"$0"; echo listening on port 3001 >&2; exec sleep 1000`, goOn},
		LookupEnv: clitest.Environment(nil), Silence: 1,
	})
	p.log.await(t, 1, "warm server started")
	ssetest.Must(t, os.WriteFile(goOn, nil, 0)) // returns when the one that was asked has opened it
	p.out.await(t, 1, "    | listening on port 3001\n")
	p.stop()
	p.wantExit(exit.OK)
}

// What programs write that serve HTTP has the port; what others write has not.
func TestProgramsThatServeHTTPAreRecognized(t *testing.T) {
	for line, port := range map[string]string{
		"Server listening on port 3001": "3001", "listening on :8080": "8080", "MCP Streamable HTTP Server listening on port 3000": "3000",
		"INFO:     Uvicorn running on http://127.0.0.1:8000 (Press CTRL+C to quit)": "8000", "Server started on 0.0.0.0:9000": "9000",
		"MCP Server running on stdio": "", "connected to db:5432": "", "Secure MCP Filesystem Server running on stdio | Client 1.2.3": "", "started at 12:30:45": "",
	} {
		got := ""
		if found := servesHTTP.FindStringSubmatch(line); found != nil {
			got = found[1]
		}
		if got != port {
			t.Errorf("%s: got %q, want %q", line, got, port)
		}
	}
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

// Each remedy is found by what real programs say, and by what sse-server says of them. What one of both says
// is not taken for what the other would mean by it.
func TestRemedies(t *testing.T) {
	const ended, late = "the server ended: exit status 1; stderr: ", "the server did not answer within 5s (start-timeout); its stderr says: "
	command, remote := []string{"--", "x"}, []string{"--url", "https://user:secret@127.0.0.1:1/nope?key=secret"}
	inFile := []string{"-c", clitest.WriteFile(t, "gw.yaml", "command: [x]\n")}
	remoteInFile := []string{"-c", clitest.WriteFile(t, "gw.yaml", "url: http://127.0.0.1:1/mcp\n")}
	var met []string
	for _, test := range []struct {
		args       []string
		says, want string
	}{
		{command, "could not connect to the server: connect to http://127.0.0.1:8080/mcp: the sse-server of this name differs in the variable MY_TOKEN: stop it (kill 7), or give --connect another port", "stop it (kill 7), or give --connect another port"},
		{command, "connect to http://127.0.0.1:8080/mcp: the sse-server of this name differs in the directory: stop it (kill 7), or give --connect another port; with --dir DIR, and files by their whole paths, it is one for all directories", "another port; with --dir DIR, and files"},
		{command, ended + "npm error 404  '@x/y@*' is not in this registry.", "name of the package"},
		{command, late + "bash: line 1: {jsonrpc:2.0,id:0,method:initialize: command not found", "this is a shell"},
		{command, late + "zsh: command not found: jsonrpc:2.0", "this is a shell"},
		{command, late + `DEBUG received {"jsonrpc":"2.0","id":1}`, "more time with --start-timeout"},
		{[]string{"--", "/usr/bin/python3.12", "-i"}, "the server did not answer within 5s (start-timeout)", "a shell or interpreter alone"},
		{[]string{"--", "python3", "server.py"}, "the server did not answer within 5s (start-timeout)", "more time with --start-timeout"},
		{[]string{"--", "fish"}, `the server could not be started: start "fish": there is no such program in PATH`, "spelling of the program"},
		{command, late + "Listening on port 3001", "serve it with --url http://127.0.0.1:3001/mcp"},
		{inFile, late + "Listening on port 3001", "serve it with url: http://127.0.0.1:3001/mcp"},
		{command, ended + "× No solution found: Because no-such was not found in the package registry", "name of the package"},
		{command, ended + "httpx.HTTPStatusError: Client error '404 Not Found' for url 'https://api.example.com'", "run the command alone"},
		{command, `start "./x": there is no such file, or the interpreter in its first line is missing: check the path`, "check the path"},
		{command, `start "./x": it may not be executed: check its permissions (chmod +x) and those of its folder`, "check its permissions (chmod +x)"},
		{command, `start "x": its working directory "/gone" cannot be used: create it or give another`, "create it or give another"},
		{command, `start "/srv": it is a directory: give the path of a program`, "give the path of a program"},
		{inFile, ended + "Error: Cannot find module '/srv/my--app/x.js'", "there is no file /srv/my--app/x.js"},
		{command, ended + "getaddrinfo ENOTFOUND registry.npmjs.org", "reaches the network"},
		{remote, "could not connect to the server: nohost.invalid:80: no address is known for this name", "reaches the network"},
		{command, ended + "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock", "start Docker"},
		{command, ended + "docker: permission denied while trying to connect to unix:///var/run/docker.sock", "start Docker"},
		{command, ended + "Unable to find image 'nope:latest' locally | docker: Error response from daemon: pull access denied for nope", "name of the image"},
		{command, late + "Unable to find image 'mcp/fetch:latest' locally | latest: Pulling from mcp/fetch", "the image is still being pulled: run docker pull mcp/fetch:latest first, or give it more time with --start-timeout"},
		{command, late + "Unable to find image '$(reboot)' locally | latest: Pulling from mcp/fetch", "run docker pull with the image first"},
		{command, late + "1f2a: Pulling fs layer | 1f2a: Download complete", "run docker pull with the image first"},
		{command, ended + "Error: Cannot find module '/srv/dist/index.js'", "there is no file /srv/dist/index.js: check the path"},
		{command, ended + "Error: Cannot find module 'express'", "install what the program needs"},
		{command, ended + "Error: Cannot find module '/srv/lib.js' imported from /srv/index.js", "install what the program needs"},
		{command, ended + "/usr/bin/python3: No module named mcp_server_x", "install the Python module mcp_server_x"},
		{command, ended + "ModuleNotFoundError: No module named 'mcp'", "install what the program needs"},
		{command, ended + "python3: can't open file '/x/server.py': [Errno 2] No such file or directory", "check the path"},
		{command, ended + "Error: EACCES: permission denied, open '/etc/key'", "this user may not"},
		{command, ended + "PermissionError: [Errno 13] Permission denied: '/etc/key'", "this user may not"},
		{command, `the server could not be started: start "./x": it has no #! line, or is made for another machine`, "#!/bin/sh"},
		{command, ended + "bash: line 1: foo: command not found", "spelling of the program"},
		{command, ended + "sh: 1: no-such-tool: not found", "spelling of the program"},
		{command, `the server could not be started: start "uvx": there is no such program in PATH`, "spelling of the program"},
		{command, ended + "Error: listen EADDRINUSE: address already in use :::3000", "option for stdio"},
		{command, ended + "Error: GITHUB_TOKEN is required", "with --env NAME=VALUE"},
		{command, ended + "Error: not logged in. Run foo login first", "log in as it says"},
		{command, ended + "no credentials were found: please run gcloud auth application-default login", "log in as it says"},
		{command, ended + "You need to sign in. Please sign-in with the browser", "log in as it says"},
		{command, `the server could not be started: start "./x": its first line ends as lines of Windows do, so its interpreter is not found: save it with the line ends of Unix (LF)`, "save it with the line ends of Unix"},
		{remote, "could not connect to the server: 127.0.0.1:9: the server speaks no TLS there, so it is not HTTPS", "use http:// in --url"},
		{inFile, ended + "Error: GITHUB_TOKEN is required", "with env:"},
		{command, ended + "Error: DATABASE_URL is required", "--env NAME=VALUE"},
		{command, ended + "please set SMTP_HOST", "--env NAME=VALUE"},
		{command, "the server refused initialize: Missing API key (code -32603)", "--env NAME=VALUE"},
		{command, ended + "ERROR: duplicate primary_key", "run the command alone"},
		{command, ended + "dial tcp 127.0.0.1:1: connect: connection refused", "start what the program connects to"},
		{command, ended + "psycopg2.OperationalError: Connection refused", "start what the program connects to"},
		{command, ended + "Error: connect ECONNREFUSED 127.0.0.1:5432", "start what the program connects to"},
		{remote, "could not connect to the server: 127.0.0.1:9: nothing listens there (connection refused)", "start the server that --url names"},
		{remote, "could not connect to the server: mcp.example.com:80: nothing listens at the proxy (connection refused by 127.0.0.1:3128)", "check the proxy that HTTP_PROXY or HTTPS_PROXY names"},
		{remote, "could not connect to the server: mcp.example.com:80: no address is known for the proxy, proxy.example", "check the proxy that HTTP_PROXY or HTTPS_PROXY names"},
		{remote, "could not connect to the server: http://a/mcp: the server redirects to https://b/mcp (302 Found): configure that address", "put the address to which it redirects into --url"},
		{remote, `the server refused initialize: the server's answer cannot be used: it is neither JSON nor an event stream, but "text/html; charset=utf-8": check the address (code -32603)`, "check the path, such as /mcp; a login page"},
		{remoteInFile, "could not connect to the server: 127.0.0.1:9: nothing listens there (connection refused)", "start the server that url: names"},
		{remote, "could not connect to the server: 127.0.0.1:9: the server answers in plain HTTP, not HTTPS", "use http:// in --url"},
		{remote, "no MCP server found: it answered 400 Bad Request (Client sent an HTTP request to an HTTPS server.) to POST", "use https:// in --url"},
		{remoteInFile, "no MCP server found: it answered 400 Bad Request (Client sent an HTTP request to an HTTPS server.) to POST", "use https:// in url:"},
		{remote, "no MCP server found: it answered 404 Not Found (no such route: MCP is at /a/mcp) to POST and 404 Not Found to GET", "use the path that it names: https://127.0.0.1:1/a/mcp"},
		{remote, "no MCP server found: it answered 404 Not Found to POST and 404 Not Found to GET: check the path", "open the address with curl"},
		{remote, "tls: failed to verify certificate: x509: unknown authority", "certificate"},
		{remote, "the server refused access (401 Unauthorized): configure the credentials", "--header 'Authorization: Bearer ${TOKEN}'"},
		{remoteInFile, "the server refused access (401 Unauthorized): configure the credentials", "give it credentials, as with header: 'Authorization: Bearer ${TOKEN}'"},
		{command, "the program only sends back what it gets", "serve a program that speaks MCP on stdin and stdout; many need an argument such as stdio"},
		{command, "list tools: time is up", "--request-timeout and --start-timeout"},
		{inFile, "list tools: time is up", "request-timeout: and start-timeout:"},
		{command, "the server did not answer within 5s (start-timeout)", "more time with --start-timeout"},
		{command, "the server did not answer within 5s (start-timeout); it was asked for HTTP+SSE, and no endpoint event has come by GET", "a proxy in front of the server must not hold back its event stream"},
		{inFile, "the server did not answer within 5s (start-timeout)", "more time with start-timeout:"},
		{command, ended + "ValueError: error in timezone data", "run the command alone"},
		{command, ended + "deadline of the license has passed", "run the command alone"},
		{command, ended + "error: unknown option '--x'", "check the arguments of the command"},
		{command, ended + "unknown command: docker compose", "check the arguments of the command"},
		{command, ended + "server.py: error: unrecognized arguments: --x", "check the arguments of the command"},
		{command, ended + "something else", "run the command alone"},
	} {
		got := remedyFor(mustLoad(t, nil, test.args...).Each()[0], test.says)
		if !strings.Contains(got, test.want) || strings.Contains(got, "secret") {
			t.Errorf("%q: got %q, want %q", test.says, got, test.want)
		}
		met = append(met, got)
	}
	for _, remedy := range remedies {
		start, _, _ := strings.Cut(remedy.what, "$")
		if !slices.ContainsFunc(met, func(got string) bool { return strings.HasPrefix(got, start) }) {
			t.Errorf("no program says what leads to %q", remedy.what)
		}
	}
}

// What servers say cannot steer the terminal.
func TestControlCharactersAreVisible(t *testing.T) {
	const evil = "x\x1b]0;evil\a"
	var out bytes.Buffer
	m := &Main{Stdout: &out}
	m.tellStep(diagnosis.Step{Name: evil, Detail: evil, Remedy: evil})
	m.tellLosses("cursor", clients.Offer{Name: evil, Tools: []clients.Tool{{Name: strings.Repeat(evil, 10)}}})
	(&startCheck{out: &out, live: new(terminal.Line)}).say(evil, failed(mustLoad(t, nil, "--", "x").Each()[0], 0, errors.New(evil+"; stderr: "+evil))...)
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

// failing is a server whose start takes a second and fails. It counts the starts that go on at a time.
type failing struct {
	mu        sync.Mutex
	now, most int
}

func (f *failing) Dial(context.Context) (jsonrpc.Conn, error) {
	f.count(1)
	defer f.count(-1)
	time.Sleep(time.Second)
	return nil, errors.New("it fails")
}

func (f *failing) count(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now += n
	f.most = max(f.most, f.now)
}

// As many servers are checked at a time as there are processors.
func TestAsManyServersAreCheckedAsThereAreProcessors(t *testing.T) {
	cores := runtime.GOMAXPROCS(0)
	file := "servers:\n"
	for n := range 3 * cores {
		file += fmt.Sprintf("  s%d: {command: [sh]}\n", n)
	}
	c := mustLoad(t, nil, "-c", clitest.WriteFile(t, "gw.yaml", file))
	synctest.Test(t, func(t *testing.T) {
		f := new(failing)
		gateways := map[string]*gateway.Gateway{}
		for _, s := range c.Each() {
			gw, err := gateway.New(f, gateway.Options{})
			ssetest.Must(t, err)
			defer func() { ssetest.Must(t, gw.Shutdown(t.Context())) }()
			gateways[s.Name] = gw
		}
		var out bytes.Buffer
		began := time.Now()
		(&Main{Stdout: &out, live: new(terminal.Line)}).checkStarts(t.Context(), gateways, c)
		ssetest.Want(t, "servers that have failed", strings.Count(out.String(), "FAILED after 1.0 s: "), 3*cores)
		ssetest.Want(t, "checks at a time", f.most, cores)
		ssetest.Want(t, "time", time.Since(began), 3*time.Second)
	})
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
