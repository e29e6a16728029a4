//lint:file-ignore SA1019 MCP 2026-07-28 deprecates what HTTP+SSE clients use.

package gosdk_test

import (
	"context"
	"fmt"
	"testing"

	mcpgo "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	types "github.com/mark3labs/mcp-go/mcp"
)

// TestFeaturesWithTheClientOfMCPGo is TestFeaturesAreThoseOfTheSDK with the other client,
// whose HTTP+SSE transport serves no requests of servers.
func TestFeaturesWithTheClientOfMCPGo(t *testing.T) {
	f := feature{play: playMCPGo}
	want := journalOf(t, theirs, f)
	if got := journalOf(t, ours, f); got != want {
		t.Errorf("only with ours:\n%s\n\nonly with theirs:\n%s", without(got, want), without(want, got))
	}
}

func playMCPGo(w *world) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	sse, err := transport.NewSSE(w.url, transport.WithHTTPClient(w.http))
	if err != nil {
		w.t.Fatal(err)
	}
	c := mcpgo.NewClient(sse, mcpgo.WithLegacyProtocolOnly()) // go-sdk's handler answers nothing to the newer one
	defer func() { _ = c.Close() }()
	c.OnNotification(func(n types.JSONRPCNotification) {
		w.saw.add("mcp-go: %s %s", n.Method, asJSON(n.Params))
	})
	if err := c.Start(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	var hello types.InitializeRequest
	hello.Params.ProtocolVersion = types.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = types.Implementation{Name: "mcp-go", Version: "0"}
	welcome, err := c.Initialize(ctx, hello)
	w.result("initialize", welcome, err)
	w.saw.await(1, "server: initialized by mcp-go")
	tools, err := c.ListTools(ctx, types.ListToolsRequest{})
	w.result("tools", tools, err)
	call := func(tool string, args map[string]any) {
		var r types.CallToolRequest
		r.Params.Name, r.Params.Arguments = tool, args
		r.Params.Meta = &types.Meta{ProgressToken: "token"}
		result, err := c.CallTool(ctx, r)
		w.result(tool, result, err)
	}
	for _, tool := range []string{"fail", "refuse", "break", "missing", "grow"} {
		call(tool, map[string]any{})
	}
	call("greet", map[string]any{"name": "Ada <&> \u2028"})
	call("echo", map[string]any{"n": 1.5, "deep": map[string]any{"x": []any{nil, true}}})
	call("work", map[string]any{"x": 1})
	w.saw.await(5, "mcp-go: notifications/progress")
	var level types.SetLevelRequest
	level.Params.Level = types.LoggingLevelWarning
	w.result("setLevel", nil, c.SetLevel(ctx, level))
	call("log", map[string]any{})
	w.saw.await(2, "mcp-go: notifications/message")
	var to types.SubscribeRequest
	to.Params.URI = "note://b"
	w.result("subscribe", nil, c.Subscribe(ctx, to))
	call("touch", map[string]any{})
	w.saw.await(1, "mcp-go: notifications/resources/updated")
	for _, list := range []string{"tools", "prompts", "resources"} {
		w.saw.await(1, "mcp-go: notifications/"+list+"/list_changed")
	}
	var read types.ReadResourceRequest
	read.Params.URI = "note://a"
	text, err := c.ReadResource(ctx, read)
	w.result("read", text, err)
	w.result("ping", nil, c.Ping(ctx))
	n := 0
	for s := range w.server.Sessions() {
		n++
		w.saw.add("server: session %d with %s", n, s.InitializeParams().ClientInfo.Name)
	}
	w.saw.add("sessions: %s", fmt.Sprint(n))
}
