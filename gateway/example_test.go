package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// greeter is an MCP server in one function.
func greeter(_ context.Context, msg json.RawMessage) any {
	m, err := jsonrpc.Parse(msg)
	switch {
	case err != nil || m.Kind != jsonrpc.Request:
		return nil
	case m.Method == "initialize":
		return json.RawMessage(jsonrpc.NewResult(m.ID, json.RawMessage(
			`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"greeter","version":"1.0"}}`)))
	case m.Method == "tools/call":
		return json.RawMessage(jsonrpc.NewResult(m.ID, json.RawMessage(`{"content":[{"type":"text","text":"hello"}]}`)))
	}
	return json.RawMessage(jsonrpc.NewError(m.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no such method")))
}

// printEvents opens a stream and prints its first events by name, and the
// endpoint without the connection's id.
func printEvents(url string, n int) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	var event, data string
	for lines := bufio.NewScanner(resp.Body); n > 0 && lines.Scan(); {
		switch field, value, _ := strings.Cut(lines.Text(), ": "); field {
		case "event":
			event = value
		case "data":
			data = value
		case "": // the end of an event
			if event == "endpoint" {
				event += " " + strings.Replace(data, resp.Header.Get("X-Connection-ID"), "{id}", 1)
			}
			fmt.Println(event)
			n--
		}
	}
}

// stop ends a gateway, and with it its example servers, within a bound.
func stop(gw *gateway.Gateway, s *httptest.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := gw.Shutdown(ctx); err != nil {
		fmt.Println(err)
	}
	http.DefaultClient.CloseIdleConnections()
	s.Close()
}

// A function becomes an MCP server over HTTP+SSE. The client sends nothing and still
// gets the result of the handshake.
func ExampleNew() {
	gw, err := gateway.New(upstream.Handle(greeter), gateway.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := httptest.NewServer(gw)
	defer stop(gw, s)
	printEvents(s.URL+"/mcp", 3)
	// Output:
	// endpoint /mcp/{id}/message
	// connection
	// mcp-response
}

// A gateway in a net/http server, under its own path.
func ExampleGateway_ServeHTTP_stripPrefix() {
	gw, err := gateway.New(upstream.Handle(greeter), gateway.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	routes := http.NewServeMux()
	routes.Handle("/ai/", http.StripPrefix("/ai", gw))
	s := httptest.NewServer(routes)
	defer stop(gw, s)
	printEvents(s.URL+"/ai/mcp", 1)
	// Output:
	// endpoint /ai/mcp/{id}/message
}

// A gateway in a gorilla/mux router, beside the routes for operators.
func ExampleGateway_Admin() {
	gw, err := gateway.New(upstream.Handle(greeter), gateway.Options{Prefix: "/ai"})
	if err != nil {
		fmt.Println(err)
		return
	}
	routes := mux.NewRouter()
	routes.PathPrefix("/ai/").Handler(gw)
	routes.PathPrefix("/admin/").Handler(http.StripPrefix("/admin", gw.Admin()))
	s := httptest.NewServer(routes)
	defer stop(gw, s)
	printEvents(s.URL+"/ai/mcp", 1)
	resp, err := http.Get(s.URL + "/admin/readyz")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println("ready:", resp.Status)
	// Output:
	// endpoint /ai/mcp/{id}/message
	// ready: 200 OK
}

// Shut the gateway down first, which answers requests in flight and closes the
// streams, then the HTTP server.
func ExampleGateway_Shutdown() {
	gw, err := gateway.New(upstream.Handle(greeter), gateway.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := httptest.NewServer(gw)
	resp, err := http.Get(s.URL + "/sse")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	fmt.Println("gateway:", gw.Shutdown(ctx))
	fmt.Println("server:", s.Config.Shutdown(ctx))
	http.DefaultClient.CloseIdleConnections()
	fmt.Println("connections:", len(gw.Snapshot()))
	// Output:
	// gateway: <nil>
	// server: <nil>
	// connections: 0
}

func ExampleOptions_select() {
	opts := gateway.Options{Select: &compose.Selection{
		Include: []string{"*issue*", "get_me"},
		Exclude: []string{"delete_*"},
	}}
	gw, err := gateway.New(upstream.Handle(greeter), opts)
	if err != nil {
		fmt.Println(err)
		return
	}
	s := httptest.NewServer(gw)
	defer stop(gw, s)
	for _, tool := range []string{"create_issue", "delete_issue"} {
		call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `"}}`
		resp, err := http.Post(s.URL+"/mcp", "application/json", strings.NewReader(call))
		if err != nil {
			fmt.Println(err)
			return
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		fmt.Println(strings.TrimSpace(string(answer)), err)
	}
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello"}]}} <nil>
	// {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unknown tool \"delete_issue\""}} <nil>
}
