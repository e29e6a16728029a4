//lint:file-ignore SA1019 SEP-2577 deprecates sampling, roots and logging; clients and servers use them as long as they exist.

package e2e

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// goSDK is the client of modelcontextprotocol/go-sdk.
type goSDK struct {
	*observer
	url     string
	over    transport
	version string // of the protocol, "" for the SDK's latest
	client  *mcp.Client
	session *mcp.ClientSession
	steps   steps
}

func openGoSDK(version string) opener {
	return func(t *testing.T, url string, over transport, name string) client {
		t.Helper()
		c := newGoSDK(t, name)
		c.url, c.over, c.version = url, over, version
		t.Cleanup(c.close)
		return c
	}
}

func newGoSDK(t *testing.T, name string) *goSDK {
	t.Helper()
	c := &goSDK{observer: newObserver(t), steps: newSteps()}
	options := &mcp.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { c.steps.add() },
	}
	if name != "" {
		goSDKAnswers(options, name)
	}
	c.client = mcp.NewClient(&mcp.Implementation{Name: "sse-server-e2e", Version: "0"}, options)
	if name != "" {
		c.client.AddRoots(&mcp.Root{URI: "file:///" + name})
	}
	return c
}

// goSDKAnswers declares what a server may ask, and answers with the name.
func goSDKAnswers(options *mcp.ClientOptions, name string) {
	options.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": name}}, nil
	}
	options.CreateMessageHandler = func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
		return &mcp.CreateMessageResult{Role: "assistant", Model: "none", Content: &mcp.TextContent{Text: name}}, nil
	}
}

func (c *goSDK) connect(ctx context.Context) (err error) {
	// The SDK binds the stream to this context, so it must outlive the step.
	ctx = context.WithoutCancel(ctx)
	c.session, err = c.client.Connect(ctx, c.transport(), &mcp.ClientSessionOptions{ProtocolVersion: c.version})
	return goSDKError(err)
}

func (c *goSDK) transport() mcp.Transport {
	client := &http.Client{Transport: c.observer}
	if c.over == streamable {
		return &mcp.StreamableClientTransport{Endpoint: c.url, HTTPClient: client}
	}
	return &mcp.SSEClientTransport{Endpoint: c.url, HTTPClient: client}
}

func (c *goSDK) listTools(ctx context.Context) ([]string, error) {
	list, err := c.session.ListTools(ctx, nil)
	return toolsOf(list, goSDKError(err))
}

func (c *goSDK) callTool(ctx context.Context, name string, args map[string]any) (string, error) {
	result, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	return textOf(result, goSDKError(err))
}

func (c *goSDK) progress(ctx context.Context, name string, args map[string]any, want int) (int, error) {
	params := &mcp.CallToolParams{Name: name, Arguments: args}
	params.SetProgressToken(1) // the same for all clients
	result, err := c.session.CallTool(ctx, params)
	if _, err := textOf(result, goSDKError(err)); err != nil {
		return 0, err
	}
	return c.steps.await(ctx, want)
}

func (c *goSDK) read(ctx context.Context, uri string) (string, error) {
	result, err := c.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	return textOf(result, goSDKError(err))
}

func (c *goSDK) prompt(ctx context.Context, name string, args map[string]string) (string, error) {
	result, err := c.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: args})
	return textOf(result, goSDKError(err))
}

func (c *goSDK) callAll(ctx context.Context, name string, args []map[string]any) ([]string, error) {
	return callEach(ctx, c, name, args)
}

func (c *goSDK) close() {
	if c.session != nil {
		_ = c.session.Close() // the gateway may be gone already
	}
}

func goSDKError(err error) error {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return &rpcError{Code: int(e.Code), Message: e.Message, Data: e.Data}
	}
	return err
}
