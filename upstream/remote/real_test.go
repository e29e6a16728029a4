package remote_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/upstream/internal/upstreamtest"
	"github.com/mcp-sse/mcp-sse/upstream/remote"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

type textInput struct {
	Text string `json:"text"`
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

// realServer is a server under test.
type realServer struct {
	http.Handler
	waiting  chan struct{} // gets one when its tool "wait" runs, and is closed when that is cancelled
	progress bool          // it sends all progress before the answer
	asks     bool          // its tool "ask" works
}

// goSDK makes a server of go-sdk with a tool for each way a message can go.
func goSDK(waiting chan struct{}) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "real", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in textInput) (*mcp.CallToolResult, any, error) {
		return text(in.Text), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "progress"}, func(ctx context.Context, r *mcp.CallToolRequest, in textInput) (*mcp.CallToolResult, any, error) {
		for i := range 3 {
			if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i)}); err != nil {
				return nil, nil, err
			}
		}
		return text(in.Text), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, in textInput) (*mcp.CallToolResult, any, error) {
		got, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: in.Text})
		if err != nil {
			return nil, nil, err
		}
		return text(got.Action), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ textInput) (*mcp.CallToolResult, any, error) {
		waiting <- struct{}{}
		select {
		case <-ctx.Done():
			close(waiting)
		case <-time.After(upstreamtest.Patience): // the test has failed
		}
		return text("stopped"), nil, nil
	})
	return s
}

// realServers are the servers that Go programs have, by name.
func realServers() map[string]func() realServer {
	ofGoSDK := func(kind realServer, opts *mcp.StreamableHTTPOptions) func() realServer {
		return func() realServer {
			kind := kind
			kind.waiting = make(chan struct{}, 1)
			s := goSDK(kind.waiting)
			kind.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, opts)
			return kind
		}
	}
	return map[string]func() realServer{
		"go-sdk streamable":          ofGoSDK(realServer{progress: true, asks: true}, nil),
		"go-sdk streamable, resumes": ofGoSDK(realServer{progress: true, asks: true}, &mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}),
		// These have no place for messages beside the answer.
		"go-sdk streamable, JSON": ofGoSDK(realServer{}, &mcp.StreamableHTTPOptions{JSONResponse: true}),
		// MCP 2026-07-28 has servers ask otherwise.
		"go-sdk stateless": ofGoSDK(realServer{progress: true}, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}),
		"go-sdk SSE": func() realServer {
			waiting := make(chan struct{}, 1)
			s := goSDK(waiting)
			return realServer{mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil), waiting, true, true}
		},
	}
}

// rig is a session with a real server. A goroutine sorts what comes.
type rig struct {
	t       *testing.T
	conn    jsonrpc.Conn
	init    string      // the response to initialize
	answers chan string // and the reason for the end
	told    chan string // notifications and requests of the server
}

func assemble(t *testing.T, up jsonrpc.Dialer) *rig {
	t.Helper()
	r := &rig{t: t, conn: upstreamtest.Dial(t, up), answers: make(chan string, 100), told: make(chan string, 100)}
	go func() { // ends with the session
		for {
			msg, err := r.conn.Recv()
			if err != nil {
				r.answers <- err.Error()
				return
			}
			if m, err := jsonrpc.Parse(msg); err == nil && m.Kind != jsonrpc.Response {
				r.told <- string(msg)
				continue
			}
			r.answers <- string(msg)
		}
	}()
	r.forward(`{"jsonrpc":"2.0","id":100,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`)
	r.init = r.want(r.answers, `"protocolVersion"`)
	r.forward(upstreamtest.Initialized)
	return r
}

func (r *rig) forward(msg string) {
	r.t.Helper()
	upstreamtest.Send(r.t, r.conn, msg)
}

// want takes the next message of a channel, which has to hold all parts.
func (r *rig) want(from <-chan string, parts ...string) string {
	r.t.Helper()
	select {
	case got := <-from:
		for _, part := range parts {
			if !strings.Contains(got, part) {
				r.t.Fatalf("got %s, want %q in it", got, part)
			}
		}
		return got
	case <-time.After(upstreamtest.Patience):
		r.t.Fatalf("nothing came, want %q", parts)
		return ""
	}
}

func (r *rig) call(id, tool, text, meta string) {
	r.t.Helper()
	r.forward(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":{"text":%q}%s}}`, id, tool, text, meta))
}

// TestRealServers has each message that there is go each way, over sockets and
// without.
func TestRealServers(t *testing.T) {
	for name, begin := range realServers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run("socket", func(t *testing.T) {
				t.Parallel() // each waits for a cancelled call
				real := begin()
				s := httptest.NewServer(real)
				t.Cleanup(s.Close)
				converseWith(t, real, remote.URL{Address: s.URL + "/mcp"}.Observed(slog.New(slog.DiscardHandler), nil))
			})
			t.Run("in process", func(t *testing.T) {
				t.Parallel()
				real := begin()
				converseWith(t, real, remote.HTTPHandler(real))
			})
		})
	}
}

func converseWith(t *testing.T, real realServer, up jsonrpc.Dialer) {
	r := assemble(t, up)
	if !strings.Contains(r.init, `"tools":{`) {
		t.Errorf("initialize got %s", r.init)
	}
	r.call("1", "echo", "hello", "")
	r.want(r.answers, `"id":1`, `"hello"`)
	r.forward(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	r.want(r.answers, `"id":2`, `"echo"`)
	r.forward(`{"jsonrpc":"2.0","id":3,"method":"no/such"}`)
	r.want(r.answers, `"id":3`, `-32601`)
	r.call("4", "no such tool", "", "")
	r.want(r.answers, `"id":4`, `"error"`)

	r.call("5", "progress", "done", `,"_meta":{"progressToken":"p"}`)
	r.want(r.answers, `"id":5`, `"done"`)
	for i := 0; real.progress && i < 3; i++ {
		r.want(r.told, `"notifications/progress"`, `"progressToken":"p"`, fmt.Sprintf(`"progress":%d`, i))
	}
	if real.asks {
		r.call("6", "ask", "really?", "")
		question := r.want(r.told)
		for strings.Contains(question, `"notifications/progress"`) {
			question = r.want(r.told)
		}
		asked, err := jsonrpc.Parse([]byte(question))
		if err != nil || asked.Method != "elicitation/create" || !strings.Contains(question, "really?") {
			t.Fatalf("the server asks %s", question)
		}
		r.forward(string(jsonrpc.NewResult(asked.ID, json.RawMessage(`{"action":"accept","content":{}}`))))
		r.want(r.answers, `"id":6`, `"accept"`)
	}

	r.call("7", "wait", "", "")
	<-real.waiting
	r.call("8", "echo", "between", "")
	r.want(r.answers, `"id":8`, `"between"`)
	r.forward(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	select {
	case <-real.waiting:
	case <-time.After(upstreamtest.Patience):
		t.Error("the call was not cancelled at the server")
	}
}
