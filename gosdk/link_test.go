package gosdk_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gosdk"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// link is a session with a server, without a gateway.
type link struct {
	t       testing.TB
	conn    jsonrpc.Local
	results chan string // number and result or error object
	pushed  chan string // notifications and requests, and the final error
	last    int64
}

func dial(t testing.TB, server *mcp.Server) *link {
	t.Helper()
	conn, err := gosdk.Server(server).Dial(t.Context())
	ssetest.Must(t, err)
	return &link{t: t, conn: conn.(jsonrpc.Local), results: make(chan string, 16), pushed: make(chan string, 16)}
}

// push begins to receive.
func (l *link) push() {
	l.conn.Push(func(msg []byte, err error) {
		if err != nil {
			l.pushed <- err.Error()
			_ = l.conn.Close()
			return
		}
		m, err := jsonrpc.Parse(msg)
		switch {
		case err != nil || string(m.Raw()) != string(msg):
			l.t.Errorf("the session pushed %q: %v", msg, err)
		case m.Kind == jsonrpc.Response:
			l.results <- fmt.Sprintf("%s %s%s", m.ID, m.Result(), m.Error())
		default:
			l.pushed <- string(msg)
		}
	})
}

// request sends a request.
func (l *link) request(method, params string) error {
	return l.send(parse(l.t, `{"jsonrpc":"2.0","id":"of the client","method":"`+method+`","params":`+params+`}`))
}

func (l *link) send(m *jsonrpc.Message) error {
	l.last++
	return l.conn.SendRequest(m, l.last)
}

func parse(t testing.TB, msg string) *jsonrpc.Message {
	t.Helper()
	m, err := jsonrpc.Parse([]byte(msg))
	ssetest.Must(t, err)
	return m
}

// initialized receives and runs the handshake.
func (l *link) initialized() *link {
	l.t.Helper()
	l.push()
	ssetest.Must(l.t, l.request("initialize", `{"protocolVersion":"2025-06-18","capabilities":{"sampling":{}},"clientInfo":{"name":"link","version":"1"}}`))
	<-l.results
	ssetest.Must(l.t, l.conn.Send([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)))
	return l
}

// call calls a tool and returns what comes first.
func (l *link) call(tool, arguments string) string {
	l.t.Helper()
	ssetest.Must(l.t, l.request("tools/call", `{"name":"`+tool+`","arguments":`+arguments+`}`))
	return <-l.results
}

func (l *link) close() {
	ssetest.Want(l.t, "Close", l.conn.Close(), nil)
}

// tool adds a tool without a schema to speak of.
func tool(server *mcp.Server, name string, h mcp.ToolHandler) {
	server.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, h)
}

// echoServer has one tool, which returns its text.
func echoServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "echo", InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
	})
	return s
}
