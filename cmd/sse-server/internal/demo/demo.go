// Package demo is the MCP server that sse-server serves if it has no other, so that
// the first run needs nothing else.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
)

// maxSleep bounds the demo's sleep tool.
const maxSleep = 60

// Server is the demo server.
type Server struct {
	server  *mcp.Server
	started time.Time
}

// New returns a demo server.
func New() *Server {
	d := &Server{started: time.Now()}
	d.server = mcp.NewServer(
		&mcp.Implementation{Name: "sse-server-demo", Title: "Demo of sse-server", Version: buildinfo.Read().Version},
		&mcp.ServerOptions{
			Instructions: "A demo. Call echo with any message; sleep shows progress and can be cancelled.",
			Capabilities: &mcp.ServerCapabilities{},
		})
	quiet := &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(bool)}
	mcp.AddTool(d.server, &mcp.Tool{Name: "echo", Description: "Returns the message.", Annotations: quiet}, d.echo)
	mcp.AddTool(d.server, &mcp.Tool{Name: "sleep", Description: "Sleeps, with progress every second. Can be cancelled.", Annotations: quiet}, d.sleep)
	mcp.AddTool(d.server, &mcp.Tool{Name: "server_info", Description: "Tells which program answers.", Annotations: quiet}, d.info)
	d.server.AddResource(&mcp.Resource{
		URI: "demo://about", Name: "about", Description: "What this server is.", MIMEType: "text/plain",
	}, d.about)
	d.server.AddPrompt(&mcp.Prompt{
		Name: "greet", Description: "Asks for a greeting.",
		Arguments: []*mcp.PromptArgument{{Name: "name", Description: "Who is greeted.", Required: true}},
	}, d.greet)
	return d
}

// Serve runs one session until ctx or in ends; it is an upstream.Serve.
func (d *Server) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	err := d.server.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
	if err == nil || errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("run demo server: %w", err)
}

type echoInput struct {
	Message string `json:"message" jsonschema:"the text to return"`
}

func (*Server) echo(_ context.Context, _ *mcp.CallToolRequest, in echoInput) (*mcp.CallToolResult, any, error) {
	return textResult(in.Message), nil, nil
}

type sleepInput struct {
	Seconds float64 `json:"seconds" jsonschema:"how long, from 0 to 60"`
}

// sleep waits, and reports each second to a client that gave a progress token.
func (*Server) sleep(ctx context.Context, req *mcp.CallToolRequest, in sleepInput) (*mcp.CallToolResult, any, error) {
	if !(in.Seconds >= 0 && in.Seconds <= maxSleep) {
		return nil, nil, fmt.Errorf("seconds must be from 0 to %d", maxSleep)
	}
	end := time.NewTimer(time.Duration(in.Seconds * float64(time.Second)))
	defer end.Stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	token := req.Params.GetProgressToken()
	for done := 1.0; ; done++ {
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-end.C:
			return textResult(fmt.Sprintf("slept %v seconds", in.Seconds)), nil, nil
		case <-tick.C:
			if token == nil {
				continue
			}
			// Progress is a courtesy: a client that cannot take it still gets
			// the result, or its end shows in ctx.
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: done, Total: in.Seconds,
			})
		}
	}
}

type infoOutput struct {
	Version       string  `json:"version"`
	Revision      string  `json:"revision"`
	GoVersion     string  `json:"goVersion"`
	Platform      string  `json:"platform"`
	PID           int     `json:"pid"`
	UptimeSeconds float64 `json:"uptimeSeconds"`
}

func (d *Server) info(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, infoOutput, error) {
	build := buildinfo.Read()
	return nil, infoOutput{
		Version: build.Version, Revision: build.Revision, GoVersion: build.GoVersion,
		Platform: runtime.GOOS + "/" + runtime.GOARCH, PID: os.Getpid(),
		UptimeSeconds: time.Since(d.started).Seconds(),
	}, nil
}

func (*Server) about(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{
		URI: req.Params.URI, MIMEType: "text/plain",
		Text: "The demo server of sse-server. To serve your own: sse-server -- command args...",
	}}}, nil
}

func (*Server) greet(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	return &mcp.GetPromptResult{
		Description: "Asks for a greeting.",
		Messages: []*mcp.PromptMessage{{
			Role:    "user",
			Content: &mcp.TextContent{Text: "Greet " + req.Params.Arguments["name"] + " in one friendly sentence."},
		}},
	}, nil
}

func textResult(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}
