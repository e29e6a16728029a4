package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The gateway's own initialize promises nothing; what the client promises must
// reach the server all the same.
func TestCapabilitiesOfTheClientReachTheServer(t *testing.T) {
	t.Parallel()
	g := startGateway(t, fake(t)...)
	for declared, want := range map[string]string{
		`{}`: `{}`,
		`{"roots":{"listChanged":true},"experimental":{"x":{"n":1.50}}}`: `{"roots":{"listChanged":true},"experimental":{"x":{"n":1.50}}}`,
	} {
		s := openStream(t, g.url)
		hello := s.request("0", "initialize",
			fmt.Sprintf(`{"protocolVersion":"2025-11-25","capabilities":%s,"clientInfo":{"name":"e2e","version":"0"}}`, declared))
		if hello.Error != nil {
			t.Fatalf("initialize: %v", hello.Error)
		}
		s.accepted(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		if got := s.call("1", "capabilities", `{}`); got != want {
			t.Errorf("the client declared %s, the server saw %s", declared, got)
		}
	}
}

// server-everything offers this tool only to clients that declare elicitation, so
// the call also shows that the server knows of it.
func TestServerAsksTheUserThroughTheClient(t *testing.T) {
	t.Parallel()
	g := startGateway(t, everything(t)...)
	c := mcp.NewClient(&mcp.Implementation{Name: "sse-server-e2e", Version: "0"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "the test"}}, nil
		},
	})
	session, err := c.Connect(context.Background(), &mcp.SSEClientTransport{Endpoint: g.url, HTTPClient: newHTTP(t)}, nil)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	defer session.Close()
	result, err := session.CallTool(within(t), &mcp.CallToolParams{Name: "trigger-elicitation-request", Arguments: map[string]any{}})
	if err != nil {
		t.Fatalf("call trigger-elicitation-request: %v", err)
	}
	var text strings.Builder
	for _, part := range result.Content {
		if part, ok := part.(*mcp.TextContent); ok {
			text.WriteString(part.Text)
		}
	}
	if !strings.Contains(text.String(), "Name: the test") {
		t.Errorf("trigger-elicitation-request = %q, want the user's answer in it", text.String())
	}
}
