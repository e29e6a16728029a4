// Package docstest keeps the documentation true. It has only tests: links
// resolve, shell blocks run, Go blocks are the code of examples that run, and the
// tables of errors and log lines name what the code has.
package docstest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/mux"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/mcpgo"
	"github.com/mcp-sse/mcp-sse/sse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// greet is a client: it connects, calls greet and returns the answer.
func greet(url string, header http.Header) (string, error) {
	ctx := context.Background()
	client := mcp.NewClient(&mcp.Implementation{Name: "docs", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.SSEClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: withHeader{header}},
	}, nil)
	if err != nil {
		return "", err
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "greet", Arguments: greeting{Name: "Ada"}})
	if err != nil {
		return "", err
	}
	return result.Content[0].(*mcp.TextContent).Text, nil
}

// call prints what greet returns.
func call(url string) { callWith(url, nil) }

func callWith(url string, header http.Header) {
	answer, err := greet(url, header)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer)
}

// withHeader adds headers to each request.
type withHeader struct{ header http.Header }

func (t withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	maps.Copy(r.Header, t.header)
	return http.DefaultTransport.RoundTrip(r)
}

// try serves an application, calls greet over the gateway in it, prints the
// application's own page, and shuts the gateway down.
func try(h http.Handler, gw *gateway.Gateway, path string) {
	ts := httptest.NewServer(h)
	defer ts.Close()
	call(ts.URL + path)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Print(w.Body)
	shutDown(gw)
}

// shutDown shuts a gateway down.
func shutDown(gw *gateway.Gateway) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := gw.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// A server of mcp-go, mounted beside other routes.
func Example_mcpGo() {
	s, mux := greeterOfMCPGo(), application()

	gw := mcpgo.NewSSEServer(s)
	mux.Handle("/sse", gw)

	try(mux, gw.Gateway(), "/sse")
	// Output:
	// Hello, Ada
	// home
}

// With gorilla/mux, the gateway stands before a route that takes all paths.
func Example_gorilla() {
	r := mux.NewRouter()
	r.HandleFunc("/about", home)

	gw := newGateway(gateway.Options{})
	r.Handle("/sse", gw)
	r.PathPrefix("/sse/").Handler(gw)
	r.Handle("/mcp", gw)

	r.PathPrefix("/").HandlerFunc(home)
	try(r, gw, "/sse")
	// Output:
	// Hello, Ada
	// home
}

// With gorilla/mux under a prefix, which the gateway is told.
func Example_gorillaPrefix() {
	r := mux.NewRouter()
	r.HandleFunc("/", home)

	gw := newGateway(gateway.Options{Prefix: "/ai"})
	r.PathPrefix("/ai/").Handler(gw)

	try(r, gw, "/ai/sse")
	// Output:
	// Hello, Ada
	// home
}

// statusWriter is what logging middleware wraps around a ResponseWriter. It
// hides http.Flusher; Unwrap lets the gateway find it all the same.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Middleware that wraps the ResponseWriter needs an Unwrap method.
func Example_middleware() {
	gw := newGateway(gateway.Options{})
	mux := application()
	mux.Handle("/sse", gw)  // the stream
	mux.Handle("/sse/", gw) // the messages
	mux.Handle("/mcp", gw)  // Streamable HTTP
	logged := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(&statusWriter{ResponseWriter: w}, r)
	})

	try(logged, gw, "/sse")
	// Output:
	// Hello, Ada
	// home
}

// Admin routes, a registry and a logger of one's own, and the order of the end.
func Example_lifecycle() {
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	registry := prometheus.NewRegistry()
	mux, addr, adminAddr := application(), "127.0.0.1:0", "127.0.0.1:0"

	gw := newGateway(gateway.Options{Logger: logger, Registry: registry})
	mux.Handle("/ai/", http.StripPrefix("/ai", gw))
	public := &http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	admin := &http.Server{Addr: adminAddr, Handler: gw.Admin(), ReadHeaderTimeout: 10 * time.Second}
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
