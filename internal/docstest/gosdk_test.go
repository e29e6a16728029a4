package docstest_test

import (
	"context"
	"fmt"
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

// home is the page that an application has at / already.
func home(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "home") }

// application is an http.ServeMux as users have one, with a route that takes all
// paths that no other does.
func application() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/", home)
	return mux
}

// A server of the official Go SDK, mounted under /mcp.
func Example_goSDK() {
	srv, mux := greeter(), application()

	gw, err := gateway.New(upstream.Serve(func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
		return srv.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
	}), gateway.Options{})
	if err != nil {
		log.Fatal(err)
	}
	mux.Handle("/mcp/", http.StripPrefix("/mcp", gw))

	try(mux, gw, "/mcp/sse")
	// Output:
	// Hello, Ada
	// home
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
