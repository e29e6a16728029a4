package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/gosdk"
	adapter "github.com/mcp-sse/mcp-sse/mcpgo"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// options of all gateways: more connections than any comparison opens.
var options = gateway.Options{MaxConnections: 20_000}

// passing returns options with which handlers see the client's request, as those behind
// an SDK's own handler do.
func passing() gateway.Options {
	o := options
	o.PassRequest = &gateway.PassRequest{}
	return o
}

// stopTimeout bounds the end of the gateway's connections.
const stopTimeout = 5 * time.Second

// handler is what is compared, and how to end it.
type handler struct {
	http.Handler
	stop func() error
}

// table holds the kinds. For each server there is the gateway over it, and the
// handler that it is compared with.
var table = map[string]func() (handler, error){
	"raw":           func() (handler, error) { return newGateway(upstream.Handle(echo), options) },
	"bare":          func() (handler, error) { return plain(newBare()) },
	"mcpgo":         overMCPGo,
	"mcpgo-sse":     func() (handler, error) { return plain(server.NewSSEServer(newMCPGo())) },
	"gosdk":         overGoSDK,
	"gosdk-sse":     func() (handler, error) { return plain(newGoSDKHandler()) },
	"mcpgo-gateway": func() (handler, error) { return newGateway(adapter.Server(newMCPGo()), passing()) },
	"gosdk-gateway": func() (handler, error) { return newGateway(gosdk.Server(newGoSDK()), passing()) },
	"mcpgo-stream":  func() (handler, error) { return plain(newMCPGoStreamable()) },
	"gosdk-stream":  func() (handler, error) { return plain(newGoSDKStreamable()) },

	"raw-selected": func() (handler, error) { return newGateway(upstream.Handle(echo), selecting(options)) },
	"raw-view-1":   func() (handler, error) { return overView(1, newRaw) },
	"raw-view-3":   func() (handler, error) { return overView(3, newRaw) },

	"child":          overChild(remembering()),
	"child-selected": overChild(selecting(remembering())),
	"child-view-1":   func() (handler, error) { return overView(1, newChild) },
	"child-view-3":   func() (handler, error) { return overView(3, newChild) },
}

// kinds returns the names of all kinds, sorted.
func kinds() []string { return slices.Sorted(maps.Keys(table)) }

func newHandler(kind string) (handler, error) {
	make, ok := table[kind]
	if !ok {
		return handler{}, fmt.Errorf("there is no kind %q: choose one of %q", kind, kinds())
	}
	return make()
}

// newGateway returns the gateway over a server.
func newGateway(up upstream.Upstream, opts gateway.Options) (handler, error) {
	g, err := gateway.New(up, opts)
	if err != nil {
		return handler{}, err
	}
	return stopping(g, g), nil
}

// stopping returns a handler that ends with its gateway.
func stopping(h http.Handler, g *gateway.Gateway) handler {
	return handler{h, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		return g.Shutdown(ctx)
	}}
}

// plain returns a handler that ends with its connections.
func plain(h http.Handler) (handler, error) {
	return handler{h, func() error { return nil }}, nil
}

// overMCPGo returns the gateway over mcp-go's server, in place of mcp-go's SSEServer.
func overMCPGo() (handler, error) {
	s := adapter.NewSSEServer(newMCPGo(), adapter.WithGatewayOptions(options))
	return stopping(s, s.Gateway()), nil
}

// newMCPGoStreamable returns mcp-go's handler of Streamable HTTP. Its sessions have state,
// and it answers with JSON, as both are by default.
func newMCPGoStreamable() http.Handler {
	return server.NewStreamableHTTPServer(newMCPGo(), server.WithStateful(true))
}

func newMCPGo() *server.MCPServer {
	s := server.NewMCPServer("echo", "1.0")
	s.AddTool(mcpgo.NewTool("echo", mcpgo.WithString("message", mcpgo.Required())),
		func(_ context.Context, r mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
			return mcpgo.NewToolResultText(r.GetString("message", "")), nil
		})
	return s
}

// overGoSDK returns the gateway over go-sdk's server, in place of go-sdk's SSEHandler.
func overGoSDK() (handler, error) {
	s := newGoSDK()
	g, err := gosdk.New(func(*http.Request) *mcp.Server { return s }, options)
	if err != nil {
		return handler{}, err
	}
	return stopping(g, g), nil
}

func newGoSDKHandler() http.Handler {
	s := newGoSDK()
	return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
}

// newGoSDKStreamable returns go-sdk's handler of Streamable HTTP, whose sessions have state.
func newGoSDKStreamable() http.Handler {
	s := newGoSDK()
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{JSONResponse: true})
}

// arguments are those of the tool of go-sdk's server.
type arguments struct {
	Message string `json:"message"`
}

func newGoSDK() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1.0"},
		&mcp.ServerOptions{Logger: slog.New(slog.DiscardHandler)})
	mcp.AddTool(s, &mcp.Tool{Name: "echo"},
		func(_ context.Context, _ *mcp.CallToolRequest, in arguments) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Message}}}, nil, nil
		})
	return s
}
