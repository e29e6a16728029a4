//go:build all

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// writeGuarded writes a file with a server that anybody may use and one that wants a login, and the view of both that
// clients get.
func writeGuarded(t *testing.T) (file string) {
	t.Helper()
	_, base := startProtected(t, startIssuer(t), "")
	return writeViews(t, map[string]any{
		"free": entryOf(fake(t)), "guarded": map[string]any{"url": base + "/jwt/mcp"},
	}, map[string]any{"gateway": map[string]any{"servers": map[string]any{"free": nil, "guarded": nil}}})
}

// namesOf returns the names of the tools that an agent has, in order.
func (a *agent) namesOf(t *testing.T) (names []string) {
	t.Helper()
	tools, err := a.ListTools(within(t), nil)
	ssetest.Must(t, err)
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// Windows that share the sse-server of a file open one page for a server of it that wants a login, each in its own
// environment: the shared one has no browser. All have the tools of that server after it, and so has a window that comes
// later.
func TestSharedProgramOpensTheBrowserAtAWindow(t *testing.T) {
	t.Parallel()
	file := writeGuarded(t)
	endShared(t)
	script, pages := newBrowser(t)
	start := func() *agent {
		return startAgentIn(t, "", []string{"BROWSER=" + script}, overStdio(t, patient("--connect", "--config", file)...)...)
	}
	use := func(a *agent) {
		a.awaitTools(t, "free__echo", "guarded__echo")
		ssetest.Want(t, "echo", a.call(t, "guarded__echo", map[string]any{"message": "hi"}), "hi")
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { use(start()) })
	}
	all.Wait()
	ssetest.Want(t, "pages that were opened", len(pages()), 1)
	later := start()
	use(later)
	ssetest.Want(t, "the window that comes later is asked to log in", slices.Contains(later.namesOf(t), "guarded__login"), false)
	ssetest.Want(t, "pages that were opened", len(pages()), 1)
}

// In a view the tools of a server at which nobody is logged in ask for that, and those of the others go on. After the
// login its tools appear, and a call goes through: in a program for one client, and in one that windows share.
func TestViewWithAServerThatWaitsForALogin(t *testing.T) {
	for name, args := range map[string][]string{
		"one client": {"--no-login"}, "shared": {"--connect"}, "shared, without a browser": {"--connect", "--no-login"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := writeGuarded(t)
			if slices.Contains(args, "--connect") {
				endShared(t)
			}
			env := []string{"BROWSER=", "DISPLAY=", "WAYLAND_DISPLAY="}
			script, pages := newBrowser(t)
			if slices.Contains(args, "--no-login") {
				env = []string{"BROWSER=" + script}
			}
			a := startAgentIn(t, "", env, overStdio(t, patient(append(args, "--config", file)...)...)...)
			a.awaitTools(t, "free__echo", "guarded__login")
			text, isError := callText(t, a.ClientSession, "guarded__login", nil)
			ssetest.Want(t, "the tool login fails", isError, false)
			ssetest.Want(t, "echo of the other server", a.call(t, "free__echo", map[string]any{"message": "hi"}), "hi")
			ssetest.WantText(t, "the last page", openLink(t, linkIn(t, text)), "You are logged in at ")
			a.awaitTools(t, "free__echo", "guarded__echo")
			ssetest.Want(t, "tools of no server", strings.Join(slices.DeleteFunc(a.namesOf(t), func(name string) bool {
				return !strings.HasSuffix(name, "__login")
			}), " "), "")
			for { // until the test is over: the session of before may have ended just now
				result, err := a.CallTool(within(t), &mcp.CallToolParams{Name: "guarded__echo", Arguments: map[string]any{"message": "hi"}})
				ssetest.Must(t, err)
				if !result.IsError {
					ssetest.Want(t, "echo after the login", result.Content[0].(*mcp.TextContent).Text, "hi")
					break
				}
			}
			ssetest.Want(t, "pages that were opened", len(pages()), 0)
		})
	}
}

// A window whose server waits for a login that a gateway has begun, and of which it has only given the link, opens the
// browser for that: the clients of both have the tools of the server after it.
func TestWindowOpensTheLoginOfAGateway(t *testing.T) {
	t.Parallel()
	_, base := startProtected(t, startIssuer(t), "")
	server := base + "/jwt/mcp"
	session := connectSDK(t, startGateway(t, "--url", server).url)
	text, isError := callText(t, session, "login", nil)
	ssetest.Want(t, "the tool login fails", isError, false)
	linkIn(t, text)
	script, pages := newBrowser(t)
	for _, args := range [][]string{{"--url", server}, {"--no-login", "--url", server}, {"--url", server}} {
		a := startAgentIn(t, "", []string{"BROWSER=" + script}, overStdio(t, patient(args...)...)...)
		a.awaitTools(t, "echo")
	}
	for isError = true; isError; { // until the test is over
		text, isError = callEcho(t, session)
	}
	ssetest.Want(t, "echo at the gateway", text, "hi")
	ssetest.Want(t, "pages that were opened", len(pages()), 1)
}

// Windows that share a program by its name open the browser too.
func TestProgramSharedByNameOpensTheBrowser(t *testing.T) {
	t.Parallel()
	_, base := startProtected(t, startIssuer(t), "")
	endShared(t)
	script, pages := newBrowser(t)
	for range 2 {
		a := startAgentIn(t, "", []string{"BROWSER=" + script}, overStdio(t, patient("--connect", "http://127.0.0.1:1/mcp", "--url", base+"/jwt/mcp")...)...)
		a.awaitTools(t, "echo")
		ssetest.Want(t, "echo", a.call(t, "echo", map[string]any{"message": "hi"}), "hi")
	}
	ssetest.Want(t, "pages that were opened", len(pages()), 1)
}

// A client over stdio that has its user visit addresses gets the link of the login by the error -32042, also behind a
// program that windows share, is told when the login is made, and its call works then.
func TestVisitOfALoginOverStdio(t *testing.T) {
	for name, shared := range map[string][]string{"alone": nil, "shared": {"--connect", "http://127.0.0.1:1/mcp"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, base := startProtected(t, startIssuer(t), "")
			if shared != nil {
				endShared(t)
			}
			completed := make(chan string, 8)
			client := mcp.NewClient(&mcp.Implementation{Name: "visitor", Version: "1"}, &mcp.ClientOptions{
				Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}},
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "decline"}, nil
				},
				ElicitationCompleteHandler: func(_ context.Context, n *mcp.ElicitationCompleteNotificationRequest) {
					completed <- n.Params.ElicitationID
				},
			})
			args := overStdio(t, patient(append(shared, "--no-login", "--url", base+"/jwt/mcp")...)...)
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Env, cmd.SysProcAttr = ssetest.WithState(t), endsWithParent()
			session, err := client.Connect(within(t), &mcp.CommandTransport{Command: cmd}, nil)
			ssetest.Must(t, err)
			t.Cleanup(func() { _ = session.Close() })
			_, err = session.CallTool(within(t), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"message": "hi"}})
			refused, ok := errors.AsType[*jsonrpc.Error](err)
			if !ok || refused.Code != mcp.CodeURLElicitationRequired {
				t.Fatalf("a call without the login: %v", err)
			}
			var data struct {
				Elicitations []*mcp.ElicitParams `json:"elicitations"`
			}
			ssetest.Must(t, json.Unmarshal(refused.Data, &data))
			ssetest.Want(t, "visits", len(data.Elicitations), 1)
			ssetest.WantText(t, "the last page", openLink(t, data.Elicitations[0].URL), "You are logged in at ")
			select {
			case id := <-completed:
				ssetest.Want(t, "the visit that is complete", id, data.Elicitations[0].ElicitationID)
			case <-within(t).Done():
				t.Fatal("the client is not told that the login is made")
			}
			text, isError := callEcho(t, session)
			ssetest.Want(t, "the call after the login fails", isError, false)
			ssetest.Want(t, "the call after the login", text, "hi")
		})
	}
}

// Of several servers that want a login, each opens the browser at the first call of its own tool alone, which waits for
// the login: a client that comes gets no tab for each.
func TestSeveralServersOpenTheBrowserAtCalls(t *testing.T) {
	t.Parallel()
	issuer := startIssuer(t)
	servers := map[string]any{}
	for _, name := range []string{"one", "two"} {
		_, base := startProtected(t, issuer, "")
		servers[name] = map[string]any{"url": base + "/jwt/mcp"}
	}
	file := writeViews(t, servers, map[string]any{"gateway": map[string]any{"servers": map[string]any{"one": nil, "two": nil}}})
	endShared(t)
	script, pages := newBrowser(t)
	a := startAgentIn(t, "", []string{"BROWSER=" + script}, overStdio(t, patient("--connect", "--config", file)...)...)
	a.awaitTools(t, "one__login", "two__login")
	for i, name := range []string{"one", "two"} {
		ssetest.Want(t, "pages that were opened before the call", len(pages()), i)
		text, _ := callText(t, a.ClientSession, name+"__login", nil)
		ssetest.WantText(t, "the answer after the login", text, "Somebody has logged in. The tools of the server are listed now")
		a.awaitTools(t, name+"__echo")
		ssetest.Want(t, "echo of "+name, a.call(t, name+"__echo", map[string]any{"message": "hi"}), "hi")
	}
	ssetest.Want(t, "pages that were opened", len(pages()), 2)
}
