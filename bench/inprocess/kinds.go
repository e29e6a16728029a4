package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// maxConnections is more than any comparison opens.
const maxConnections = 20_000

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
	"raw":       func() (handler, error) { return newGateway(upstream.Handle(echo)) },
	"bare":      func() (handler, error) { return plain(newBare()) },
	"mcpgo":     func() (handler, error) { return newGateway(overMCPGo()) },
	"mcpgo-sse": func() (handler, error) { return plain(server.NewSSEServer(newMCPGo())) },
	"gosdk":     func() (handler, error) { return newGateway(overGoSDK()) },
	"gosdk-sse": func() (handler, error) { return plain(newGoSDKHandler()) },
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
func newGateway(up upstream.Upstream) (handler, error) {
	g, err := gateway.New(up, gateway.Options{MaxConnections: maxConnections})
	if err != nil {
		return handler{}, err
	}
	return handler{g, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		return g.Shutdown(ctx)
	}}, nil
}

// plain returns a handler that ends with its connections.
func plain(h http.Handler) (handler, error) {
	return handler{h, func() error { return nil }}, nil
}

// overMCPGo returns the upstream for mcp-go's server.
func overMCPGo() upstream.Upstream {
	s := newMCPGo()
	return upstream.Handle(func(ctx context.Context, msg json.RawMessage) any { return s.HandleMessage(ctx, msg) })
}

func newMCPGo() *server.MCPServer {
	s := server.NewMCPServer("echo", "1.0")
	s.AddTool(mcpgo.NewTool("echo", mcpgo.WithString("message", mcpgo.Required())),
		func(_ context.Context, r mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
			return mcpgo.NewToolResultText(r.GetString("message", "")), nil
		})
	return s
}

// overGoSDK returns the upstream for go-sdk's server.
func overGoSDK() upstream.Upstream {
	s := newGoSDK()
	return upstream.Serve(func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
		return s.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
	})
}

func newGoSDKHandler() http.Handler {
	s := newGoSDK()
	return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
}

// arguments are those of the tool of go-sdk's server.
type arguments struct {
	Message string `json:"message"`
}

func newGoSDK() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1.0"}, &mcp.ServerOptions{Logger: slog.New(slog.DiscardHandler)})
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in arguments) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Message}}}, nil, nil
	})
	return s
}
