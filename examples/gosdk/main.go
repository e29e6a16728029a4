// Command gosdk serves a server of the official go-sdk. Where it says gosdk.NewSSEHandler,
// a program without the gateway says mcp.NewSSEHandler.
//
//	go run ./examples/gosdk
//	curl -N http://127.0.0.1:8080/sse
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gosdk"
)

type input struct {
	Steps int `json:"steps" jsonschema:"how many steps to count"`
}

// count is a tool that reports its progress.
func count(ctx context.Context, req *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
	for step := range in.Steps {
		if token := req.Params.GetProgressToken(); token != nil {
			err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: float64(step + 1), Total: float64(in.Steps),
			})
			if err != nil {
				return nil, nil, err
			}
		}
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "counted"}}}, nil, nil
}

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`address` to serve at")
	flag.Parse()

	srv := mcp.NewServer(&mcp.Implementation{Name: "counter", Version: "1"}, nil)
	mcp.AddTool(srv, &mcp.Tool{Name: "count", Description: "Count, and report the progress."}, count)

	http.Handle("/sse", gosdk.NewSSEHandler(func(*http.Request) *mcp.Server { return srv }, nil))

	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("serving http://%s/sse", listener.Addr())
	// The gateway bounds bodies and streams itself, so there is no ReadTimeout and no WriteTimeout here.
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 15 * time.Minute}
	log.Fatal(server.Serve(listener))
}
