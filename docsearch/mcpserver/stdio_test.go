package mcpserver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/mcpserver"
)

// The agent ends while a call runs: the server ends too, and cancels the call.
func TestEndsWithItsInput(t *testing.T) {
	f := newFake()
	began := make(chan struct{})
	f.onSearch = func(ctx context.Context, _ api.SearchRequest) (*api.SearchResponse, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s, err := mcpserver.New(mcpserver.Options{Client: f})
	if err != nil {
		t.Fatal(err)
	}
	in, agentOut := io.Pipe()
	agentIn, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- s.Run(context.WithoutCancel(t.Context()), &mcp.IOTransport{Reader: in, Writer: out})
	}()
	answers := bufio.NewScanner(agentIn)
	send := func(message string) {
		if _, err := fmt.Fprintln(agentOut, message); err != nil {
			t.Error(err)
		}
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if !answers.Scan() || !strings.Contains(answers.Text(), `"instructions"`) {
		t.Fatalf("got %q, want the answer to initialize", answers.Text())
	}
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"search","arguments":{"query":"q"}}}`)
	<-began
	if err := agentOut.Close(); err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for answers.Scan() {
		}
	}()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	_ = out.Close()
	<-drained
}
