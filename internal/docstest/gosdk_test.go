package docstest_test

import (
	"context"
	"io"
	"log"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/upstream"
)

type greeting struct {
	Name string `json:"name"`
}

// greeter is a server of the official Go SDK, as users have one.
func greeter() *mcp.Server {
	srv := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	mcp.AddTool(srv, &mcp.Tool{Name: "greet"}, func(_ context.Context, _ *mcp.CallToolRequest, in greeting) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello, " + in.Name}}}, nil, nil
	})
	return srv
}

// A server of the official Go SDK, mounted under /mcp.
func Example_goSDK() {
	srv, mux := greeter(), http.NewServeMux()

	gw, err := gateway.New(upstream.Serve(func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
		return srv.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
	}), gateway.Options{})
	if err != nil {
		log.Fatal(err)
	}
	mux.Handle("/mcp/", http.StripPrefix("/mcp", gw))

	try(mux, gw, "/mcp/sse")
	// Output: Hello, Ada
}

func newGateway(options gateway.Options) *gateway.Gateway {
	srv := greeter()
	gw, err := gateway.New(upstream.Serve(func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
		return srv.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
	}), options)
	if err != nil {
		log.Fatal(err)
	}
	return gw
}
