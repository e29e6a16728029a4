package statelessserver_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/statelessserver"
	"github.com/mcp-sse/mcp-sse/upstream/internal/upstreamtest"
)

// sdkServer is a stateless server of go-sdk with a tool for each thing that a
// session can do.
type sdkServer struct {
	*mcp.Server
	cancelled chan struct{} // closed when the tool "slow" was cancelled
}

type sdkInput struct {
	Text string `json:"text,omitempty"`
}

func newSDKServer() *sdkServer {
	s := &sdkServer{cancelled: make(chan struct{})}
	s.Server = mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	text := func(s string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
	}
	mcp.AddTool(s.Server, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in sdkInput) (*mcp.CallToolResult, any, error) {
		return text(in.Text), nil, nil
	})
	mcp.AddTool(s.Server, &mcp.Tool{Name: "progress"}, func(ctx context.Context, r *mcp.CallToolRequest, _ sdkInput) (*mcp.CallToolResult, any, error) {
		err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1})
		return text("done"), nil, err
	})
	mcp.AddTool(s.Server, &mcp.Tool{Name: "log"}, func(ctx context.Context, r *mcp.CallToolRequest, _ sdkInput) (*mcp.CallToolResult, any, error) {
		//lint:ignore SA1019 clients set a level, and wait for lines
		err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: "a line"})
		return text("done"), nil, err
	})
	mcp.AddTool(s.Server, &mcp.Tool{Name: "ask"}, func(_ context.Context, r *mcp.CallToolRequest, _ sdkInput) (*mcp.CallToolResult, any, error) {
		answer, ok := r.Params.InputResponses["who"].(*mcp.ElicitResult)
		if !ok {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"who": &mcp.ElicitParams{Message: "Who?"}}, RequestState: "state"}, nil, nil
		}
		return text(answer.Action + " " + answer.Content["name"].(string) + " " + r.Params.RequestState), nil, nil
	})
	mcp.AddTool(s.Server, &mcp.Tool{Name: "slow"}, func(ctx context.Context, r *mcp.CallToolRequest, _ sdkInput) (*mcp.CallToolResult, any, error) {
		if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1}); err != nil {
			return nil, nil, err
		}
		<-ctx.Done()
		close(s.cancelled)
		return nil, nil, ctx.Err()
	})
	s.AddResource(&mcp.Resource{Name: "r", URI: "test://r"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "test://r", Text: "x"}}}, nil
	})
	return s
}

// caller is the client of a session: what reaches it, in order.
type caller struct {
	t        *testing.T
	conn     jsonrpc.Attributed
	received chan string
}

func (c *caller) send(msg string) {
	c.t.Helper()
	if err := c.conn.Send([]byte(msg)); err != nil {
		c.t.Fatalf("send %s: %v", msg, err)
	}
}

// want checks the next message for parts, and returns it.
func (c *caller) want(parts ...string) *jsonrpc.Message {
	c.t.Helper()
	select {
	case got := <-c.received:
		for _, part := range parts {
			if !strings.Contains(got, part) {
				c.t.Fatalf("got %s\nwant %s in it", got, part)
			}
		}
		m, err := jsonrpc.Parse([]byte(got))
		if err != nil {
			c.t.Fatalf("got %s: %v", got, err)
		}
		return m
	case <-time.After(upstreamtest.Patience):
		c.t.Fatalf("nothing came, want %q", parts)
	}
	return nil
}

// overSDK opens a session with a go-sdk server, and returns the answer to initialize.
func overSDK(t *testing.T, s *sdkServer, opts *mcp.StreamableHTTPOptions) (*caller, string) {
	t.Helper()
	opts.Stateless = true
	opts.Logger = slog.New(slog.DiscardHandler)
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.Server }, opts))
	client := server.Client()
	c := &caller{t: t, conn: statelessserver.NewModern(server.URL, "", client, slog.New(slog.DiscardHandler)), received: make(chan string, 100)}
	var reader sync.WaitGroup
	reader.Go(func() { // ends with the session
		for {
			msg, err := c.conn.Recv()
			if err != nil {
				return
			}
			c.received <- string(msg)
		}
	})
	t.Cleanup(func() {
		_ = c.conn.Close()
		reader.Wait()
		client.CloseIdleConnections()
		server.CloseClientConnections()
		server.Close()
	})
	c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"test","version":"1"},` +
		`"capabilities":{"elicitation":{},"sampling":{},"roots":{}}}}`)
	result := c.want(`"id":0`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c, string(result.Result())
}

func TestGoSDKStatelessServerLooksLikeASession(t *testing.T) {
	c, result := overSDK(t, newSDKServer(), &mcp.StreamableHTTPOptions{PropagateRequestCancellation: true})
	for _, part := range []string{`"protocolVersion":"2025-11-25"`, `"listChanged":true`, `"serverInfo":{"name":"sdk","version":"1"}`} {
		if !strings.Contains(result, part) {
			t.Errorf("initialize was answered with %s", result)
		}
	}
	c.send(`{"jsonrpc":"2.0","id":"e","method":"tools/call","params":{"name":"echo","arguments":{"text":"hällo"}}}`)
	if m := c.want(`"id":"e"`, `"text":"hällo"`); strings.Contains(string(m.Raw()), "resultType") {
		t.Errorf("the answer is %s", m.Raw())
	}
	c.send(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
	c.want(`"id":"l"`, `"name":"echo"`, `"name":"slow"`)
	c.send(`{"jsonrpc":"2.0","id":"r","method":"resources/read","params":{"uri":"test://r"}}`)
	c.want(`"id":"r"`, `"text":"x"`)
	c.send(`{"jsonrpc":"2.0","id":"u","method":"vendor/unknown"}`)
	c.want(`"id":"u"`, `"code":-32601`)
	c.send(`{"jsonrpc":"2.0","id":"n","method":"tools/call","params":{"name":"none"}}`)
	c.want(`"id":"n"`, `"code":-32602`)
	c.send(upstreamtest.Ping)
	c.want(`{"jsonrpc":"2.0","id":1,"result":{}}`)
}

func TestGoSDKAnswersWithJSON(t *testing.T) {
	c, _ := overSDK(t, newSDKServer(), &mcp.StreamableHTTPOptions{JSONResponse: true})
	c.send(`{"jsonrpc":"2.0","id":"e","method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}`)
	c.want(`"id":"e"`, `"text":"x"`)
}

func TestGoSDKProgressAndLogLines(t *testing.T) {
	c, _ := overSDK(t, newSDKServer(), &mcp.StreamableHTTPOptions{})
	c.send(`{"jsonrpc":"2.0","id":"p","method":"tools/call","params":{"name":"progress","arguments":{},"_meta":{"progressToken":"tok"}}}`)
	c.want("notifications/progress", `"progressToken":"tok"`)
	c.want(`"id":"p"`, "done")
	c.send(`{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{"name":"log","arguments":{}}}`)
	c.want(`"id":"q"`, "done") // no level, no line
	c.send(`{"jsonrpc":"2.0","id":"s","method":"logging/setLevel","params":{"level":"info"}}`)
	c.want(`{"jsonrpc":"2.0","id":"s","result":{}}`)
	c.send(`{"jsonrpc":"2.0","id":"t","method":"tools/call","params":{"name":"log","arguments":{}}}`)
	c.want("notifications/message", `"a line"`)
	c.want(`"id":"t"`, "done")
}

func TestGoSDKElicitation(t *testing.T) {
	c, _ := overSDK(t, newSDKServer(), &mcp.StreamableHTTPOptions{})
	c.send(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"ask","arguments":{}}}`)
	m := c.want(`"method":"elicitation/create"`, "Who?")
	c.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"action":"accept","content":{"name":"Ada"}}}`)
	c.want(`"id":"a"`, "accept Ada state")
}

func TestGoSDKCancellation(t *testing.T) {
	s := newSDKServer()
	c, _ := overSDK(t, s, &mcp.StreamableHTTPOptions{PropagateRequestCancellation: true})
	c.send(`{"jsonrpc":"2.0","id":"s","method":"tools/call","params":{"name":"slow","arguments":{},"_meta":{"progressToken":"p"}}}`)
	c.want("notifications/progress") // the tool runs
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s"}}`)
	select {
	case <-s.cancelled:
	case <-time.After(upstreamtest.Patience):
		t.Fatal("the tool runs on")
	}
}

func TestGoSDKTellsOfChanges(t *testing.T) {
	s := newSDKServer()
	c, _ := overSDK(t, s, &mcp.StreamableHTTPOptions{})
	c.send(`{"jsonrpc":"2.0","id":"s","method":"resources/subscribe","params":{"uri":"test://r"}}`)
	c.want(`{"jsonrpc":"2.0","id":"s","result":{}}`)
	for n := 0; len(c.received) == 0; n++ { // until the lists are listened to as well
		mcp.AddTool(s.Server, &mcp.Tool{Name: "new" + strconv.Itoa(n)}, func(context.Context, *mcp.CallToolRequest, sdkInput) (*mcp.CallToolResult, any, error) {
			return nil, nil, nil
		})
		time.Sleep(10 * time.Millisecond)
	}
	if m := c.want(`"method":"notifications/tools/list_changed"`); strings.Contains(string(m.Raw()), "subscriptionId") {
		t.Errorf("the client got %s", m.Raw())
	}
	if err := s.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "test://r"}); err != nil {
		t.Fatalf("ResourceUpdated: %v", err)
	}
	m := c.want()
	for m.Method == "notifications/tools/list_changed" { // there may have been several
		m = c.want()
	}
	if m.Method != "notifications/resources/updated" || strings.Contains(string(m.Raw()), "subscriptionId") {
		t.Errorf("the client got %s", m.Raw())
	}
}
