package docstest_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/gosdk"
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

// A server of the official Go SDK, mounted at one pattern.
func Example_goSDK() {
	srv, mux := greeter(), application()

	gw := gosdk.NewSSEHandler(func(*http.Request) *mcp.Server { return srv }, nil)
	mux.Handle("/sse", gw)

	try(mux, gw, "/sse")
	// Output:
	// Hello, Ada
	// home
}

func newGateway(options gateway.Options) *gateway.Gateway {
	gw, err := gateway.New(gosdk.Server(greeter()), options)
	if err != nil {
		log.Fatal(err)
	}
	return gw
}
