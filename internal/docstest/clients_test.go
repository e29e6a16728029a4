package docstest_test

import (
	"context"
	"log"

	"github.com/mark3labs/mcp-go/client"
	mcpgo "github.com/mark3labs/mcp-go/mcp"
)

// greetByMCPGo is greet with a client of mcp-go.
func greetByMCPGo(ctx context.Context, url, token string) string {
	c, err := client.NewSSEMCPClient(url, client.WithHeaders(map[string]string{"Authorization": "Bearer " + token}))
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if err := c.Start(ctx); err != nil {
		log.Fatal(err)
	}
	if _, err := c.Initialize(ctx, mcpgo.InitializeRequest{}); err != nil {
		log.Fatal(err)
	}
	result, err := c.CallTool(ctx, mcpgo.CallToolRequest{
		Params: mcpgo.CallToolParams{Name: "greet", Arguments: greeting{Name: "Ada"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	return result.Content[0].(mcpgo.TextContent).Text
}
