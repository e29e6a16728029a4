// Command mcpgo serves a server of mcp-go. Where it says mcpgo.NewSSEServer, a program
// without the gateway says server.NewSSEServer.
//
//	go run ./examples/mcpgo
//	curl -N http://127.0.0.1:8080/sse
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcp-sse/mcp-sse/mcpgo"
)

// count is a tool that reports its progress.
func count(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	steps := req.GetInt("steps", 0)
	for step := range steps {
		if req.Params.Meta == nil || req.Params.Meta.ProgressToken == nil {
			break
		}
		err := server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/progress", map[string]any{
			"progressToken": req.Params.Meta.ProgressToken, "progress": step + 1, "total": steps,
		})
		if err != nil {
			return nil, err
		}
	}
	return mcp.NewToolResultText("counted"), nil
}

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`address` to serve at")
	flag.Parse()

	srv := server.NewMCPServer("counter", "1")
	srv.AddTool(mcp.NewTool("count", mcp.WithDescription("Count, and report the progress."), mcp.WithNumber("steps")),
		count)

	handler := mcpgo.NewSSEServer(srv)

	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("serving http://%s/sse", listener.Addr())
	// The gateway bounds bodies and streams itself, so there is no ReadTimeout and no WriteTimeout here.
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 15 * time.Minute}
	log.Fatal(server.Serve(listener))
}
