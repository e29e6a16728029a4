// Command shutdown serves an MCP server and stops without losing an answer: at SIGTERM or
// Ctrl+C it answers the calls that run, then ends the streams, then the HTTP server.
//
//	go run ./examples/shutdown
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/gosdk"
)

// work is a tool that takes a second.
func work(ctx context.Context, _ *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
	log.Print("working")
	select {
	case <-time.After(time.Second):
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
	case <-ctx.Done(): // the client cancelled, or left
		return nil, nil, ctx.Err()
	}
}

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`address` to serve at")
	flag.Parse()
	if err := run(*addr); err != nil {
		log.Fatal(err)
	}
	log.Print("stopped")
}

func run(addr string) error {
	stopped, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	srv := mcp.NewServer(&mcp.Implementation{Name: "worker", Version: "1"}, nil)
	mcp.AddTool(srv, &mcp.Tool{Name: "work"}, work)
	gw, err := gateway.New(gosdk.Server(srv), gateway.Options{})
	if err != nil {
		return err
	}
	server := &http.Server{Handler: gw, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	log.Printf("serving http://%s/mcp", listener.Addr())
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-stopped.Done():
		stop() // a second signal ends the program at once
	}

	log.Print("stopping")
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	err = gw.Shutdown(ctx) // first: it ends the streams, for which the HTTP server would wait
	return errors.Join(err, server.Shutdown(ctx))
}
