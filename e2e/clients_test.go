package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"

	mcpgo "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	mcpgotypes "github.com/mark3labs/mcp-go/mcp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// client is an MCP client as its users see it. An error that the server sent is
// an *rpcError.
type client interface {
	connect(ctx context.Context) error
	listTools(ctx context.Context) ([]string, error)
	// callTool returns the text of the result.
	callTool(ctx context.Context, name string, args map[string]any) (string, error)
	// callAll calls the tool with all arguments at once.
	callAll(ctx context.Context, name string, args []map[string]any) ([]string, error)
	// saw returns what is known of the client's HTTP.
	saw() traffic
	close()
}

// traffic is what a client sent.
type traffic struct {
	// Streams is how many it opened.
	Streams int `json:"streams"`
	// Opening is the method of its first message.
	Opening string `json:"opening"`
}

// kind is one client program.
type kind struct {
	name string
	open func(t *testing.T, url string) client
	// discovers: it sends server/discover before initialize.
	discovers bool
	// reconnects: it opens a new stream by itself, and does not initialize again.
	reconnects bool
	// oneShot: every step is a process and a connection of its own.
	oneShot bool
	// noErrorData: it does not show the data of an error.
	noErrorData bool
}

func kinds() []kind {
	return []kind{
		{name: "TypeScriptSDK1", open: openNode("sdk1"), reconnects: true},
		{name: "TypeScriptClient2", open: openNode("client2"), reconnects: true},
		{name: "TypeScriptClient2Auto", open: openNode("client2-auto"), reconnects: true, discovers: true},
		{name: "Inspector", open: openInspector("legacy"), oneShot: true},
		{name: "InspectorAuto", open: openInspector("auto"), oneShot: true, discovers: true},
		{name: "GoSDK", open: openGoSDK, discovers: true},
		{name: "MCPGo", open: openMCPGo, noErrorData: true},
	}
}

// forEachClient runs the test once for each kind that the filter lets pass.
func forEachClient(t *testing.T, filter func(kind) bool, test func(t *testing.T, k kind)) {
	t.Helper()
	t.Parallel()
	for _, k := range kinds() {
		if filter(k) {
			t.Run(k.name, func(t *testing.T) {
				t.Parallel()
				test(t, k)
			})
		}
	}
}

func every(kind) bool        { return true }
func lasting(k kind) bool    { return !k.oneShot }
func reconnects(k kind) bool { return k.reconnects }
func discovers(k kind) bool  { return k.discovers }

// within returns a context for one step of a client.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// connect opens a client of the kind and connects it.
func connect(t *testing.T, k kind, url string) client {
	t.Helper()
	c := k.open(t, url)
	if err := c.connect(within(t)); err != nil {
		t.Fatalf("connect: %v", err)
	}
	return c
}

// mustCall calls a tool that must succeed.
func mustCall(t *testing.T, c client, tool string, args map[string]any) string {
	t.Helper()
	text, err := c.callTool(within(t), tool, args)
	if err != nil {
		t.Fatalf("call %s: %v", tool, err)
	}
	return text
}

// observer is a RoundTripper that looks on.
type observer struct {
	next http.RoundTripper
	mu   sync.Mutex
	seen traffic // guarded by mu
}

func newObserver(t *testing.T) *observer {
	t.Helper()
	return &observer{next: newHTTP(t).Transport}
}

func (o *observer) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		o.note(func(seen *traffic) { seen.Streams++ })
	} else if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		_ = req.Body.Close() // it was read to its end
		req.Body = io.NopCloser(bytes.NewReader(body))
		var m struct{ Method string }
		if err := json.Unmarshal(body, &m); err != nil {
			return nil, err
		}
		o.note(func(seen *traffic) {
			if seen.Opening == "" {
				seen.Opening = m.Method
			}
		})
	}
	return o.next.RoundTrip(req)
}

func (o *observer) note(change func(*traffic)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(&o.seen)
}

func (o *observer) saw() traffic {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen
}

// callEach is callAll for clients that are called from goroutines.
func callEach(ctx context.Context, c client, name string, args []map[string]any) ([]string, error) {
	texts, errs := make([]string, len(args)), make([]error, len(args))
	var wg sync.WaitGroup
	for i, a := range args {
		wg.Go(func() { texts[i], errs[i] = c.callTool(ctx, name, a) })
	}
	wg.Wait()
	return texts, errors.Join(errs...)
}

// goSDK is the SSE client of modelcontextprotocol/go-sdk.
type goSDK struct {
	*observer
	url     string
	session *mcp.ClientSession
}

func openGoSDK(t *testing.T, url string) client {
	t.Helper()
	c := &goSDK{observer: newObserver(t), url: url}
	t.Cleanup(c.close)
	return c
}

func (c *goSDK) connect(ctx context.Context) (err error) {
	// The SDK binds the stream to this context, so it must outlive the step.
	ctx = context.WithoutCancel(ctx)
	client := mcp.NewClient(&mcp.Implementation{Name: "sse-server-e2e", Version: "0"}, nil)
	c.session, err = client.Connect(ctx, &mcp.SSEClientTransport{Endpoint: c.url, HTTPClient: &http.Client{Transport: c.observer}}, nil)
	return goSDKError(err)
}

func (c *goSDK) listTools(ctx context.Context) ([]string, error) {
	list, err := c.session.ListTools(ctx, nil)
	if err != nil {
		return nil, goSDKError(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names, nil
}

func (c *goSDK) callTool(ctx context.Context, name string, args map[string]any) (string, error) {
	result, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return "", goSDKError(err)
	}
	var text string
	for _, part := range result.Content {
		if part, ok := part.(*mcp.TextContent); ok {
			text += part.Text
		}
	}
	if result.IsError {
		return "", errors.New(text)
	}
	return text, nil
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

// mcpGo is the SSE client of mark3labs/mcp-go.
type mcpGo struct {
	*observer
	url    string
	client *mcpgo.Client
}

func openMCPGo(t *testing.T, url string) client {
	t.Helper()
	c := &mcpGo{observer: newObserver(t), url: url}
	t.Cleanup(c.close)
	return c
}

func (c *mcpGo) connect(ctx context.Context) (err error) {
	c.client, err = mcpgo.NewSSEMCPClient(c.url, transport.WithHTTPClient(&http.Client{Transport: c.observer}))
	if err != nil {
		return err
	}
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
	result, err := c.client.CallTool(ctx, call)
	if err != nil {
		return "", mcpGoError(err)
	}
	var text string
	for _, part := range result.Content {
		if part, ok := part.(mcpgotypes.TextContent); ok {
			text += part.Text
		}
	}
	if result.IsError {
		return "", errors.New(text)
	}
	return text, nil
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
