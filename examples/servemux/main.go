// Command servemux serves an MCP server beside the other routes of a web application.
//
//	go run ./examples/servemux
//	curl -N http://127.0.0.1:8080/ai/sse
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/gosdk"
)

type greeting struct {
	Name string `json:"name" jsonschema:"whom to greet"`
}

func greet(_ context.Context, _ *mcp.CallToolRequest, in greeting) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello, " + in.Name}}}, nil, nil
}

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`address` to serve at")
	flag.Parse()

	srv := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	mcp.AddTool(srv, &mcp.Tool{Name: "greet"}, greet)
	gw, err := gateway.New(gosdk.Server(srv), gateway.Options{})
	if err != nil {
		log.Fatal(err)
	}

	routes := http.NewServeMux()
	routes.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "home") })
	routes.Handle("/ai/", http.StripPrefix("/ai", gw)) // the stream is at /ai/sse

	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("serving http://%s/ai/sse", listener.Addr())
	log.Fatal(http.Serve(listener, routes)) // examples/shutdown ends in order
}
