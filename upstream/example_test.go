package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	mcpgoserver "github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/internal/caller"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// converse sends MCP messages over one session and prints the responses, as the
// gateway does for its clients.
func converse(up upstream.Upstream, messages ...string) {
	conn, err := up.Dial(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	for _, msg := range messages {
		if err := conn.Send([]byte(msg)); err != nil {
			log.Fatal(err)
		}
		if m, err := jsonrpc.Parse([]byte(msg)); err != nil || m.Kind != jsonrpc.Request {
			continue
		}
		answer, err := conn.Recv()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(answer))
	}
}

// greeter is a server of the official Go SDK.
func greeter() *mcp.Server {
	type input struct {
		Name string `json:"name"`
	}
	srv := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	mcp.AddTool(srv, &mcp.Tool{Name: "greet"}, func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello, " + in.Name}}}, nil, nil
	})
	return srv
}

const (
	initialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"example","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	greet       = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"greet","arguments":{"name":"Ada"}}}`
)

// A server of the official Go SDK runs over in-memory streams.
func ExampleServe() {
	srv := greeter()
	up := upstream.Serve(func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
		return srv.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
	})

	converse(up, initialize, initialized, greet)
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"capabilities":{"logging":{},"tools":{"listChanged":true}},"protocolVersion":"2025-06-18","serverInfo":{"name":"greeter","version":"1"}}}
	// {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"Hello, Ada"}]}}
}

// tenants is an Upstream of one's own: it starts a server for each client, which knows who the
// client is for as long as the session lasts.
type tenants struct{}

func (tenants) Dial(ctx context.Context) (jsonrpc.Conn, error) {
	session := upstream.CallerValues(ctx) // goes on when ctx ends, which it does once Dial returns
	return upstream.Handle(func(context.Context, json.RawMessage) any {
		who, _ := upstream.CallerFromContext(session)
		return json.RawMessage(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"tenant":%q}}`, who.Principal))
	}).Dial(ctx)
}

func ExampleCallerValues() {
	// The gateway adds the caller where gateway.Options.PassRequest is set.
	ctx, cancel := context.WithCancel(caller.NewContext(context.Background(), &caller.Caller{Principal: "ada"}))
	conn, err := tenants{}.Dial(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	cancel()

	if err := conn.Send([]byte(`{"jsonrpc":"2.0","id":1,"method":"who"}`)); err != nil {
		log.Fatal(err)
	}
	answer, _ := conn.Recv()
	fmt.Println(string(answer))
	// Output: {"jsonrpc":"2.0","id":1,"result":{"tenant":"ada"}}
}

// A server of mcp-go takes one message at a time.
func ExampleHandle() {
	s := mcpgoserver.NewMCPServer("greeter", "1")
	s.AddTool(mcpgo.NewTool("greet", mcpgo.WithString("name")), func(_ context.Context, r mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
		return mcpgo.NewToolResultText("Hello, " + r.GetString("name", "nobody")), nil
	})

	up := upstream.Handle(func(ctx context.Context, msg json.RawMessage) any {
		return s.HandleMessage(ctx, msg)
	})

	converse(up, greet)
	// Output:
	// {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"Hello, Ada"}]}}
}

// A server at a URL is asked what it speaks.
func ExampleURL() {
	up := upstream.URL{
		Address: "https://mcp.example.com/mcp",
		Header:  http.Header{"Authorization": {"Bearer " + os.Getenv("TOKEN")}},
	}
	conn, err := up.Dial(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
}

// A handler of Streamable HTTP is called without a socket.
func ExampleHTTPHandler() {
	srv := greeter()
	up := upstream.HTTPHandler(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, nil))

	converse(up, initialize, initialized, greet)
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"capabilities":{"logging":{},"tools":{"listChanged":true}},"protocolVersion":"2025-06-18","serverInfo":{"name":"greeter","version":"1"}}}
	// {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"Hello, Ada"}]}}
}

// A server that is a program of its own gets a process for each session.
func ExampleCommand() {
	up := upstream.Command{
		Path:         "mcp-server-filesystem",
		Args:         []string{"/srv/docs"},
		Env:          append(os.Environ(), "LOG_LEVEL=warn"),
		MaxLineBytes: 64 << 20,
		CloseTimeout: 5 * time.Second,
	}
	conn, err := up.Dial(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
}
