package remote_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	"github.com/mcp-sse/mcp-sse/internal/upstream/upstreamtest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

type textInput struct {
	Text string `json:"text"`
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

// goSDK makes a server of go-sdk with a tool for each way a message can go. waiting gets one
// when its tool "wait" runs, and is closed when that is cancelled. A server that polls
// ends the stream of a call, and has the client come back (SEP-1699).
func goSDK(waiting chan struct{}, polls bool) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "real", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in textInput) (*mcp.CallToolResult, any, error) {
		return text(in.Text), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "progress"}, func(ctx context.Context, r *mcp.CallToolRequest, in textInput) (*mcp.CallToolResult, any, error) {
		if polls {
			r.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 20 * time.Millisecond})
		}
		for i := range 3 {
			// Without a place for it, it fails until the session's own stream is there.
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i)})
		}
		return text(in.Text), nil, nil
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

// TestRealServers talks to servers of go-sdk over HTTP/2 and without a socket. Servers of other
// SDKs, and servers that ask their clients, are in e2e.
func TestRealServers(t *testing.T) {
	for name, tt := range map[string]struct {
		opts     *mcp.StreamableHTTPOptions // nil: HTTP+SSE
		progress bool                       // it has a place for messages beside the answer
	}{
		"SSE":                 {nil, true},
		"streamable":          {&mcp.StreamableHTTPOptions{}, true},
		"streamable, resumes": {&mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}, true},
		"streamable, JSON":    {&mcp.StreamableHTTPOptions{JSONResponse: true}, false},
		"stateless":           {&mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for a cancelled call
			begin := func() (http.Handler, chan struct{}) {
				waiting := make(chan struct{}, 1)
				s := goSDK(waiting, tt.opts != nil && tt.opts.EventStore != nil)
				if tt.opts == nil {
					return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil), waiting
				}
				return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, tt.opts), waiting
			}
			real, waiting := begin()
			s := httptest.NewUnstartedServer(real)
			s.EnableHTTP2 = true
			s.StartTLS()
			t.Cleanup(s.Close)
			converse(t, remote.URL{Address: s.URL + "/mcp", Client: s.Client()}, waiting, tt.progress)
			real, waiting = begin()
			converse(t, remote.HTTPHandler(real), waiting, tt.progress)
		})
	}
}

func converse(t *testing.T, up jsonrpc.Dialer, waiting chan struct{}, progress bool) {
	k := upstreamtest.DialTalk(t, up)
	defer k.Conn.Close()
	// next returns the next message, past notifications. told has those.
	var told []string
	next := func() *jsonrpc.Message {
		for told = nil; ; {
			msg, _ := k.Recv()
			m, err := jsonrpc.Parse([]byte(msg))
			if err != nil {
				t.Fatalf("got %s: %v", msg, err)
			}
			if m.Kind != jsonrpc.Notification {
				return m
			}
			told = append(told, msg)
		}
	}
	ask := func(request string, parts ...string) {
		t.Helper()
		k.Send(request)
		answer := next()
		for _, part := range parts {
			if !strings.Contains(string(answer.Raw()), part) {
				t.Fatalf("got %s, want %q in it", answer.Raw(), part)
			}
		}
	}
	call := func(id int, tool, text string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"text":%q},"_meta":{"progressToken":"p"}}}`, id, tool, text)
	}

	ask(upstreamtest.Initialize, `"protocolVersion"`, `"tools":{`)
	k.Send(upstreamtest.Initialized)
	ask(call(1, "echo", "hello"), `"id":1`, `"hello"`)
	ask(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, `"id":2`, `"echo"`)
	ask(`{"jsonrpc":"2.0","id":3,"method":"no/such"}`, `"id":3`, `-32601`)
	ask(call(4, "no such tool", ""), `"id":4`, `"error"`)
	ask(call(5, "progress", "done"), `"id":5`, `"done"`)
	if progress && (len(told) != 3 || !strings.Contains(told[2], `"notifications/progress"`) || !strings.Contains(told[2], `"progress":2`)) {
		t.Errorf("told %q", told)
	}

	k.Send(call(7, "wait", ""))
	<-waiting
	ask(call(8, "echo", "between"), `"id":8`, `"between"`)
	k.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	select {
	case <-waiting:
	case <-time.After(upstreamtest.Patience):
		t.Error("the call was not cancelled at the server")
	}
}
