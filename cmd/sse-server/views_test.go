package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// toolsOf returns the names of the tools that a client sees.
func toolsOf(t *testing.T, session *mcp.ClientSession) string {
	t.Helper()
	list, err := session.ListTools(t.Context(), nil)
	ssetest.Must(t, err)
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

// awaitTools lists until a client sees these tools: it is told of a server that boots slowly.
func awaitTools(t *testing.T, session *mcp.ClientSession, want string) {
	t.Helper()
	awaitText(t, "tools, which should be "+want, func() string { return toolsOf(t, session) }, func(got string) bool { return got == want })
}

// awaitText looks at a text until it is one that is wanted.
func awaitText(t *testing.T, what string, look func() string, isWanted func(string) bool) {
	t.Helper()
	tick, deadline := time.NewTicker(50*time.Millisecond), time.After(2*time.Minute)
	defer tick.Stop()
	for got := look(); !isWanted(got); got = look() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: it is still %s", what, got)
		}
	}
}

// say calls the tool echo under a name.
func say(t *testing.T, session *mcp.ClientSession, tool string) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"message": "hi"}})
	if err != nil || result.IsError || result.Content[0].(*mcp.TextContent).Text != "hi" {
		t.Errorf("%s: got %v, %v", tool, result, err)
	}
}

// A view is one URL for several servers, over both transports. The log, the banner and the routes for operators have
// it. One signal ends all.
func TestView(t *testing.T) {
	t.Parallel()
	p := startLive(t, "servers:\n  one: "+childConfig(t, "")+"\n  two: {}\n  gone: {command: [no-such-program-at-all]}\n"+
		"views:\n  team: {servers: {one: {exclude: [sleep]}, two: {prefix: \"\", rename: {echo: repeat}}, gone: {}}}\n", "--log-format", "json", "--no-start-check")
	overSSE := connectTo(t, p.server("team"))
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	overHTTP, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: p.server("team"), HTTPClient: newClient(t, &http.Transport{})}, nil)
	ssetest.Must(t, err)
	for _, session := range []*mcp.ClientSession{overSSE, overHTTP} {
		awaitTools(t, session, "one__echo repeat sleep")
		say(t, session, "one__echo")
		say(t, session, "repeat")
		if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "one__sleep"}); err == nil || !strings.Contains(err.Error(), `unknown tool "one__sleep"`) {
			t.Errorf("a tool that is left out: got %v", err)
		}
	}
	ssetest.WantText(t, "the log", p.log.String(), `"views":{"team":"`+p.server("team")+`"}`, `"servers":{"one":`)
	ssetest.WantText(t, "the banner", p.out.String(), "    "+p.server("team")+"   all of them\n    "+p.server("one")+"\n")
	for name, want := range map[string]int{"team": http.StatusOK, "gone": http.StatusServiceUnavailable} {
		if code, body := get(t, p.client, p.admin+"/readyz?server="+name, ""); code != want {
			t.Errorf("%s: got %d %s, want %d", name, code, body, want)
		}
	}
	ssetest.Must(t, overHTTP.Close())
	p.stop()
	p.wantExit(exit.OK)
	if log := p.log.String(); strings.Contains(log, "streams were cut") || !strings.Contains(log, `"stopped"`) {
		t.Errorf("it did not end in order:\n%s", log)
	}
}

// A reload gives a view other servers and rules during a call. The call ends well in the process that has it, the client
// is told of the list, and no stream ends.
func TestReloadOfAView(t *testing.T) {
	t.Parallel()
	servers := "servers:\n  one: " + childConfig(t, "") + "\n  two: {}\n  three: {}\n"
	l := startLive(t, servers+"views:\n  team: {servers: {one: {}, two: {}}}\n", "--no-start-check")
	told, progress := make(chan struct{}, 8), make(chan struct{}, 8)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { told <- struct{}{} },
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { progress <- struct{}{} },
	})
	session, err := client.Connect(t.Context(), &mcp.SSEClientTransport{Endpoint: l.server("team"), HTTPClient: newClient(t, &http.Transport{})}, nil)
	ssetest.Must(t, err)
	defer session.Close()
	awaitTools(t, session, "one__echo one__sleep two__echo two__sleep")
	say(t, session, "one__echo")
	called := make(chan error, 1)
	go func() {
		params := &mcp.CallToolParams{Name: "one__sleep", Arguments: map[string]any{"seconds": 2}}
		params.SetProgressToken("p")
		_, err := session.CallTool(context.WithoutCancel(t.Context()), params)
		called <- err
	}()
	<-progress
	l.write(t, "gw.yaml", servers+"views:\n  team: {servers: {three: {prefix: \"\"}, one: {exclude: [sleep]}}}\n  more: {servers: {two: {}}}\n")
	l.wantReload(t)
	<-told
	ssetest.Want(t, "tools after the reload", toolsOf(t, session), "echo sleep one__echo")
	if err := <-called; err != nil {
		t.Errorf("the call during the reload: %v", err)
	}
	for _, tool := range []string{"echo", "one__echo"} {
		say(t, session, tool)
	}
	for _, tool := range []string{"two__echo", "one__sleep"} {
		if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
			t.Errorf("%s, which is not in the view: got %v", tool, err)
		}
	}
	ssetest.Want(t, "the new view", toolsOf(t, connectTo(t, l.server("more"))), "echo sleep")
	log := l.log.String()
	ssetest.WantText(t, "the log", log, "new: more, team.servers")
	pids := regexp.MustCompile(`pid=(\d+)`).FindAllString(log, -1)
	slices.Sort(pids)
	if got := slices.Compact(pids); len(got) != 1 {
		t.Errorf("got the processes %v, want one", got)
	}
}

// A newcomer has the file of a client with three servers, one of which is dead: one command, and one URL that comes
// first.
func TestNewcomerHasOneURL(t *testing.T) {
	t.Parallel()
	self := clitest.Must(os.Executable())
	file := clitest.WriteFile(t, "claude_desktop_config.json", fmt.Sprintf(`{"mcpServers": {
		"first": {"command": %q, "env": {%q: "demo"}}, "My Second": {"command": %q, "env": {%q: "demo"}}, "dead": {"command": "no-such-program"}}}`,
		self, childVariable, self, childVariable))
	p := start(t, "--config", file, "--addr", "127.0.0.1:0", "--no-start-check")
	at := strings.TrimSuffix(p.url, "/first/mcp")
	ssetest.WantText(t, "the banner", p.out.String(), "sse-server serves 3 servers at\n\n    "+at+"/mcp   all of them\n    "+at+"/first/mcp\n",
		`{"mcpServers":{"mcp":{"url":"`+at+`/mcp"}}}`)
	session := connectTo(t, at+"/mcp")
	awaitTools(t, session, "first__echo first__sleep my-second__echo my-second__sleep")
	say(t, session, "my-second__echo")
	say(t, connectTo(t, at+"/sse"), "first__echo")
	say(t, connectTo(t, at+"/first/mcp"), "echo")

	tokens := clitest.WriteFile(t, "tokens", "alice:"+tokenOfAlice+"\n")
	closed := start(t, "--config", file, "--addr", "127.0.0.1:0", "--no-start-check", "--auth-tokens-file", tokens)
	wantStatus(t, newClient(t, &http.Transport{}), strings.TrimSuffix(closed.url, "/first/mcp")+"/mcp", tokenOfAlice, http.StatusNotFound)
}

// A server that a reload brings may take the path of the view of all, or give it back.
func TestReloadOfTheViewOfAll(t *testing.T) {
	t.Parallel()
	l := startLive(t, "servers: {a: {}, b: {}}\n", "--no-start-check")
	root := strings.TrimSuffix(l.server("x"), "/x/mcp") + "/mcp"
	session := connectTo(t, root)
	ssetest.Want(t, "tools", toolsOf(t, session), "a__echo a__sleep b__echo b__sleep")
	l.write(t, "gw.yaml", "servers: {a: {sessions: shared}, b: {}}\n") // which takes another gateway
	l.wantReload(t)
	say(t, session, "a__echo")
	l.write(t, "gw.yaml", "servers: {c: {}, a: {}}\n")
	l.wantReload(t)
	ssetest.Want(t, "tools of other servers", toolsOf(t, session), "c__echo c__sleep a__echo a__sleep")
	for _, content := range []string{"servers: {mcp: {}, a: {}}\n", "servers: {a: {}}\n", "servers: {a: {}, b: {}}\nviews: {}\n"} {
		l.write(t, "gw.yaml", content)
		l.wantReload(t)
		_ = session.Wait() // an end
		wantStatus(t, l.client, root, "", http.StatusNotFound, "no such route")
		l.write(t, "gw.yaml", "servers: {a: {}, b: {}}\n")
		l.wantReload(t)
		session = connectTo(t, root)
		say(t, session, "b__echo")
	}
	ssetest.WantText(t, "the log", l.log.String(), "gone: mcp", "new: mcp")
}

// A socket that systemd passes may be reached by others: there is no view of all.
func TestNoViewOfAllOnSockets(t *testing.T) {
	t.Parallel()
	socket := clitest.Must(clitest.Must(net.Listen("tcp", "127.0.0.1:0")).(*net.TCPListener).File())
	p := launchMain(t, &Main{Args: []string{"--no-start-check", "-c", clitest.WriteFile(t, "gw.yaml", "servers: {a: {}, b: {}}\n")},
		LookupEnv: clitest.Environment(nil), Sockets: []*os.File{socket}})
	t.Cleanup(p.stop)
	wantStatus(t, newClient(t, &http.Transport{}), strings.TrimSuffix(p.url, "/a/mcp")+"/mcp", "", http.StatusNotFound)
}

// Several servers are one on stdin and stdout, also beside one that is dead. Nothing is left of them after the client.
func TestStdioServesSeveral(t *testing.T) {
	t.Parallel()
	file := clitest.WriteFile(t, "gw.yaml", "servers:\n  one: "+childConfig(t, "")+"\n  two: {}\n  dead: {command: [no-such-program]}\n")
	in, stdin := io.Pipe()
	stdout, out := io.Pipe()
	var log output
	m := &Main{Args: []string{"stdio", "-c", file}, Stdin: in, Stdout: out, Stderr: &log, LookupEnv: clitest.Environment(nil),
		Notify: func(...os.Signal) <-chan os.Signal { return make(chan os.Signal) }}
	code := make(chan int, 1)
	go func() { code <- m.Run() }()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: stdout, Writer: stdin}, nil)
	if err != nil {
		t.Fatalf("connect: %v\n%s", err, log.String())
	}
	awaitTools(t, session, "one__echo one__sleep two__echo two__sleep")
	say(t, session, "one__echo")
	ssetest.Must(t, session.Close())
	if got := <-code; got != exit.OK {
		t.Errorf("ended with %d:\n%s", got, log.String())
	}
}
