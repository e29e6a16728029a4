package statelessclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/gosdk"
	"github.com/mcp-sse/mcp-sse/upstream"
)

//lint:file-ignore SA1019 sampling, roots and logging are deprecated, and work until they are removed.

// sdkServer is a server of go-sdk with a tool for each thing that a client may meet.
func sdkServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	type in struct {
		Text string `json:"text,omitempty"`
	}
	add := func(name string, do func(context.Context, *mcp.CallToolRequest, in) (*mcp.CallToolResult, error)) {
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(ctx context.Context, r *mcp.CallToolRequest, in in) (*mcp.CallToolResult, any, error) {
			result, err := do(ctx, r, in)
			return result, nil, err
		})
	}
	add("echo", func(_ context.Context, _ *mcp.CallToolRequest, in in) (*mcp.CallToolResult, error) {
		return text(in.Text), nil
	})
	add("progress", func(ctx context.Context, r *mcp.CallToolRequest, _ in) (*mcp.CallToolResult, error) {
		err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1})
		return text("done"), err
	})
	add("log", func(ctx context.Context, r *mcp.CallToolRequest, _ in) (*mcp.CallToolResult, error) {
		return text("done"), r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: "a line"})
	})
	add("ask", func(_ context.Context, r *mcp.CallToolRequest, in in) (*mcp.CallToolResult, error) {
		who, ok := r.Params.InputResponses["who"].(*mcp.ElicitResult)
		where, ok2 := r.Params.InputResponses["where"].(*mcp.ListRootsResult)
		if !ok || !ok2 {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{
				"who": &mcp.ElicitParams{Message: in.Text}, "where": &mcp.ListRootsParams{},
			}}, nil
		}
		return text(fmt.Sprint(in.Text, " ", who.Content["name"], " ", where.Roots[0].URI)), nil
	})
	add("grow", func(context.Context, *mcp.CallToolRequest, in) (*mcp.CallToolResult, error) {
		mcp.AddTool(s, &mcp.Tool{Name: "more"}, func(context.Context, *mcp.CallToolRequest, in) (*mcp.CallToolResult, any, error) {
			return text(""), nil, nil
		})
		return text("done"), nil
	})
	s.AddResource(&mcp.Resource{Name: "r", URI: "test://r"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "test://r", Text: "x"}}}, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "p"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Description: "a prompt"}, nil
	})
	return s
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func textOf(r *mcp.CallToolResult) string {
	var all []string
	for _, c := range r.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			all = append(all, c.Text)
		}
	}
	return strings.Join(all, " ")
}

// legacy hides 2026-07-28 from the clients of a server.
func legacy(s *mcp.Server) *mcp.Server {
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "server/discover" {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found"}
			}
			return next(ctx, method, req)
		}
	})
	return s
}

// upstreams are all kinds of way to a server. Over lines nobody knows which call a message
// of the server belongs to.
var upstreams = map[string]func(t *testing.T) upstream.Upstream{
	"lines": func(*testing.T) upstream.Upstream {
		return upstream.Serve(func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
			err := legacy(sdkServer()).Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		})
	},
	"in process": func(*testing.T) upstream.Upstream { return gosdk.Server(legacy(sdkServer())) },
	"with sessions": func(t *testing.T) upstream.Upstream {
		s := legacy(sdkServer())
		return serveURL(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	},
	"stateless": func(t *testing.T) upstream.Upstream {
		s := sdkServer()
		return serveURL(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}))
	},
	"HTTP+SSE": func(t *testing.T) upstream.Upstream {
		s := legacy(sdkServer())
		return serveURL(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil))
	},
}

func serveURL(t *testing.T, h http.Handler) upstream.Upstream {
	server := httptest.NewServer(h)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return upstream.URL{Address: server.URL}
}

// serveGateway serves a gateway, and returns the address of /mcp.
func serveGateway(t *testing.T, up upstream.Upstream, o gateway.Options) (*gateway.Gateway, string) {
	t.Helper()
	g, err := gateway.New(up, o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(g)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := g.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		server.CloseClientConnections()
		server.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return g, server.URL + "/mcp"
}

// sdkClient connects a client of go-sdk and expects it to speak 2026-07-28.
func sdkClient(t *testing.T, url, name string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, o)
	c.AddRoots(&mcp.Root{URI: "file:///" + name})
	session, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	want(t, "version", session.InitializeResult().ProtocolVersion, "2026-07-28")
	return session
}

func call(t *testing.T, s *mcp.ClientSession, p *mcp.CallToolParams) string {
	t.Helper()
	r, err := s.CallTool(t.Context(), p)
	if err != nil {
		t.Errorf("%s: %v", p.Name, err)
		return ""
	}
	return textOf(r)
}

// elicitor answers every elicitation with the client's name.
func elicitor(name string) *mcp.ClientOptions {
	return &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": name + " on " + r.Params.Message}}, nil
	}}
}

// A client of go-sdk in front of every kind of server.
func TestClientOfGoSDK(t *testing.T) {
	for name, up := range upstreams {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, url := serveGateway(t, up(t), gateway.Options{})
			notified := make(chan string, 100)
			o := elicitor("ada")
			o.ProgressNotificationHandler = func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { notified <- "progress" }
			o.LoggingMessageHandler = func(_ context.Context, r *mcp.LoggingMessageRequest) { notified <- fmt.Sprint("log ", r.Params.Data) }
			o.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) { notified <- "tools" }
			s := sdkClient(t, url, "ada", o)
			want(t, "server", s.InitializeResult().ServerInfo.Name, "sdk")
			tools, err := s.ListTools(t.Context(), nil)
			if err != nil || len(tools.Tools) != 5 {
				t.Fatalf("tools: %v, %v", tools, err)
			}
			want(t, "echo", call(t, s, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "x"}}), "x")
			p := &mcp.CallToolParams{Name: "progress"}
			p.SetProgressToken("p")
			call(t, s, p)
			want(t, "notification", <-notified, "progress")
			p = &mcp.CallToolParams{Name: "log", Meta: mcp.Meta{"io.modelcontextprotocol/logLevel": "debug"}}
			call(t, s, p)
			want(t, "notification", <-notified, "log a line")
			want(t, "ask", call(t, s, &mcp.CallToolParams{Name: "ask", Arguments: map[string]any{"text": "call"}}), "call ada on call file:///ada")
			read, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://r"})
			if err != nil || read.Contents[0].Text != "x" {
				t.Errorf("read: %v, %v", read, err)
			}
			if _, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://other"}); code(err) != -32602 {
				t.Errorf("read of nothing: %v", err)
			}
			prompt, err := s.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p"})
			if err != nil || prompt.Description != "a prompt" {
				t.Errorf("prompt: %v, %v", prompt, err)
			}
			call(t, s, &mcp.CallToolParams{Name: "grow"})
			want(t, "notification", <-notified, "tools")
		})
	}
}

func code(err error) int64 {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return 0
	}
	return e.Code
}
