package e2e

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"

	mcpgo "github.com/mark3labs/mcp-go/client"
	mcpgotransport "github.com/mark3labs/mcp-go/client/transport"
	mcpgotypes "github.com/mark3labs/mcp-go/mcp"
)

// mcpGo is the client of mark3labs/mcp-go.
type mcpGo struct {
	*observer
	url    string
	over   transport
	listen bool   // with a stream of Streamable HTTP, and so with a session
	name   string // that it answers with, "" for nothing
	client *mcpgo.Client
	steps  steps
}

func openMCPGo(listen bool) opener {
	return func(t *testing.T, url string, over transport, name string) client {
		t.Helper()
		c := &mcpGo{observer: newObserver(t), url: url, over: over, listen: listen, name: name, steps: newSteps()}
		t.Cleanup(c.close)
		return c
	}
}

func (c *mcpGo) connect(ctx context.Context) (err error) {
	way, err := c.transport()
	if err != nil {
		return err
	}
	c.client = mcpgo.NewClient(way, c.answers()...)
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

func (c *mcpGo) transport() (mcpgotransport.Interface, error) {
	client := &http.Client{Transport: c.observer}
	if c.over == streamable {
		options := []mcpgotransport.StreamableHTTPCOption{
			mcpgotransport.WithHTTPBasicClient(client), mcpgotransport.WithHTTPLogger(slog.New(slog.DiscardHandler))}
		if c.listen {
			//lint:ignore SA1019 deprecated with the sessions of 2025-11-25, which clients use
			options = append(options, mcpgotransport.WithContinuousListening())
		}
		return mcpgotransport.NewStreamableHTTP(c.url, options...)
	}
	return mcpgotransport.NewSSE(c.url, mcpgotransport.WithHTTPClient(client))
}

// answers declares what a server may ask, and answers with the name.
func (c *mcpGo) answers() []mcpgo.ClientOption {
	if c.name == "" {
		return nil
	}
	a := mcpGoAnswers(c.name)
	return []mcpgo.ClientOption{mcpgo.WithSamplingHandler(a), mcpgo.WithElicitationHandler(a), mcpgo.WithRootsHandler(a)}
}

// mcpGoAnswers is the name that a client answers with.
type mcpGoAnswers string

func (a mcpGoAnswers) CreateMessage(context.Context, mcpgotypes.CreateMessageRequest) (*mcpgotypes.CreateMessageResult, error) {
	return &mcpgotypes.CreateMessageResult{Model: "none", SamplingMessage: mcpgotypes.SamplingMessage{
		Role: mcpgotypes.RoleAssistant, Content: mcpgotypes.NewTextContent(string(a))}}, nil
}

func (a mcpGoAnswers) Elicit(context.Context, mcpgotypes.ElicitationRequest) (*mcpgotypes.ElicitationResult, error) {
	return &mcpgotypes.ElicitationResult{ElicitationResponse: mcpgotypes.ElicitationResponse{
		Action: mcpgotypes.ElicitationResponseActionAccept, Content: map[string]any{"name": string(a)}}}, nil
}

func (a mcpGoAnswers) ListRoots(context.Context, mcpgotypes.ListRootsRequest) (*mcpgotypes.ListRootsResult, error) {
	return &mcpgotypes.ListRootsResult{Roots: []mcpgotypes.Root{{URI: "file:///" + string(a)}}}, nil
}

func (c *mcpGo) listTools(ctx context.Context) ([]string, error) {
	list, err := c.client.ListTools(ctx, mcpgotypes.ListToolsRequest{})
	return toolsOf(list, mcpGoError(err))
}

func (c *mcpGo) callTool(ctx context.Context, name string, args map[string]any) (string, error) {
	return c.call(ctx, mcpgotypes.CallToolParams{Name: name, Arguments: args})
}

func (c *mcpGo) call(ctx context.Context, params mcpgotypes.CallToolParams) (string, error) {
	result, err := c.client.CallTool(ctx, mcpgotypes.CallToolRequest{Params: params})
	return textOf(result, mcpGoError(err))
}

func (c *mcpGo) progress(ctx context.Context, name string, args map[string]any, want int) (int, error) {
	token := &mcpgotypes.Meta{ProgressToken: 1} // the same for all clients
	if _, err := c.call(ctx, mcpgotypes.CallToolParams{Name: name, Arguments: args, Meta: token}); err != nil {
		return 0, err
	}
	return c.steps.await(ctx, want)
}

func (c *mcpGo) read(ctx context.Context, uri string) (string, error) {
	result, err := c.client.ReadResource(ctx, mcpgotypes.ReadResourceRequest{Params: mcpgotypes.ReadResourceParams{URI: uri}})
	return textOf(result, mcpGoError(err))
}

func (c *mcpGo) prompt(ctx context.Context, name string, args map[string]string) (string, error) {
	result, err := c.client.GetPrompt(ctx, mcpgotypes.GetPromptRequest{Params: mcpgotypes.GetPromptParams{Name: name, Arguments: args}})
	return textOf(result, mcpGoError(err))
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
