package main

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

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
		ssetest.Want(t, "tools", toolsOf(t, session), "one__echo repeat sleep")
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
	ssetest.Want(t, "tools", toolsOf(t, session), "one__echo one__sleep two__echo two__sleep")
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
