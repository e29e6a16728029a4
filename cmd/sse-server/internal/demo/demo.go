// Package demo is the MCP server that sse-server serves if it has no other, so that
// the first run needs nothing else.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// maxSleep bounds the demo's sleep tool.
const maxSleep = 60

// Server is the demo as an upstream.Upstream: a value that is equal to itself, as Reconfigure wants.
type Server struct{}

// Dial starts a session.
func (Server) Dial(ctx context.Context) (jsonrpc.Conn, error) { return upstream.Serve(Serve).Dial(ctx) }

// Serve runs one session until ctx or in ends; it is an upstream.Serve.
func Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	server := mcp.NewServer(
		&mcp.Implementation{Name: "sse-server-demo", Title: "Demo of sse-server", Version: buildinfo.Read().Version},
		&mcp.ServerOptions{
			Instructions: "A demo. Call echo with any message; sleep shows progress and can be cancelled.",
			Capabilities: &mcp.ServerCapabilities{},
		})
	quiet := &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(bool)}
	mcp.AddTool(server, &mcp.Tool{Name: "echo", Description: "Returns the message.", Annotations: quiet},
		func(_ context.Context, _ *mcp.CallToolRequest, in struct {
			Message string `json:"message" jsonschema:"the text to return"`
		}) (*mcp.CallToolResult, any, error) {
			return textResult(in.Message), nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "sleep", Description: "Sleeps, with progress every second. Can be cancelled.",
		Annotations: quiet}, sleep)
	err := server.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
	// The client may leave before it has its answer.
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("run demo server: %w", err)
}

type sleepInput struct {
	Seconds float64 `json:"seconds" jsonschema:"how long, from 0 to 60"`
}

// sleep waits, and reports each second to a client that gave a progress token.
func sleep(ctx context.Context, req *mcp.CallToolRequest, in sleepInput) (*mcp.CallToolResult, any, error) {
	if !(in.Seconds >= 0 && in.Seconds <= maxSleep) {
		return nil, nil, fmt.Errorf("seconds must be from 0 to %d", maxSleep)
	}
	end := time.After(time.Duration(in.Seconds * float64(time.Second)))
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	token := req.Params.GetProgressToken()
	for done := 1.0; ; done++ {
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-end:
			return textResult(fmt.Sprintf("slept %v seconds", in.Seconds)), nil, nil
		case <-tick.C:
			if token != nil { // an error is no matter: the client still gets the result
				_ = req.Session.NotifyProgress(ctx,
					&mcp.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: in.Seconds})
			}
		}
	}
}

func textResult(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}
