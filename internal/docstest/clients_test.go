package docstest_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/mark3labs/mcp-go/client"
	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/sse"
)

// guarded serves a gateway that asks for a token.
func guarded(token string) (url string, end func()) {
	authenticate, err := sse.BearerTokens(map[string]string{token: "ada"})
	if err != nil {
		log.Fatal(err)
	}
	gw := newGateway(gateway.Options{Authenticate: authenticate})
	ts := httptest.NewServer(gw)
	return ts.URL + "/sse", func() {
		ts.Close()
		shutDown(gw)
	}
}

// bearer sends a token with each request.
type bearer string

func (token bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(token))
	return http.DefaultTransport.RoundTrip(r)
}

// A client of the official Go SDK with a token.
func Example_goSDKClient() {
	ctx, token := context.Background(), "0123456789abcdef"
	url, end := guarded(token)
	defer end()

	c := mcp.NewClient(&mcp.Implementation{Name: "my-client", Version: "1"}, nil)
	session, err := c.Connect(ctx, &mcp.SSEClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: bearer(token)},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()

	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "greet", Arguments: greeting{Name: "Ada"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Content[0].(*mcp.TextContent).Text)
	// Output: Hello, Ada
}

// A client of mcp-go with a token.
func Example_mcpGoClient() {
	ctx, token := context.Background(), "0123456789abcdef"
	url, end := guarded(token)
	defer end()

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
	fmt.Println(result.Content[0].(mcpgo.TextContent).Text)
	// Output: Hello, Ada
}
