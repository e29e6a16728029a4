package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/gosdk"
	"github.com/mcp-sse/mcp-sse/internal/caller"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// describing adds a tool that says what it knows of the HTTP request.
func describing(s *mcp.Server) *mcp.Server {
	tool(s, "describe", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		text := fmt.Sprintf("path %v", ctx.Value(pathKey{}))
		if p, ok := caller.FromContext(ctx); ok {
			text += fmt.Sprintf("; peer %s, loopback %t", p.Principal, p.Addr.IsLoopback())
		}
		if r.Extra != nil {
			text += fmt.Sprintf("; header %s", r.Extra.Header.Get("X-Tenant"))
			if r.Extra.TokenInfo != nil {
				text += fmt.Sprintf("; user %s", r.Extra.TokenInfo.UserID)
			}
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
	})
	return s
}

// changing sends a header of another value with each request.
type changing struct{ next http.RoundTripper }

func (c changing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Tenant", "of the "+r.Method)
	r.Header.Set("Authorization", "Bearer "+r.Method)
	return c.next.RoundTrip(r)
}

// A handler gets the values and the peer of the GET, and the headers and the token of its
// POST.
func TestHandlersSeeTheHTTPRequest(t *testing.T) {
	for _, test := range []struct {
		name string
		opts gateway.Options
		mine bool // with gosdk.Server
		want string
	}{
		{"nothing asked for", gateway.Options{}, false, "path /a/sse; peer , loopback true; header ; user POST"},
		{"principal and header", gateway.Options{
			PassRequest:  &gateway.PassRequest{Headers: []string{"X-Tenant"}},
			Authenticate: func(*http.Request) (string, error) { return "ada", nil },
		}, false, "path /a/sse; peer ada, loopback true; header of the POST; user POST"},
		{"over Streamable HTTP", gateway.Options{
			PassRequest: &gateway.PassRequest{Headers: []string{"X-Tenant"}}, Transports: []gateway.Transport{gateway.TransportStreamable},
		}, false, "path /a/sse; peer , loopback true; header of the POST; user POST"},
		{"Server", gateway.Options{PassRequest: &gateway.PassRequest{}, SinglePath: true}, true, "path /a/sse; peer , loopback true; header ; user POST"},
		{"Server, not asked for", gateway.Options{SinglePath: true}, true, "path <nil>"},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := describing(echoServer())
			var gw *gateway.Gateway
			var err error
			if test.mine {
				gw, err = gateway.New(gosdk.Server(server), test.opts)
			} else {
				gw, err = gosdk.New(func(*http.Request) *mcp.Server { return server }, test.opts)
			}
			ssetest.Must(t, err)
			verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
				return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
			}
			mux := http.NewServeMux()
			mux.Handle("/a/sse", auth.RequireBearerToken(verify, nil)(remembering(gw)))
			ssetest.Want(t, "description", describe(t, mux, gw, len(test.opts.Transports) > 0), test.want)
		})
	}
}

// describe calls the tool over HTTP+SSE or Streamable HTTP, and shuts all down.
func describe(t *testing.T, h http.Handler, gw *gateway.Gateway, streamable bool) string {
	t.Helper()
	srv := httptest.NewServer(h)
	defer srv.Close()
	defer shutdown(t, gw)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := mcp.NewClient(&mcp.Implementation{Name: "c"}, nil)
	endpoint, through := srv.URL+"/a/sse", &http.Client{Transport: changing{transport}}
	var way mcp.Transport = &mcp.SSEClientTransport{Endpoint: endpoint, HTTPClient: through}
	if streamable {
		way = &mcp.StreamableClientTransport{Endpoint: endpoint, HTTPClient: through}
	}
	s, err := client.Connect(context.Background(), way, nil)
	ssetest.Must(t, err)
	defer func() { _ = s.Close() }()
	result, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "describe"})
	ssetest.Must(t, err)
	return result.Content[0].(*mcp.TextContent).Text
}

// shutdown ends a gateway, whose clients may be there.
func shutdown(t testing.TB, gw *gateway.Gateway) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if err := gw.Shutdown(ctx); err != nil && !strings.Contains(err.Error(), "connections cut") {
		t.Error(err)
	}
}

// The function chooses the server of each GET, after the checks; a session keeps it.
func TestServerForEachRequest(t *testing.T) {
	servers := map[string]*mcp.Server{"a": echoServer(), "b": echoServer()}
	asked := make(chan string, 16)
	before := func(r *http.Request) (context.Context, error) {
		if r.Method == http.MethodGet && r.Header.Get("X-Closed") != "" {
			return nil, errors.New("closed today")
		}
		return context.WithValue(r.Context(), pathKey{}, "mine"), nil
	}
	gw, err := gosdk.New(func(r *http.Request) *mcp.Server {
		asked <- r.Method + " " + r.URL.Query().Get("tenant")
		return servers[r.URL.Query().Get("tenant")]
	}, gateway.Options{PassRequest: &gateway.PassRequest{Context: before}, Authenticate: func(r *http.Request) (string, error) {
		if r.Header.Get("X-Bad") != "" {
			return "", errors.New("who is it?")
		}
		return "", nil
	}})
	ssetest.Must(t, err)
	srv := httptest.NewServer(gw)
	defer srv.Close()
	defer shutdown(t, gw)
	if err := gw.Ready(t.Context()); err != nil { // needs no request
		t.Errorf("not ready: %v", err)
	}
	for _, refused := range []struct{ tenant, header, status string }{{"c", "X-Any", "404"}, {"a", "X-Bad", "401"}, {"a", "X-Closed", "404"}} {
		_, err := ssetest.Dial(srv.Client(), srv.URL+"/any/path?tenant="+refused.tenant, http.Header{refused.header: {"1"}})
		ssetest.WantText(t, refused.tenant+" with "+refused.header, err, refused.status)
	}
	if got := <-asked; got != "GET c" || len(asked) > 0 {
		t.Errorf("asked %s and %d more", got, len(asked))
	}
	for name, server := range servers {
		w := &world{t: t, url: srv.URL + "/x?tenant=" + name, http: srv.Client()}
		s := w.open()
		ssetest.Want(t, "POST", s.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`), http.StatusAccepted)
		if got := <-asked; got != "GET "+name || len(asked) > 0 || sessions(server) != 1 {
			t.Errorf("asked %s and %d more; %d sessions", got, len(asked), sessions(server))
		}
	}
}

func TestWrongOptions(t *testing.T) {
	get := func(*http.Request) *mcp.Server { return nil }
	for name, opts := range map[string]gateway.Options{
		"MaxMessageBytes": {MaxMessageBytes: -1},
		"Warm":            {Warm: 1},
		"Sessions":        {Sessions: gateway.SessionsShared},
		"Prefix":          {Prefix: "/mcp"}, // the path is the one of the mount
	} {
		if _, err := gosdk.New(get, opts); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	defer func() {
		ssetest.WantText(t, "panic", fmt.Sprint(recover()), "the function that returns the server is nil")
	}()
	gosdk.NewSSEHandler(nil, nil)
}
