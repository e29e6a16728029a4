package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// echoed is a server whose tool says with which header it was called. It counts the sessions that it has opened.
type echoed struct {
	*httptest.Server
	mu       sync.Mutex
	sessions int
}

func newEchoed(t *testing.T, header string) *echoed {
	t.Helper()
	e := new(echoed)
	server := mcp.NewServer(&mcp.Implementation{Name: "echoed", Version: "1"}, &mcp.ServerOptions{
		InitializedHandler: func(context.Context, *mcp.InitializedRequest) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.sessions++
		},
	})
	mcp.AddTool(server, &mcp.Tool{Name: "header"}, func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "[" + r.Extra.Header.Get(header) + "]"}}}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	e.Server = httptest.NewServer(handler)
	t.Cleanup(func() {
		e.Close()
		for session := range server.Sessions() {
			_ = session.Close()
		}
	})
	return e
}

func (e *echoed) opened() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sessions
}

// headerTold returns what the tool of newEchoed says to a client.
func headerTold(t *testing.T, session *mcp.ClientSession) string {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "header", Arguments: map[string]any{}})
	ssetest.Must(t, err)
	return result.Content[0].(*mcp.TextContent).Text
}

// A header that has another name at the server is part of who a client is, also of clients of MCP 2026-07-28, which have
// no sessions: those with the same value share one session with the server, and nobody's call goes out with the value of
// somebody else.
func TestRenamedHeaderTellsClientsApart(t *testing.T) {
	remote := newEchoed(t, "Authorization")
	p := startWith(t, clitest.State(t), "--addr", "127.0.0.1:0", "--url", remote.URL+"/mcp",
		"--no-start-check", "--forward-header", "X-Jira-Token: Authorization")
	client := newClient(t, &http.Transport{})
	call := func(header ...string) string {
		req := ssetest.Request(t.Context(), http.MethodPost, p.url, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+
			`"name":"header","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`,
			append(header, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "header")...)
		res, err := client.Do(req)
		ssetest.Must(t, err)
		defer res.Body.Close()
		return string(clitest.Must(io.ReadAll(res.Body)))
	}
	for range 2 {
		for _, token := range []string{"Bearer of-ada", "Bearer of-bob"} {
			ssetest.WantText(t, token, call("X-Jira-Token", token), `"text":"[`+token+`]"`)
		}
	}
	ssetest.WantText(t, "without the header", call(), `"text":"[]"`)
	ssetest.WantText(t, "the name at the server is not read", call("Authorization", "Bearer of-ada"), `"text":"[]"`)
	ssetest.Want(t, "sessions", remote.opened(), 3)
}

// A secret that a program prints is taken anew at each reload. If the program fails then, nothing changes.
func TestReloadRunsTheProgramsOfSecrets(t *testing.T) {
	t.Parallel()
	remote := newEchoed(t, "X-Key")
	key := clitest.WriteFile(t, "key", "first-secret\n")
	l := startLive(t, fmt.Sprintf("url: %s/mcp\nheader: {X-Key: {exec: [/bin/cat, %q]}}\n", remote.URL, key))
	want := func(when, value string) {
		t.Helper()
		ssetest.Want(t, when, headerTold(t, connectTo(t, l.url)), "["+value+"]")
	}
	want("at the start", "first-secret")
	ssetest.Must(t, os.WriteFile(key, []byte("second-secret\n"), 0o600))
	want("before a reload", "first-secret")
	l.wantReload(t)
	want("after a reload", "second-secret")
	ssetest.Must(t, os.Remove(key))
	l.wantRefusal(t, "")
	want("after a reload in which the program fails", "second-secret")
	l.stop()
	for _, secret := range []string{"first-secret", "second-secret"} {
		ssetest.Want(t, "the output has "+secret, strings.Contains(l.log.String()+l.out.String(), secret), false)
	}
}
