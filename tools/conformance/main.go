// Conformance is the server that the MCP conformance suite expects: the tools,
// resources and prompts that its scenarios name, with go-sdk.
//
//	conformance                                  # stdio, each protocol version
//	conformance -legacy                          # stdio, only sessions that initialize opens
//	conformance -http 127.0.0.1:0                # Streamable HTTP of 2026-07-28; prints its URL
//	conformance -http 127.0.0.1:0 -stateless=false  # Streamable HTTP with sessions
//	conformance -http 127.0.0.1:0 -gateway      # both, by a gateway in this process
//
// The suite's documentation of each scenario says what its tool must do.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/gosdk"
)

func main() {
	addr := flag.String("http", "", "serve Streamable HTTP at this address, not stdio")
	stateless := flag.Bool("stateless", true, "with -http: 2026-07-28, without sessions")
	legacy := flag.Bool("legacy", false, "do not know 2026-07-28")
	mounted := flag.Bool("gateway", false, "with -http: serve by a gateway in this process")
	flag.Parse()
	if err := serve(newServer(*legacy), *addr, *stateless, *mounted); err != nil {
		log.Fatal(err)
	}
}

// newServer returns the server; a legacy one does not know 2026-07-28.
func newServer(legacy bool) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "conformance", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		CompletionHandler:  complete,
	})
	addTools(s)
	addQuestions(s)
	addTriggers(s)
	addResources(s)
	addPrompts(s)
	if legacy {
		s.AddReceivingMiddleware(withoutDiscover)
	}
	return s
}

// withoutDiscover answers server/discover as a server that does not know it.
func withoutDiscover(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == "server/discover" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found"}
		}
		return next(ctx, method, req)
	}
}

// serve serves until its client leaves, or over HTTP until the process is killed. Its
// first line on stdout is then the URL.
func serve(s *mcp.Server, addr string, stateless, mounted bool) error {
	if addr == "" {
		return s.Run(context.Background(), &mcp.StdioTransport{})
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "http://%s/mcp\n", l.Addr())
	var h http.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: stateless})
	if mounted {
		h, err = gateway.New(gosdk.Server(s), gateway.Options{})
		if err != nil {
			return err
		}
	}
	return (&http.Server{Handler: h, ReadHeaderTimeout: time.Minute}).Serve(l)
}
