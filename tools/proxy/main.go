// Command proxy is what sse-server is compared with: an mcp-go client of one
// stdio server, and an mcp-go SSEServer that offers the tools of that server to
// many clients. Bridges that are made of an SDK's client and server look like
// this; calls are read and written again on both sides, and nothing but tools
// passes.
//
//	proxy [--addr HOST:PORT] command [args...]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// startTimeout bounds the start of the child, and the head of a request.
const startTimeout = 30 * time.Second

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "`HOST:PORT` to serve on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "proxy:", err)
		stop()
		os.Exit(1)
	}
}

// run serves until ctx ends, and prints the URL of the stream when it is ready.
func run(ctx context.Context, addr string, command []string) error {
	if len(command) == 0 {
		return errors.New("no command")
	}
	child, tools, err := start(ctx, command)
	if err != nil {
		return err
	}
	defer child.Close()
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: serverOf(child, tools), ReadHeaderTimeout: startTimeout}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(listener) }() // ends with Close
	fmt.Printf("    http://%s/sse\n", listener.Addr())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	err = srv.Close() // cuts the streams: Shutdown would wait for them
	<-failed
	return err
}

// start starts the child, initializes it and lists its tools.
func start(ctx context.Context, command []string) (*client.Client, []mcp.Tool, error) {
	child, err := client.NewStdioMCPClient(command[0], nil, command[1:]...)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = "2025-11-25"
	hello.Params.ClientInfo = mcp.Implementation{Name: "proxy", Version: "1.0"}
	if _, err := child.Initialize(ctx, hello); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("initialize %s: %w", command[0], err), child.Close())
	}
	list, err := child.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("list tools of %s: %w", command[0], err), child.Close())
	}
	return child, list.Tools, nil
}

// serverOf offers the child's tools.
func serverOf(child *client.Client, tools []mcp.Tool) http.Handler {
	s := server.NewMCPServer("proxy", "1.0")
	for _, tool := range tools {
		s.AddTool(tool, func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var call mcp.CallToolRequest
			call.Params.Name, call.Params.Arguments = r.Params.Name, r.Params.Arguments
			return child.CallTool(ctx, call)
		})
	}
	return server.NewSSEServer(s)
}
