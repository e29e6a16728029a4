// Package docstest keeps the documentation true. It has only tests: links
// resolve, shell blocks run, Go blocks are pieces of this file, and the tables of
// errors and log lines name what the code has.
package docstest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/mux"
	mcpgosdk "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/auth"
	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/gosdk"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/mcpgo"
	"github.com/mcp-sse/mcp-sse/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type greeting struct {
	Name string `json:"name"`
}

// greeter is a server of the official Go SDK, as users have one.
func greeter() *mcp.Server {
	srv := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	mcp.AddTool(srv, &mcp.Tool{Name: "greet"}, func(_ context.Context, _ *mcp.CallToolRequest, in greeting) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello, " + in.Name}}}, nil, nil
	})
	return srv
}

// greeterOfMCPGo is the same of mcp-go.
func greeterOfMCPGo() *server.MCPServer {
	s := server.NewMCPServer("greeter", "1")
	s.AddTool(mcpgosdk.NewTool("greet", mcpgosdk.WithString("name")), func(_ context.Context, r mcpgosdk.CallToolRequest) (*mcpgosdk.CallToolResult, error) {
		return mcpgosdk.NewToolResultText("Hello, " + r.GetString("name", "nobody")), nil
	})
	return s
}

func newGateway(options gateway.Options) *gateway.Gateway {
	gw, err := gateway.New(gosdk.Server(greeter()), options)
	if err != nil {
		log.Fatal(err)
	}
	return gw
}

// home is the page that an application has at / already.
func home(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "home") }

// application is an http.ServeMux as users have one, with a route that takes all
// paths that no other does.
func application() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/", home)
	return mux
}

// bearer sends a token with each request.
type bearer string

func (token bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(token))
	return http.DefaultTransport.RoundTrip(r)
}

// greet is a client: it connects, calls greet and returns the answer.
func greet(url, token string) string {
	ctx := context.Background()
	defer http.DefaultClient.CloseIdleConnections()
	c := mcp.NewClient(&mcp.Implementation{Name: "my-client", Version: "1"}, nil)
	session, err := c.Connect(ctx, &mcp.SSEClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: bearer(token)},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "greet", Arguments: greeting{Name: "Ada"}})
	if err != nil {
		log.Fatal(err)
	}
	return result.Content[0].(*mcp.TextContent).Text
}

// greets fails the test unless h serves a greeter at a path.
func greets(t *testing.T, h http.Handler, path, token, want string) {
	t.Helper()
	ts := httptest.NewServer(h)
	defer ts.Close()
	ssetest.Want(t, path, greet(ts.URL+path, token), want)
}

// loggingWriter is what logging middleware wraps around a ResponseWriter. It
// hides http.Flusher; Unwrap lets the gateway find it all the same.
type loggingWriter struct{ http.ResponseWriter }

func (w *loggingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// The ways to mount a gateway in an application leave its other routes alone.
func TestMounts(t *testing.T) {
	for path, build := range map[string]func() http.Handler{
		"/sse?go-sdk": func() http.Handler {
			srv, mux := greeter(), application()

			gw := gosdk.NewSSEHandler(func(*http.Request) *mcp.Server { return srv }, nil)
			mux.Handle("/sse", gw)

			return mux
		},
		"/sse?mcp-go": func() http.Handler {
			s, mux := greeterOfMCPGo(), application()

			gw := mcpgo.NewSSEServer(s)
			mux.Handle("/sse", gw)

			return mux
		},
		"/mcp": func() http.Handler {
			mux := application()
			mux.Handle("/mcp", newGateway(gateway.Options{SinglePath: true}))
			return mux
		},
		"/mcp?gorilla": func() http.Handler {
			r := mux.NewRouter()

			gw := newGateway(gateway.Options{})
			r.Handle("/mcp", gw)
			r.PathPrefix("/mcp/").Handler(gw)

			r.PathPrefix("/").HandlerFunc(home)
			return r
		},
		"/ai/mcp": func() http.Handler {
			r := mux.NewRouter()
			r.HandleFunc("/", home)

			gw := newGateway(gateway.Options{Prefix: "/ai"})
			r.PathPrefix("/ai/").Handler(gw)

			return r
		},
		"/mcp?middleware": func() http.Handler {
			gw, mux := newGateway(gateway.Options{}), application()
			mux.Handle("/mcp", gw)
			mux.Handle("/mcp/", gw) // the messages of HTTP+SSE
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mux.ServeHTTP(&loggingWriter{ResponseWriter: w}, r)
			})
		},
	} {
		t.Run(path, func(t *testing.T) {
			h := build()
			greets(t, h, path, "", "Hello, Ada")
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil)); w.Body.String() != "home\n" {
				t.Errorf("the page beside it is %q", w.Body)
			}
		})
	}
}

// The line that a program changes in which it had the SDK's own handler.
func TestMoving(t *testing.T) {
	srv, s := greeter(), greeterOfMCPGo()
	for name, register := range map[string]func(){
		"go-sdk": func() {
			http.Handle("/sse", gosdk.NewSSEHandler(func(*http.Request) *mcp.Server { return srv }, nil))
		},
		"mcp-go": func() {
			http.Handle("/", mcpgo.NewSSEServer(s))
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func(before *http.ServeMux) { http.DefaultServeMux = before }(http.DefaultServeMux)
			http.DefaultServeMux = http.NewServeMux()
			register()
			greets(t, http.DefaultServeMux, "/sse", "", "Hello, Ada")
		})
	}
}

func TestSeveralServers(t *testing.T) {
	mux := application()
	registry := prometheus.NewRegistry() // one for all
	docs := newGateway(gateway.Options{Name: "docs", Prefix: "/docs", Registry: registry})
	search := newGateway(gateway.Options{Name: "search", Prefix: "/search", Registry: registry, MaxConnections: 50})
	servers, err := gateway.NewServers(docs, search)
	if err != nil {
		log.Fatal(err)
	}
	mux.Handle("/docs/", servers)
	mux.Handle("/search/", servers)

	greets(t, mux, "/docs/sse", "", "Hello, Ada")
	greets(t, mux, "/search/sse", "", "Hello, Ada")
}

// A gateway whose options are replaced, all of them, goes on to ask for tokens.
func TestOtherOptions(t *testing.T) {
	authenticate, err := auth.BearerTokens(map[string]string{"s3cret": "ada"})
	ssetest.Must(t, err)

	options := gateway.Options{Authenticate: authenticate, MaxConnections: 100}
	gw := newGateway(options)

	greets(t, gw, "/sse", "s3cret", "Hello, Ada")

	options.MaxConnections = 200
	if err := gw.Reconfigure(nil, options); err != nil { // nil: the same server
		log.Print(err) // nothing has changed
	}

	greets(t, gw, "/sse", "s3cret", "Hello, Ada")
	w := httptest.NewRecorder()
	gw.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/sse", nil))
	ssetest.Want(t, "without a token", w.Code, http.StatusUnauthorized)
}

// Authentication by a hook of one's own, a client of mcp-go, and a snapshot of its
// connection.
func TestAuthenticate(t *testing.T) {
	tokens := map[string]string{"s3cret": "ada"} // yours: a database, a JWT, a session cookie

	gw := newGateway(gateway.Options{
		Authenticate: func(r *http.Request) (string, error) {
			token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			user, ok := tokens[token]
			if !ok {
				return "", &auth.Error{Message: "log in first"} // any other error is told as "not authenticated"
			}
			return user, nil // the connection belongs to this principal
		},
	})

	w := httptest.NewRecorder()
	gw.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/sse", nil))
	if w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), `"log in first"`) {
		t.Errorf("without a token: got %d %s", w.Code, w.Body)
	}

	ts := httptest.NewServer(gw)
	defer ts.Close()
	ssetest.Want(t, "answer", greetByMCPGo(t.Context(), ts.URL+"/sse", "s3cret"), "Hello, Ada")

	waiting := 0
	for _, c := range gw.Snapshot() {
		if c.State == connstate.Initializing {
			waiting += c.Queued
		}
	}
	ssetest.Want(t, "messages that wait for a session", waiting, 0)
}

// A tool that knows who calls it.
func TestPrincipalOfACaller(t *testing.T) {
	authenticate := func(r *http.Request) (string, error) {
		return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), nil
	}

	srv := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	mcp.AddTool(srv, &mcp.Tool{Name: "greet"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
		who, _ := upstream.CallerFromContext(ctx)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello, " + who.Principal}}}, nil, nil
	})

	gw, err := gateway.New(gosdk.Server(srv), gateway.Options{Authenticate: authenticate, PassRequest: &gateway.PassRequest{}})
	if err != nil {
		log.Fatal(err)
	}
	greets(t, gw, "/sse", "ada", "Hello, ada")
	greets(t, gw, "/sse", "grace", "Hello, grace")
}

// Admin routes, a registry and a logger of one's own, and the order of the end.
func Example_lifecycle() {
	logger, registry := slog.New(slog.DiscardHandler), prometheus.NewRegistry()
	mux, addr, adminAddr := application(), "127.0.0.1:0", "127.0.0.1:0"

	gw := newGateway(gateway.Options{Logger: logger, Registry: registry})
	mux.Handle("/ai/", http.StripPrefix("/ai", gw))
	public := &http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second}
	admin := &http.Server{Addr: adminAddr, Handler: gw.Admin(), ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second}
	go public.ListenAndServe()
	go admin.ListenAndServe()

	// At the end, in this order:
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	err := gw.Shutdown(ctx)                            // not ready, no new streams; finishes, closes streams, ends children
	err = errors.Join(err, public.Shutdown(ctx))       // only short requests are left
	fmt.Println(errors.Join(err, admin.Shutdown(ctx))) // last, so that /readyz and /metrics tell how far it is
	// Output: <nil>
}
