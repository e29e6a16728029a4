package mcpgo_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/mcpgo"
)

// The server works wherever mcp-go's own does, with the options of the same names.
func TestMounting(t *testing.T) {
	for _, test := range []struct {
		name  string
		opts  []mcpgo.Option
		mount func(s *mcpgo.SSEServer) http.Handler
		path  string
	}{
		{"itself", nil, func(s *mcpgo.SSEServer) http.Handler { return s }, "/sse"},
		{"base path", []mcpgo.Option{mcpgo.WithStaticBasePath("mcp/")}, func(s *mcpgo.SSEServer) http.Handler { return s }, "/mcp/sse"},
		{"prefix", []mcpgo.Option{mcpgo.WithGatewayOptions(gateway.Options{Prefix: "/mcp"})},
			func(s *mcpgo.SSEServer) http.Handler { return s }, "/mcp/sse"},
		{"endpoint", []mcpgo.Option{mcpgo.WithSSEEndpoint("/events")}, func(s *mcpgo.SSEServer) http.Handler { return s }, "/events"},
		{"two patterns", nil, func(s *mcpgo.SSEServer) http.Handler {
			m := http.NewServeMux()
			m.Handle("/sse", s)
			m.Handle("/message", s)
			return m
		}, "/sse"},
		{"stripped", nil, func(s *mcpgo.SSEServer) http.Handler { return http.StripPrefix("/tools", s) }, "/tools/sse"},
		{"a variable in the path", nil, func(s *mcpgo.SSEServer) http.Handler {
			m := http.NewServeMux()
			m.Handle("/mcp/{tenant}/sse", s.SSEHandler())
			m.Handle("/mcp/{tenant}/message", s.MessageHandler())
			return m
		}, "/mcp/acme/sse"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := mcpgo.NewSSEServer(echo(), test.opts...)
			root, _ := strings.CutSuffix(listen(t, test.mount(s), func() { shutdown(t, s) }), "/sse")
			client := httpClient(t)
			c := open(t, client, root+test.path, "{}", nil)
			c.WantAnswer(t, call("5", "echo", `{"text":"hi"}`), "5", "hi")
			resp, err := client.Get(root + "/else")
			ssetest.Must(t, err)
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			ssetest.Want(t, "another path", resp.StatusCode, http.StatusNotFound)
		})
	}
}

// Options that cannot be right panic with their name.
func TestWrongOptions(t *testing.T) {
	for _, test := range []struct {
		server *server.MCPServer
		opts   []mcpgo.Option
		want   string
	}{
		{nil, nil, "there is no server"},
		{echo(), []mcpgo.Option{mcpgo.WithStaticBasePath("/a"), mcpgo.WithGatewayOptions(gateway.Options{Prefix: "/b"})}, "contradicts the gateway's Prefix"},
		{echo(), []mcpgo.Option{mcpgo.WithGatewayOptions(gateway.Options{ErrorDetails: 9})}, "ErrorDetails"},
		{echo(), []mcpgo.Option{mcpgo.WithSSEContextFunc(tenantOf), mcpgo.WithGatewayOptions(gateway.Options{Warm: 1})}, "WithSSEContextFunc contradicts Warm"},
		{echo(), []mcpgo.Option{mcpgo.WithGatewayOptions(gateway.Options{Sessions: gateway.SessionsShared, PassRequest: &gateway.PassRequest{}})}, "PassRequest: contradicts Sessions"},
		{echo(), []mcpgo.Option{mcpgo.WithGatewayOptions(gateway.Options{Warm: 1, PassRequest: &gateway.PassRequest{}})}, "PassRequest: contradicts Warm"},
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "mcpgo.NewSSEServer: ") || !strings.Contains(text, test.want) {
					t.Errorf("got %q, want %q", text, test.want)
				}
			}()
			mcpgo.NewSSEServer(test.server, test.opts...)
		}()
	}
}

// Shared sessions work, without the values of a client's request.
func TestSharedSession(t *testing.T) {
	e := newEverything(t)
	h := mcpgo.NewSSEServer(e.MCPServer, mcpgo.WithGatewayOptions(gateway.Options{Sessions: gateway.SessionsShared}))
	url, client := listen(t, h, func() { shutdown(t, h) }), httpClient(t)
	for range 2 {
		c := open(t, client, url, "{}", http.Header{"X-Tenant": {"acme"}})
		c.WantAnswer(t, call("5", "who", "{}"), "5", `tenant \u003cnil\u003e, passed \"\"`)
	}
	ssetest.Want(t, "sessions", strings.Count(strings.Join(e.saw.Lines(), "\n"), "registered: true"), 1)
}

// PassRequest.Context of the gateway's options runs before WithSSEContextFunc, may refuse, and
// its values reach the hooks of the session.
func TestRequestContext(t *testing.T) {
	type key struct{}
	hooks := &server.Hooks{}
	registered := make(chan any, 1)
	hooks.AddOnRegisterSession(func(ctx context.Context, _ server.ClientSession) { registered <- ctx.Value(key{}) })
	srv := server.NewMCPServer("x", "1", server.WithHooks(hooks))
	srv.AddTool(mcp.NewTool("who"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(ctx.Value(key{}).(string)), nil
	})
	h := mcpgo.NewSSEServer(srv, mcpgo.WithGatewayOptions(gateway.Options{
		PassRequest: &gateway.PassRequest{Context: func(r *http.Request) (context.Context, error) {
			if r.Header.Get("X-Tenant") == "" {
				return nil, errors.New("who are you?")
			}
			return context.WithValue(r.Context(), key{}, r.Header.Get("X-Tenant")), nil
		}},
	}), mcpgo.WithSSEContextFunc(func(ctx context.Context, r *http.Request) context.Context {
		return context.WithValue(ctx, key{}, ctx.Value(key{}).(string)+" by "+r.Method)
	}))
	url, client := listen(t, h, func() { shutdown(t, h) }), httpClient(t)
	if _, err := ssetest.Dial(client, url, nil); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("without a tenant: got %v, want 404", err)
	}
	c := ssetest.Open(t, client, url, http.Header{"X-Tenant": {"acme"}})
	ssetest.Want(t, "OnRegisterSession saw", <-registered, "acme by GET")
	c.WantAnswer(t, call("5", "who", "{}"), "5", "acme by POST")
}

// An upstream in a gateway of one's own gives handlers the headers that the gateway passes.
func TestRequestHeaders(t *testing.T) {
	g, err := gateway.New(mcpgo.Server(newEverything(t).MCPServer), gateway.Options{PassRequest: &gateway.PassRequest{Headers: []string{"X-Tenant"}}})
	ssetest.Must(t, err)
	url := listen(t, g, func() { shutdown(t, g) })
	c := open(t, httpClient(t), url, "{}", nil)
	c.Sent = http.Header{"X-Tenant": {"acme"}}
	c.WantAnswer(t, call("5", "who", "{}"), "5", `passed \"acme\"`)
}

func TestStartAndShutdown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // a free port
	ssetest.Must(t, err)
	addr := l.Addr().String()
	s := mcpgo.NewSSEServer(echo())
	if err := s.Start(addr); err == nil {
		t.Error("Start took an address that is in use")
	}
	_ = l.Close()
	ended := make(chan error)
	go func() { ended <- s.Start(addr) }()
	client := httpClient(t)
	var c *ssetest.Client
	for c == nil { // until Start listens
		c, _ = ssetest.Dial(client, "http://"+addr+"/sse", nil)
	}
	defer c.Close()
	ssetest.Want(t, "connections", len(s.Gateway().Snapshot()), 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ssetest.Want(t, "Shutdown", s.Shutdown(ctx), nil)
	ssetest.WantError(t, "Start returned", <-ended, http.ErrServerClosed)
}

// A client that does not read does not hold up the server or other clients: what does not
// fit is refused to the handler, as with mcp-go's own sessions, and the client is closed.
func TestFloodOfNotifications(t *testing.T) {
	e := newEverything(t)
	e.tool("flood", func(ctx context.Context, _ mcp.CallToolRequest) (string, error) {
		params := map[string]any{"x": strings.Repeat("x", 16<<10)}
		for ctx.Err() == nil {
			if err := e.SendNotificationToClient(ctx, "notifications/flood", params); errors.Is(err, server.ErrNotificationChannelBlocked) {
				e.saw.Add("refused")
				<-ctx.Done() // the client is gone
			}
		}
		return "flooded", nil
	})
	h := mcpgo.NewSSEServer(e.MCPServer)
	url, client := listen(t, h, func() { shutdown(t, h) }), httpClient(t)
	deaf := open(t, client, url, "{}", nil)
	deaf.mustSend(t, call("5", "flood", "{}"))
	other := open(t, client, url, "{}", nil)
	other.WantAnswer(t, call("5", "echo", `{"text":"hi"}`), "5", "hi")
	e.saw.Await(1, "refused")
	deaf.Close()
	e.saw.Await(1, "unregistered")
}
