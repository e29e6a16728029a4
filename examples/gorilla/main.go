// Command gorilla serves an MCP server behind the middleware of a gorilla/mux router: one
// logs, one finds out who the user is. A tool greets that user by name.
//
//	go run ./examples/gorilla
//	curl http://127.0.0.1:8080/ai/mcp -H 'Content-Type: application/json' -H 'Authorization: Bearer s3cret' \
//	  -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/mux"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/auth"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/gosdk"
)

// users are those who may use the server, by token. Yours come from a database.
var users = map[string]string{"s3cret": "Ada", "s3same": "Grace"}

type userKey struct{}

// authenticate puts the user into the context of a request.
func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if user, ok := users[token]; ok {
			r = r.WithContext(context.WithValue(r.Context(), userKey{}, user))
		}
		next.ServeHTTP(w, r)
	})
}

// principal tells the gateway which user sent a request. A connection belongs to the user
// who opened it.
func principal(r *http.Request) (string, error) {
	user, ok := r.Context().Value(userKey{}).(string)
	if !ok {
		return "", &auth.Error{Message: "log in first: send Authorization: Bearer <token>"}
	}
	return user, nil
}

// statusWriter keeps the status of a response. Unwrap lets the gateway flush its stream.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// logged logs each request when it is over.
func logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, sw := time.Now(), &statusWriter{w, http.StatusOK}
		next.ServeHTTP(sw, r)
		log.Printf("%s %s: %d after %s", r.Method, r.URL.Path, sw.status, time.Since(began).Round(time.Millisecond))
	})
}

// whoami is a tool that greets the user who calls it.
func whoami(ctx context.Context, _ *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
	user, _ := ctx.Value(userKey{}).(string) // passed on by Options.PassRequest
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello, " + user}}}, nil, nil
}

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`address` to serve at")
	flag.Parse()

	srv := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	mcp.AddTool(srv, &mcp.Tool{Name: "whoami"}, whoami)
	gw, err := gateway.New(gosdk.Server(srv), gateway.Options{
		Prefix: "/ai", Authenticate: principal, PassRequest: &gateway.PassRequest{},
	})
	if err != nil {
		log.Fatal(err)
	}

	routes := mux.NewRouter()
	routes.Use(logged, authenticate)
	routes.PathPrefix("/ai/").Handler(gw) // MCP is at /ai/mcp
	routes.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })

	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("serving http://%s/ai/mcp", listener.Addr())
	// The gateway bounds bodies and streams itself, so there is no ReadTimeout and no WriteTimeout here.
	server := &http.Server{Handler: routes, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 15 * time.Minute}
	log.Fatal(server.Serve(listener))
}
