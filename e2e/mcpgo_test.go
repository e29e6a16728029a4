package e2e

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	mcpgo "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	mcpgotypes "github.com/mark3labs/mcp-go/mcp"
)

// mcpGo is the SSE client of mark3labs/mcp-go.
type mcpGo struct {
	*observer
	url    string
	client *mcpgo.Client
	steps  steps
}

func openMCPGo(t *testing.T, url, _ string) client {
	t.Helper()
	c := &mcpGo{observer: newObserver(t), url: url, steps: newSteps()}
	t.Cleanup(c.close)
	return c
}

func (c *mcpGo) connect(ctx context.Context) (err error) {
	sse, err := transport.NewSSE(c.url, transport.WithHTTPClient(&http.Client{Transport: c.observer}))
	if err != nil {
		return err
	}
	c.client = mcpgo.NewClient(sse)
	c.client.OnNotification(func(n mcpgotypes.JSONRPCNotification) {
		if n.Method == "notifications/progress" {
			c.steps.add()
		}
	})
	// The stream lives as long as the context of Start.
	if err := c.client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	var hello mcpgotypes.InitializeRequest
	hello.Params.ProtocolVersion = mcpgotypes.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcpgotypes.Implementation{Name: "sse-server-e2e", Version: "0"}
	_, err = c.client.Initialize(ctx, hello)
	return mcpGoError(err)
}

func (c *mcpGo) listTools(ctx context.Context) ([]string, error) {
	list, err := c.client.ListTools(ctx, mcpgotypes.ListToolsRequest{})
	if err != nil {
		return nil, mcpGoError(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names, nil
}

func (c *mcpGo) callTool(ctx context.Context, name string, args map[string]any) (string, error) {
	var call mcpgotypes.CallToolRequest
	call.Params.Name, call.Params.Arguments = name, args
	return c.call(ctx, call)
}

func (c *mcpGo) call(ctx context.Context, call mcpgotypes.CallToolRequest) (string, error) {
	result, err := c.client.CallTool(ctx, call)
	if err != nil {
		return "", mcpGoError(err)
	}
	var text strings.Builder
	for _, part := range result.Content {
		text.WriteString(mcpgotypes.GetTextFromContent(part))
	}
	if result.IsError {
		return "", errors.New(text.String())
	}
	return text.String(), nil
}

func (c *mcpGo) progress(ctx context.Context, name string, args map[string]any, want int) (int, error) {
	var call mcpgotypes.CallToolRequest
	call.Params.Name, call.Params.Arguments = name, args
	call.Params.Meta = &mcpgotypes.Meta{ProgressToken: 1} // the same for all clients
	if _, err := c.call(ctx, call); err != nil {
		return 0, err
	}
	return c.steps.await(ctx, want)
}

func (c *mcpGo) read(ctx context.Context, uri string) (string, error) {
	var read mcpgotypes.ReadResourceRequest
	read.Params.URI = uri
	result, err := c.client.ReadResource(ctx, read)
	if err != nil {
		return "", mcpGoError(err)
	}
	var text strings.Builder
	for _, part := range result.Contents {
		if part, ok := part.(mcpgotypes.TextResourceContents); ok {
			text.WriteString(part.Text)
		}
	}
	return text.String(), nil
}

func (c *mcpGo) prompt(ctx context.Context, name string, args map[string]string) (string, error) {
	var get mcpgotypes.GetPromptRequest
	get.Params.Name, get.Params.Arguments = name, args
	result, err := c.client.GetPrompt(ctx, get)
	if err != nil {
		return "", mcpGoError(err)
	}
	var text strings.Builder
	for _, m := range result.Messages {
		text.WriteString(mcpgotypes.GetTextFromContent(m.Content))
	}
	return text.String(), nil
}

func (c *mcpGo) callAll(ctx context.Context, name string, args []map[string]any) ([]string, error) {
	return callEach(ctx, c, name, args)
}

func (c *mcpGo) close() {
	if c.client != nil {
		_ = c.client.Close() // the gateway may be gone already
	}
}

// mcpGoError recognises an error response: the client keeps only its message,
// behind a sentinel for the code.
func mcpGoError(err error) error {
	if errors.Is(err, mcpgotypes.ErrInternalError) {
		return &rpcError{Code: -32603, Message: err.Error()}
	}
	return err
}
