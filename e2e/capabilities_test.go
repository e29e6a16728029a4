package e2e

import (
	"context"
	"fmt"
	"net/http"
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

func TestServerAsksTheClientForItsRoots(t *testing.T) {
	t.Parallel()
	g := startGateway(t, everything(t)...)
	c := mcp.NewClient(&mcp.Implementation{Name: "sse-server-e2e", Version: "0"}, nil)
	c.AddRoots(&mcp.Root{URI: "file:///written/by/the/test", Name: "e2e"})
	session, err := c.Connect(context.Background(), &mcp.SSEClientTransport{
		Endpoint: g.url, HTTPClient: &http.Client{Transport: newHTTP(t).Transport},
	}, nil)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	defer session.Close()
	result, err := session.CallTool(within(t), &mcp.CallToolParams{Name: "get-roots-list", Arguments: map[string]any{}})
	if err != nil {
		t.Fatalf("call get-roots-list: %v", err)
	}
	if text := result.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, "file:///written/by/the/test") {
		t.Errorf("get-roots-list = %q, want the client's root", text)
	}
}
