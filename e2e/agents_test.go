//go:build all

package e2e

import (
	"fmt"
	"slices"
	"testing"
)

// forEachAgent runs the test once for each client of an agent framework.
func forEachAgent(t *testing.T, test func(t *testing.T, k kind)) {
	t.Helper()
	t.Parallel()
	for _, k := range agentKinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}

func TestAgentsListAndCall(t *testing.T) {
	forEachAgent(t, func(t *testing.T, k kind) {
		g := startGateway(t, fake(t)...)
		c := connect(t, k, g.url)
		tools, err := c.listTools(within(t))
		if err != nil || !slices.Contains(tools, "echo") {
			t.Fatalf("tools = %q, %v, want echo among them", tools, err)
		}
		args, want := make([]map[string]any, 20), make([]string, 20)
		for i := range args {
			want[i] = fmt.Sprint("call ", i)
			args[i] = map[string]any{"message": want[i]}
		}
		if got, err := c.callAll(within(t), "echo", args); err != nil || !slices.Equal(got, want) {
			t.Errorf("echo = %q, %v, want %q", got, err, want)
		}
		if got := c.saw().Opening; (got == "server/discover") != k.discovers {
			t.Errorf("opened with %s, and discovers is %v", got, k.discovers)
		}
	})
}

// A call whose connections are cut ends, and the client goes on.
func TestAgentsGoOnAfterACut(t *testing.T) {
	forEachAgent(t, func(t *testing.T, k kind) {
		g := startGateway(t)
		cutter, target := startProxy(t, g.url)
		c, ctx := connect(t, k, target), within(t)
		ended := make(chan string, 1)
		go func() { // ends with the call, which its context bounds
			text, err := c.callTool(ctx, "sleep", map[string]any{"seconds": 1})
			ended <- fmt.Sprintf("%q, %v", text, err)
		}()
		g.eventually("a call is in flight", func() bool {
			n, _ := g.metric("mcp_sse_requests_in_flight")
			return n > 0
		})
		cutter.cut()
		t.Logf("the call that was cut: %s", <-ended)
		wantEcho(t, c)
	})
}

// agentKinds are the MCP clients of agent frameworks: they list and call tools, no more.
func agentKinds() []kind {
	return []kind{
		{name: "AISDK", over: streamable, make: openNode("ai-sdk"), discovers: true},
		{name: "AISDKInitialize", over: streamable, make: openNode("ai-sdk-initialize")},
		{name: "OpenAIAgents", over: streamable, make: openNode("openai-agents"), discovers: true},
	}
}
