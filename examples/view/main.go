// Command view serves two MCP servers at one URL, with chosen tools under chosen names.
//
//	go run ./examples/view
//	curl http://127.0.0.1:8080/mcp -H 'Content-Type: application/json' \
//	  -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/gosdk"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// server returns an MCP server whose tools say their own names.
func server(name string, tools ...string) *mcp.Server {
	srv := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
	for _, tool := range tools {
		say := func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name + " did " + tool}}}, nil, nil
		}
		mcp.AddTool(srv, &mcp.Tool{Name: tool}, say)
	}
	return srv
}

// newGateway returns a gateway with options that must be right.
func newGateway(up upstream.Upstream, options gateway.Options) *gateway.Gateway {
	gw, err := gateway.New(up, options)
	if err != nil {
		log.Fatal(err)
	}
	return gw
}

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`address` to serve at")
	flag.Parse()

	registry := prometheus.NewRegistry() // one for all
	notes := newGateway(gosdk.Server(server("notes", "add", "find", "delete_all")),
		gateway.Options{Name: "notes", Registry: registry})
	web := newGateway(gosdk.Server(server("web", "web_search")),
		gateway.Options{Name: "web", Registry: registry})

	noPrefix := ""
	view, err := compose.New([]compose.Member{
		{Name: "notes", Upstream: notes, Selection: compose.Selection{Exclude: []string{"delete_*"}}},
		{Name: "web", Upstream: web, Prefix: &noPrefix, Rename: map[string]string{"web_search": "search"}},
	}, compose.Options{Name: "team", Title: "The team's tools"})
	if err != nil {
		log.Fatal(err)
	}
	team := newGateway(view, gateway.Options{Name: "team", Registry: registry}) // tools notes__add, notes__find, search

	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("serving http://%s/mcp", listener.Addr())
	// The gateway bounds bodies and streams itself, so there is no ReadTimeout and no WriteTimeout here.
	server := &http.Server{Handler: team, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 15 * time.Minute}
	log.Fatal(server.Serve(listener)) // to end in order, shut down team first, then notes and web
}
