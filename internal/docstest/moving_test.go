package docstest_test

import (
	"context"
	"log"
	"net/http"
	"net/http/httptest"

	mcpgomcp "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/gosdk"
	"github.com/mcp-sse/mcp-sse/mcpgo"
	"github.com/mcp-sse/mcp-sse/peer"
)

// greetAt calls greet at a handler of http.DefaultServeMux, or of another one.
func greetAt(h http.Handler, path string) {
	ts := httptest.NewServer(h)
	defer ts.Close()
	call(ts.URL + path)
	http.DefaultClient.CloseIdleConnections()
}

// onDefaultMux registers handlers as a program does, with a mux of its own.
func onDefaultMux(register func()) http.Handler {
	before := http.DefaultServeMux
	defer func() { http.DefaultServeMux = before }()
	mux := http.NewServeMux()
	http.DefaultServeMux = mux
	register()
	return mux
}

// The line of a program with go-sdk's own handler.
func Example_movingGoSDKBefore() {
	srv := greeter()
	greetAt(onDefaultMux(func() {
		http.Handle("/sse", mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return srv }, nil))
	}), "/sse")
	// Output: Hello, Ada
}

// The same line with the gateway.
func Example_movingGoSDKAfter() {
	srv := greeter()
	greetAt(onDefaultMux(func() {
		http.Handle("/sse", gosdk.NewSSEHandler(func(*http.Request) *mcp.Server { return srv }, nil))
	}), "/sse")
	// Output: Hello, Ada
}

// greeterOfMCPGo is a server of mcp-go, as users have one.
func greeterOfMCPGo() *server.MCPServer {
	s := server.NewMCPServer("greeter", "1")
	s.AddTool(mcpgomcp.NewTool("greet", mcpgomcp.WithString("name")), func(_ context.Context, r mcpgomcp.CallToolRequest) (*mcpgomcp.CallToolResult, error) {
		return mcpgomcp.NewToolResultText("Hello, " + r.GetString("name", "nobody")), nil
	})
	return s
}

// The line of a program with mcp-go's own server.
func Example_movingMCPGoBefore() {
	s := greeterOfMCPGo()
	greetAt(onDefaultMux(func() {
		http.Handle("/", server.NewSSEServer(s))
	}), "/sse")
	// Output: Hello, Ada
}

// The same line with the gateway.
func Example_movingMCPGoAfter() {
	s := greeterOfMCPGo()
	greetAt(onDefaultMux(func() {
		http.Handle("/", mcpgo.NewSSEServer(s))
	}), "/sse")
	// Output: Hello, Ada
}

// A gateway at one exact path.
func Example_singlePath() {
	mux := application()
	mux.Handle("/mcp", newGateway(gateway.Options{SinglePath: true}))
	greetAt(mux, "/mcp")
	// Output: Hello, Ada
}

// A tool that knows who calls it.
func Example_user() {
	authenticate := func(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil }

	srv := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	mcp.AddTool(srv, &mcp.Tool{Name: "greet"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
		who, _ := peer.FromContext(ctx)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello, " + who.Principal}}}, nil, nil
	})

	gw, err := gateway.New(gosdk.Server(srv), gateway.Options{Authenticate: authenticate, PassRequest: &gateway.PassRequest{}})
	if err != nil {
		log.Fatal(err)
	}

	ts := httptest.NewServer(gw)
	defer ts.Close()
	for _, user := range []string{"ada", "grace"} {
		callWith(ts.URL+"/sse", http.Header{"X-User": {user}})
	}
	shutDown(gw)
	// Output:
	// Hello, ada
	// Hello, grace
}
