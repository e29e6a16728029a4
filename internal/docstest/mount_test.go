// Package docstest keeps the documentation true. It has only tests: links
// resolve, flags in shell blocks exist, Go blocks are the code of examples that
// run, and the tables of states and errors say what the code does.
package docstest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/mux"
	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/sse"
	"github.com/mcp-sse/mcp-sse/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call is a client: it connects, calls greet and prints the answer.
func call(url string) {
	ctx := context.Background()
	client := mcp.NewClient(&mcp.Implementation{Name: "docs", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.SSEClientTransport{Endpoint: url}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "greet", Arguments: greeting{Name: "Ada"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Content[0].(*mcp.TextContent).Text)
}

// try serves a handler, calls greet over it, and shuts the gateway down.
func try(h http.Handler, gw *gateway.Gateway, path string) {
	ts := httptest.NewServer(h)
	defer ts.Close()
	call(ts.URL + path)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := gw.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// A server of mcp-go, mounted at the root.
func Example_mcpGo() {
	s, mux := server.NewMCPServer("greeter", "1"), http.NewServeMux()
	s.AddTool(mcpgo.NewTool("greet", mcpgo.WithString("name")), func(_ context.Context, r mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
		return mcpgo.NewToolResultText("Hello, " + r.GetString("name", "nobody")), nil
	})

	gw, err := gateway.New(upstream.Handle(func(ctx context.Context, msg json.RawMessage) any {
		return s.HandleMessage(ctx, msg)
	}), gateway.Options{})
	if err != nil {
		log.Fatal(err)
	}
	mux.Handle("/", gw)

	try(mux, gw, "/sse")
	// Output: Hello, Ada
}

// With gorilla/mux the gateway has a prefix of its own.
func Example_gorilla() {
	gw := newGateway(gateway.Options{Prefix: "/mcp"})
	r := mux.NewRouter()
	r.PathPrefix("/mcp/").Handler(gw)

	try(r, gw, "/mcp/sse")
	// Output: Hello, Ada
}

// statusWriter is what logging middleware wraps around a ResponseWriter. It
// hides http.Flusher; Unwrap lets the gateway find it all the same.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Middleware that wraps the ResponseWriter needs an Unwrap method.
func Example_middleware() {
	gw := newGateway(gateway.Options{})
	logged := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		gw.ServeHTTP(&statusWriter{ResponseWriter: w}, r)
	})

	try(logged, gw, "/sse")
	// Output: Hello, Ada
}

// Admin routes, a registry and a logger of one's own, and the order of the end.
func Example_lifecycle() {
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	registry := prometheus.NewRegistry()
	gw := newGateway(gateway.Options{Logger: logger, Registry: registry})

	routes := http.NewServeMux()
	routes.Handle("/", gw)
	srv := &http.Server{Addr: "127.0.0.1:0", Handler: routes, ReadHeaderTimeout: 10 * time.Second}
	admin := &http.Server{Addr: "127.0.0.1:0", Handler: gw.Admin(), ReadHeaderTimeout: 10 * time.Second}
	go srv.ListenAndServe()
	go admin.ListenAndServe()

	// At the end, in this order:
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	err := gw.Shutdown(ctx)                            // not ready, no new streams; finishes, closes streams, ends children
	err = errors.Join(err, srv.Shutdown(ctx))          // only short requests are left
	fmt.Println(errors.Join(err, admin.Shutdown(ctx))) // last, so that /readyz and /metrics tell how far it is
	// Output: <nil>
}

// Authentication by a hook of one's own.
func Example_authenticate() {
	tokens := map[string]string{"s3cret": "ada"} // yours: a database, a JWT, a session cookie

	gw := newGateway(gateway.Options{
		Authenticate: func(r *http.Request) (string, error) {
			token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			user, ok := tokens[token]
			if !ok {
				return "", &sse.AuthError{Message: "log in first"} // any other error is told as "not authenticated"
			}
			return user, nil // the connection belongs to this principal
		},
	})
	defer gw.Shutdown(context.Background())

	w := httptest.NewRecorder()
	gw.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/sse", nil))
	fmt.Println(w.Code, w.Header().Get("WWW-Authenticate"))
	fmt.Print(w.Body)
	// Output:
	// 401 Bearer realm="mcp-sse"
	// {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"log in first"}}
}

// Snapshot tells about each open connection.
func Example_snapshot() {
	gw := newGateway(gateway.Options{})
	defer gw.Shutdown(context.Background())

	waiting := 0
	for _, c := range gw.Snapshot() {
		if c.State == connstate.Initializing {
			waiting += c.Queued
		}
	}
	fmt.Println(waiting, "messages wait for a session")
	// Output: 0 messages wait for a session
}
