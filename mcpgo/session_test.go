package mcpgo_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/mcpgo"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/upstream"
)

const helloParams = `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`

// session opens a session and initializes it.
func session(t testing.TB, up upstream.Upstream) *multiplex.Session {
	t.Helper()
	conn, err := up.Dial(t.Context())
	ssetest.Must(t, err)
	s := multiplex.New(conn, multiplex.Options{})
	_, err = s.Call(t.Context(), "initialize", json.RawMessage(helloParams))
	ssetest.Must(t, err)
	return s
}

func callTool(t testing.TB, s *multiplex.Session, tool string) (*jsonrpc.Message, error) {
	return s.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"`+tool+`","arguments":{"text":"hi"}}`))
}

func TestNoServer(t *testing.T) {
	if _, err := mcpgo.Server(nil).Dial(t.Context()); err == nil || !strings.Contains(err.Error(), "there is no server") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := mcpgo.Server(echo()).Dial(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: got %v", err)
	}
}

// odd is a server whose tools misbehave.
func odd() *server.MCPServer {
	srv := server.NewMCPServer("odd", "1")
	add := func(name string, f func(ctx context.Context) (*mcp.CallToolResult, error)) {
		srv.AddTool(mcp.NewTool(name), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) { return f(ctx) })
	}
	add("panic", func(context.Context) (*mcp.CallToolResult, error) { panic("boom") })
	add("goexit", func(context.Context) (*mcp.CallToolResult, error) { runtime.Goexit(); return nil, nil })
	add("nothing", func(context.Context) (*mcp.CallToolResult, error) { return nil, nil })
	add("no JSON form", func(context.Context) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: make(chan int)}, nil
	})
	add("not UTF-8", func(context.Context) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: json.RawMessage("{\"a\":\n\"\xff\"}")}, nil
	})
	return srv
}

// A handler that misbehaves is answered, whatever it does, and the session goes on.
func TestOddHandlers(t *testing.T) {
	var log bytes.Buffer
	up := mcpgo.Server(odd()).(interface {
		Observed(*slog.Logger, *metrics.Metrics) jsonrpc.Dialer
	}).Observed(slog.New(slog.NewTextHandler(&log, nil)), nil)
	s := session(t, up)
	defer s.Close(errors.New("over"))
	for tool, want := range map[string]string{
		"panic":        `{"code":-32603,"message":"internal panic: boom"}`,
		"goexit":       `{"code":-32603,"message":"handler ended its goroutine instead of returning a response"}`,
		"no JSON form": `{"code":-32603,"message":"response has no JSON form: json: error calling MarshalJSON for type *mcp.CallToolResult: json: unsupported type: chan int"}`,
		"not UTF-8":    `"structuredContent":{"a":"` + "\ufffd" + `"}`,
		"nothing":      `"error"`,
	} {
		got, err := callTool(t, s, tool)
		if err != nil || !bytes.Contains(got.Raw(), []byte(want)) {
			t.Errorf("%s: got %s, %v, want %s", tool, got.Raw(), err, want)
		}
	}
	if got := log.String(); !strings.Contains(got, "handler panicked") || !strings.Contains(got, "session_test.go") {
		t.Errorf("logged %s", got)
	}
}

// A handler of notifications that misbehaves keeps no other from its own.
func TestOddNotificationHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := server.NewMCPServer("x", "1")
		var got []int
		srv.AddNotificationHandler("notifications/n", func(_ context.Context, n mcp.JSONRPCNotification) {
			i := int(n.Params.AdditionalFields["i"].(float64))
			got = append(got, i)
			if i%3 == 1 {
				panic("boom")
			}
		})
		s := session(t, mcpgo.Server(srv))
		defer s.Close(errors.New("over"))
		for i := range 10 {
			ssetest.Must(t, s.Notify("notifications/n", fmt.Appendf(nil, `{"i":%d}`, i)))
		}
		synctest.Wait()
		ssetest.Want(t, "notifications in order", fmt.Sprint(got), "[0 1 2 3 4 5 6 7 8 9]")
	})
}

// A handler that never returns, or too late, holds up neither the end of its session nor
// others; what it returns is dropped.
func TestHandlerReturnsTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		hooks := &server.Hooks{}
		hooks.AddOnUnregisterSession(func(context.Context, server.ClientSession) { ended = true })
		srv := server.NewMCPServer("x", "1", server.WithHooks(hooks))
		release := make(chan struct{})
		srv.AddTool(mcp.NewTool("stuck"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			<-release
			return mcp.NewToolResultText("late"), nil
		})
		srv.AddNotificationHandler("notifications/stuck", func(context.Context, mcp.JSONRPCNotification) { <-release })
		s := session(t, mcpgo.Server(srv))
		answer := make(chan error)
		go func() {
			_, err := callTool(t, s, "stuck")
			answer <- err
		}()
		ssetest.Must(t, s.Notify("notifications/stuck", nil))
		synctest.Wait()
		began := time.Now()
		s.Close(errors.New("enough"))
		ssetest.WantText(t, "error", <-answer, "enough")
		if took := time.Since(began); took > 0 || !ended {
			t.Errorf("the end took %s, the session has ended: %t", took, ended)
		}
		close(release)
	})
}

// Hooks that panic or do not return fail the start, or delay the end within bounds.
func TestOddHooks(t *testing.T) {
	for _, test := range []struct {
		name                 string
		register, unregister func(release <-chan struct{})
		want                 string
	}{
		{"panic", func(<-chan struct{}) { panic("boom") }, func(<-chan struct{}) { panic("boom") }, "register session: hook panicked: boom"},
		{"goexit", func(<-chan struct{}) { runtime.Goexit() }, func(<-chan struct{}) { runtime.Goexit() }, "register session: hook ended its goroutine"},
		{"stuck", func(r <-chan struct{}) { <-r }, func(r <-chan struct{}) { <-r }, "context deadline exceeded"},
		{"stuck at the end", func(<-chan struct{}) {}, func(r <-chan struct{}) { <-r }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				hooks := &server.Hooks{}
				hooks.AddOnRegisterSession(func(context.Context, server.ClientSession) { test.register(release) })
				hooks.AddOnUnregisterSession(func(context.Context, server.ClientSession) { test.unregister(release) })
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				began := time.Now()
				conn, err := mcpgo.Server(server.NewMCPServer("x", "1", server.WithHooks(hooks))).Dial(ctx)
				if test.want == "" {
					ssetest.Must(t, err)
					err = conn.Close()
				}
				ssetest.WantText(t, "error", fmt.Sprint(err), cmp.Or(test.want, "<nil>"))
				if took := time.Since(began); took > 3*time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// A session holds a bounded amount of notifications, and takes nothing after its end. Its
// requests are bounded by upstream.Handle.
func TestSessionIsBounded(t *testing.T) {
	for size, most := range map[int]int{1 << 20: 8, 64 << 10: 128} { // one is being handled
		synctest.Test(t, func(t *testing.T) {
			srv := server.NewMCPServer("x", "1")
			srv.AddNotificationHandler("notifications/stuck", func(ctx context.Context, _ mcp.JSONRPCNotification) { <-ctx.Done() })
			dialed, err := mcpgo.Server(srv).Dial(t.Context())
			ssetest.Must(t, err)
			conn := dialed.(jsonrpc.Local)
			conn.Push(func([]byte, error) {})
			stuck := jsonrpc.NewNotification("notifications/stuck", json.RawMessage(`{"x":"`+strings.Repeat("x", size)+`"}`))
			sent := 0
			for ; err == nil && sent < 2000; sent++ {
				err = conn.Send(stuck)
				synctest.Wait()
			}
			if !errors.Is(err, jsonrpc.ErrBusy) || sent < most-1 || sent > most+1 {
				t.Errorf("notification %d of %d bytes: %v, want ErrBusy after %d", sent, size, err, most)
			}
			ssetest.Want(t, "Close", conn.Close(), nil)
			request, _ := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
			for _, err := range []error{conn.SendRequest(request, 200), conn.Send(stuck), conn.Send(jsonrpc.NewResult("1", json.RawMessage("1")))} {
				ssetest.WantError(t, "after Close", err, jsonrpc.ErrClosed)
			}
		})
	}
}

// An answer comes once, after the notifications that its handler has sent before.
func TestAnswersComeAfterNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := server.NewMCPServer("x", "1")
		srv.AddTool(mcp.NewTool("work"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for i := range 3 {
				_ = srv.SendNotificationToClient(ctx, "notifications/n", map[string]any{"i": i})
			}
			return mcp.NewToolResultText("done"), nil
		})
		dialed, err := mcpgo.Server(srv).Dial(t.Context())
		ssetest.Must(t, err)
		conn, got := dialed.(jsonrpc.Local), make(chan string, 100)
		conn.Push(func(msg []byte, err error) {
			if m, parseErr := jsonrpc.Parse(msg); err == nil && parseErr == nil {
				got <- m.Method
			}
		})
		for n := range int64(20) {
			method, params := "tools/call", `{"name":"work"}`
			if n == 0 {
				method, params = "initialize", helloParams
			}
			m, err := jsonrpc.Parse(jsonrpc.NewRequest("1", method, json.RawMessage(params)))
			ssetest.Must(t, err)
			ssetest.Must(t, conn.SendRequest(m, n+1))
			want := []string{"notifications/n", "notifications/n", "notifications/n", ""}
			if n == 0 {
				want = want[3:]
			}
			for i, method := range want {
				if m := <-got; m != method {
					t.Fatalf("call %d: message %d is %q, want %q", n, i, m, method)
				}
			}
			if synctest.Wait(); len(got) > 0 {
				t.Errorf("call %d: %d messages more", n, len(got))
			}
		}
		_ = conn.Close()
	})
}
