//lint:file-ignore SA1019 SEP-2577 deprecates sampling, roots and logging; clients and servers use them as long as they exist.

package mcpgo_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	mcpgotypes "github.com/mark3labs/mcp-go/mcp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// waitFor waits until there is what holds, and looks at each of news.
func waitFor(t testing.TB, news <-chan struct{}, holds func() bool, what func() string) {
	t.Helper()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	for !holds() {
		select {
		case <-news:
		case <-limit.C:
			t.Fatalf("waited in vain for %s", what())
		}
	}
}

// journal is what a client has seen. It is safe for concurrent use.
type journal struct {
	mu    sync.Mutex
	lines []string
	news  chan struct{}
}

func newJournal() *journal { return &journal{news: make(chan struct{}, 1)} }

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
	select {
	case j.news <- struct{}{}:
	default:
	}
}

// await waits until there are n lines with text.
func (j *journal) await(t *testing.T, text string, n int) {
	t.Helper()
	waitFor(t, j.news, func() bool { return strings.Count(strings.Join(j.sorted(), "\n"), text) >= n }, func() string {
		return fmt.Sprintf("%d × %s in %q", n, text, j.sorted())
	})
}

func (j *journal) sorted() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Sorted(slices.Values(j.lines))
}

// The clients of both SDKs, with the last version of MCP that has sessions, see the same of a server served by this package as of one
// served by mcp-go itself.
func TestClients(t *testing.T) {
	for _, test := range []struct {
		name string
		use  func(t *testing.T, s side) []string
	}{
		{"go-sdk", useGoSDK},
		{"mcp-go", useMCPGo},
	} {
		t.Run(test.name, func(t *testing.T) {
			theirLog, ourLog := test.use(t, theirs(t)), test.use(t, ours(t))
			if len(ourLog) < 15 || !slices.Equal(ourLog, theirLog) {
				t.Errorf("got %d lines\n%s\nwant, as with mcp-go's own\n%s", len(ourLog), without(ourLog, theirLog), without(theirLog, ourLog))
			}
		})
	}
}

func useGoSDK(t *testing.T, s side) []string {
	j := newJournal()
	session := connectGoSDK(t, s, j)
	ctx := t.Context()
	info := session.InitializeResult()
	j.add("%s %s, %s, %s", info.ServerInfo.Name, info.ServerInfo.Version, info.Instructions, info.ProtocolVersion)
	tools, err := session.ListTools(ctx, nil)
	j.add("tools %s, %v", toolNames(tools), err)
	for _, tool := range []string{"echo", "refuse", "fail", "panic", "nosuch", "addtool", "log", "update"} {
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"text": "hi"}})
		j.add("%s: %s, %v", tool, textOf(result), err)
	}
	j.await(t, "tool list changed", 1)
	j.await(t, "logged error", 1)
	j.await(t, "updated test://a", 1)
	j.add("level: %v", session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "debug"}))
	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "log"})
	j.add("log: %v", err)
	j.await(t, "logged", 4)
	params := &mcp.CallToolParams{Name: "progress"}
	params.SetProgressToken("p")
	_, err = session.CallTool(ctx, params)
	j.add("progress: %v", err)
	j.await(t, "progress of", 3)
	read, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test://b/5"})
	j.add("read %s, %v", read.Contents[0].Text, err)
	prompt, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "greet", Arguments: map[string]string{"name": "Ada"}})
	j.add("prompt %s, %v", prompt.Messages[0].Content.(*mcp.TextContent).Text, err)
	j.add("ping %v, subscribe %v", session.Ping(ctx, nil), session.Subscribe(ctx, &mcp.SubscribeParams{URI: "test://a"}))
	cancelled, cancel := context.WithCancel(ctx)
	waited := make(chan error, 1)
	go func() {
		_, err := session.CallTool(cancelled, &mcp.CallToolParams{Name: "wait"})
		waited <- err
	}()
	s.server.await(t, "waits")
	cancel()
	j.add("wait: %v", <-waited)
	s.server.await(t, "wait ends: context canceled")
	_ = session.Close()
	s.server.await(t, "unregistered")
	return j.sorted()
}

func connectGoSDK(t *testing.T, s side, j *journal) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "go-sdk", Version: "1"}, &mcp.ClientOptions{
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m1", Content: &mcp.TextContent{Text: "4"}}, nil
		},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"asked": r.Params.Message}}, nil
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { j.add("tool list changed") },
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
			j.add("logged %s: %v", r.Params.Level, r.Params.Data)
		},
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { j.add("updated %s", r.Params.URI) },
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			j.add("progress of %v: %v", r.Params.ProgressToken, r.Params.Progress)
		},
	})
	c.AddRoots(&mcp.Root{URI: "file:///work", Name: "w"})
	session, err := c.Connect(t.Context(), &mcp.SSEClientTransport{Endpoint: s.url, HTTPClient: s.client},
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func toolNames(l *mcp.ListToolsResult) string {
	var names []string
	for _, tool := range l.Tools {
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

func textOf(r *mcp.CallToolResult) string {
	if r == nil || len(r.Content) == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%s %t", r.Content[0].(*mcp.TextContent).Text, r.IsError)
}

// The server asks the client of the go-sdk, which mcp-go's own SSE server cannot.
func TestServerAsksGoSDK(t *testing.T) {
	session := connectGoSDK(t, ours(t), newJournal())
	for tool, want := range map[string]string{
		"sample": "m1 says {{<nil>} <nil> text 4}", "elicit": "accept map[asked:name?]", "roots": "[{<nil> file:///work w}]",
	} {
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool})
		if err != nil || textOf(result) != want+" false" {
			t.Errorf("%s: got %s, %v, want %s", tool, textOf(result), err, want)
		}
	}
}

func useMCPGo(t *testing.T, s side) []string {
	j := newJournal()
	c := connectMCPGo(t, s, j)
	ctx := t.Context()
	tools, err := c.ListTools(ctx, mcpgotypes.ListToolsRequest{})
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	j.add("tools %s, %v", names, err)
	for _, tool := range []string{"echo", "refuse", "fail", "panic", "nosuch", "addtool", "log", "update"} {
		var r mcpgotypes.CallToolRequest
		r.Params.Name, r.Params.Arguments = tool, map[string]any{"text": "hi"}
		result, err := c.CallTool(ctx, r)
		j.add("%s: %+v, %v", tool, result, err)
	}
	j.await(t, "notifications/tools/list_changed", 1)
	j.await(t, "at error", 1)
	j.await(t, "test://a", 1)
	j.add("level: %v", c.SetLevel(ctx, mcpgotypes.SetLevelRequest{Params: mcpgotypes.SetLevelParams{Level: "debug"}}))
	for _, tool := range []string{"log", "progress"} {
		var r mcpgotypes.CallToolRequest
		r.Params.Name, r.Params.Meta = tool, &mcpgotypes.Meta{ProgressToken: "p"}
		_, err := c.CallTool(ctx, r)
		j.add("%s: %v", tool, err)
	}
	j.await(t, "at ", 4)
	j.await(t, "notifications/progress", 3)
	var read mcpgotypes.ReadResourceRequest
	read.Params.URI = "test://b/5"
	resource, err := c.ReadResource(ctx, read)
	j.add("read %+v, %v", resource, err)
	var get mcpgotypes.GetPromptRequest
	get.Params.Name, get.Params.Arguments = "greet", map[string]string{"name": "Ada"}
	prompt, err := c.GetPrompt(ctx, get)
	j.add("prompt %+v, %v", prompt, err)
	j.add("ping %v", c.Ping(ctx))
	_ = c.Close()
	s.server.await(t, "unregistered")
	return j.sorted()
}

func connectMCPGo(t *testing.T, s side, j *journal) *client.Client {
	t.Helper()
	sse, err := transport.NewSSE(s.url, transport.WithHTTPClient(s.client))
	if err != nil {
		t.Fatal(err)
	}
	c := client.NewClient(sse)
	c.OnNotification(func(n mcpgotypes.JSONRPCNotification) { j.add("%s %v", n.Method, n.Params.AdditionalFields) })
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	var hello mcpgotypes.InitializeRequest
	hello.Params.ProtocolVersion = "2025-06-18"
	hello.Params.ClientInfo = mcpgotypes.Implementation{Name: "mcp-go", Version: "1"}
	info, err := c.Initialize(t.Context(), hello)
	if err != nil {
		t.Fatal(err)
	}
	j.add("%s %s, %s, %s", info.ServerInfo.Name, info.ServerInfo.Version, info.Instructions, info.ProtocolVersion)
	return c
}
