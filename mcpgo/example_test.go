package mcpgo_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcp-sse/mcp-sse/mcpgo"
)

type userKey struct{}

// A server of mcp-go moves by one line: mcpgo.NewSSEServer for server.NewSSEServer.
func Example() {
	srv := server.NewMCPServer("greeter", "1")
	srv.AddTool(mcp.NewTool("greet"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(fmt.Sprint("Hello, ", ctx.Value(userKey{}))), nil
	})
	sse := mcpgo.NewSSEServer(srv, mcpgo.WithSSEContextFunc(func(ctx context.Context, r *http.Request) context.Context {
		return context.WithValue(ctx, userKey{}, r.Header.Get("X-User"))
	}))
	listener := httptest.NewServer(sse) // or sse.Start(":8080")
	defer listener.Close()
	defer func() { _ = sse.Shutdown(context.Background()) }()

	c, err := client.NewSSEMCPClient(listener.URL+"/sse", client.WithHeaders(map[string]string{"X-User": "Ada"}))
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()
	if err := c.Start(ctx); err != nil {
		log.Fatal(err)
	}
	if _, err := c.Initialize(ctx, mcp.InitializeRequest{}); err != nil {
		log.Fatal(err)
	}
	var call mcp.CallToolRequest
	call.Params.Name = "greet"
	result, err := c.CallTool(ctx, call)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(mcp.GetTextFromContent(result.Content[0]))
	// Output: Hello, Ada
}
