// Command servemux serves an MCP server beside the other routes of a web application.
//
//	go run ./examples/servemux
//	curl http://127.0.0.1:8080/ai/mcp -H 'Content-Type: application/json' \
//	  -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/gosdk"
)

type greeting struct {
	Name string `json:"name"`
}

// greeter is the MCP server, with one tool.
func greeter() *mcp.Server {
	srv := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	greet := func(_ context.Context, _ *mcp.CallToolRequest, in greeting) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello, " + in.Name}}}, nil, nil
	}
	mcp.AddTool(srv, &mcp.Tool{Name: "greet"}, greet)
	return srv
}

// newGateway returns a gateway to the server.
func newGateway(options gateway.Options) *gateway.Gateway {
	gw, err := gateway.New(gosdk.Server(greeter()), options)
	if err != nil {
		log.Fatal(err)
	}
	return gw
}

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`address` to serve at")
	flag.Parse()

	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "home") })
	mux.Handle("/ai/", http.StripPrefix("/ai", newGateway(gateway.Options{})))

	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("serving http://%s/ai/mcp", listener.Addr())
	// The gateway bounds bodies and streams itself, so there is no ReadTimeout and no WriteTimeout here.
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 15 * time.Minute}
	log.Fatal(server.Serve(listener)) // examples/shutdown ends in order
}
