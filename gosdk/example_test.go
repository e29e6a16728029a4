package gosdk_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/gosdk"
)

// greeter is a server with one tool.
func greeter() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "greet"}, func(_ context.Context, _ *mcp.CallToolRequest, in who) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello, " + in.Name}}}, nil, nil
	})
	return server
}

// try calls the tool of the greeter as a client.
func try(url string) {
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil)
	session, err := client.Connect(context.Background(), &mcp.SSEClientTransport{Endpoint: url}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: "greet", Arguments: who{Name: "Ada"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Content[0].(*mcp.TextContent).Text)
}

// Where mcp.NewSSEHandler was.
func ExampleNewSSEHandler() {
	server := greeter()

	handler := gosdk.NewSSEHandler(func(*http.Request) *mcp.Server { return server }, nil)
	http.Handle("/sse", handler)

	listener := httptest.NewServer(nil) // http.ListenAndServe
	try(listener.URL + "/sse")

	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	if err := handler.Shutdown(ctx); err != nil { // before the HTTP server: streams do not end by themselves
		log.Fatal(err)
	}
	listener.Close()
	http.DefaultClient.CloseIdleConnections()
	// Output: Hello, Ada
}

// One server behind a gateway with its usual routes.
func ExampleServer() {
	gw, err := gateway.New(gosdk.Server(greeter()), gateway.Options{Prefix: "/ai"})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/ai/", gw)

	listener := httptest.NewServer(mux)
	try(listener.URL + "/ai/mcp")

	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	if err := gw.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	listener.Close()
	http.DefaultClient.CloseIdleConnections()
	// Output: Hello, Ada
}
