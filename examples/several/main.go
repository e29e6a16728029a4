// Command several serves two MCP servers in one process, each under its own path, and
// their metrics and readiness at an address of their own.
//
//	go run ./examples/several
//	curl http://127.0.0.1:8080/greeter/mcp -H 'Content-Type: application/json' \
//	  -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
//	curl http://127.0.0.1:9464/readyz
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

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/gosdk"
)

// server returns an MCP server with one tool, which says what text returns.
func server(name, tool string, text func() string) *mcp.Server {
	srv := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
	say := func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text()}}}, nil, nil
	}
	mcp.AddTool(srv, &mcp.Tool{Name: tool}, say)
	return srv
}

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`address` to serve at")
	adminAddr := flag.String("admin-addr", "127.0.0.1:9464", "`address` for operators")
	flag.Parse()

	registry := prometheus.NewRegistry() // one for all
	var gateways []*gateway.Gateway
	for _, srv := range []struct {
		name string
		srv  *mcp.Server
	}{
		{"greeter", server("greeter", "greet", func() string { return "Hello" })},
		{"clock", server("clock", "now", func() string { return time.Now().Format(time.RFC3339) })},
	} {
		gw, err := gateway.New(gosdk.Server(srv.srv), gateway.Options{
			Name: srv.name, Prefix: "/" + srv.name, Registry: registry,
		})
		if err != nil {
			log.Fatal(err)
		}
		gateways = append(gateways, gw)
	}
	servers, err := gateway.NewServers(gateways...)
	if err != nil {
		log.Fatal(err)
	}

	admin := &http.Server{Addr: *adminAddr, Handler: servers.Admin(), ReadHeaderTimeout: 10 * time.Second}
	go func() { log.Fatal(admin.ListenAndServe()) }()
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("serving http://%s/greeter/mcp and /clock/mcp", listener.Addr())
	// The gateway bounds bodies and streams itself, so there is no ReadTimeout and no WriteTimeout here.
	server := &http.Server{Handler: servers, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 15 * time.Minute}
	log.Fatal(server.Serve(listener))
}
