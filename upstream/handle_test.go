package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/internal/buffer"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/upstreamtest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHandleAnswers(t *testing.T) {
	const ok = `{"jsonrpc":"2.0","id":1,"result":{"n":9007199254740993}}`
	var nilPointer *struct{}
	tests := []struct {
		name   string
		handle upstream.Handle
		want   string // an answer, or the beginning of the message of an error
	}{
		{"raw message as it is", func(context.Context, json.RawMessage) any { return json.RawMessage(ok) }, ok},
		{"bytes as they are", func(context.Context, json.RawMessage) any { return []byte(ok) }, ok},
		{"raw with line breaks is compacted", func(context.Context, json.RawMessage) any {
			return json.RawMessage("{\"jsonrpc\":\"2.0\",\r\n \"id\":1,\n\"result\":{\"n\":9007199254740993}}\n")
		}, ok},
		{"value is encoded", func(context.Context, json.RawMessage) any {
			return map[string]any{"jsonrpc": "2.0", "id": 1, "result": map[string]any{}}
		}, `{"id":1,"jsonrpc":"2.0","result":{}}`},
		{"nil", func(context.Context, json.RawMessage) any { return nil }, "handler returned no response"},
		{"nil pointer", func(context.Context, json.RawMessage) any { return nilPointer }, "handler returned no response"},
		{"empty bytes", func(context.Context, json.RawMessage) any { return []byte{} }, "handler returned no response"},
		{"no JSON form", func(context.Context, json.RawMessage) any { return make(chan int) }, "response has no JSON form"},
		{"line breaks in no JSON", func(context.Context, json.RawMessage) any { return []byte("a\nb") }, "response is not JSON"},
		{"panic", func(context.Context, json.RawMessage) any { panic("boom") }, "handler panicked: boom"},
		{"goexit", func(context.Context, json.RawMessage) any { runtime.Goexit(); return nil }, "handler ended its goroutine"},
		{"panic while encoding", func(context.Context, json.RawMessage) any { return panics{} }, "handler panicked: boom"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			conn := upstreamtest.Dial(t, test.handle)
			upstreamtest.Send(t, conn, upstreamtest.Ping)
			want := test.want
			if want[0] != '{' {
				want = `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"` + want
			}
			if got := upstreamtest.Recv(t, conn); !strings.HasPrefix(got, want) {
				t.Errorf("got %s\nwant %s", got, want)
			}
		})
	}
}

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("boom") }

func TestHandleKeepsTheOrderOfNotifications(t *testing.T) {
	var got []string
	conn := upstreamtest.Dial(t, upstream.Handle(func(_ context.Context, msg json.RawMessage) any {
		got = append(got, string(msg)) // no lock: called inside Send
		return json.RawMessage(`{"dropped":true}`)
	}))
	for i := range 100 {
		upstreamtest.Send(t, conn, fmt.Sprintf(`{"jsonrpc":"2.0","method":"n/%d"}`, i))
	}
	upstreamtest.Send(t, conn, `{"jsonrpc":"2.0","id":5,"result":{}}`)
	if len(got) != 101 || !strings.Contains(got[42], "n/42") || !strings.Contains(got[100], "result") {
		t.Errorf("got %d messages: %v", len(got), got)
	}
}

func TestHandleSendFails(t *testing.T) {
	conn := upstreamtest.Dial(t, upstream.Handle(func(context.Context, json.RawMessage) any { panic("boom") }))
	for msg, want := range map[string]string{`{"jsonrpc":"2.0","method":"n"}`: "handler panicked: boom", `{"jsonrpc":`: "invalid JSON"} {
		ssetest.WantText(t, "Send", conn.Send([]byte(msg)), want)
	}
}

func TestHandleCancelsOnlyTheNamedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		conn := upstreamtest.Dial(t, upstream.Handle(func(ctx context.Context, msg json.RawMessage) any {
			m, _ := jsonrpc.Parse(msg)
			if m.Kind == jsonrpc.Notification {
				seen = append(seen, m.Method)
				return nil
			}
			<-ctx.Done()
			return jsonrpc.NewResult(m.ID, json.RawMessage(`{}`))
		}))
		for _, id := range []string{`1`, `2`, `"2"`, `3`} {
			upstreamtest.Send(t, conn, `{"jsonrpc":"2.0","id":`+id+`,"method":"wait"}`)
		}
		for _, id := range []string{`"2"`, `3`, `1`, `2`} { // middle, head, tail, only one
			upstreamtest.Send(t, conn, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`)
			ssetest.Want(t, "answer", upstreamtest.Recv(t, conn), `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`)
		}
		ssetest.Want(t, "messages that the function saw", len(seen), 4)
	})
}

func TestHandleCloseEndsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 3)
		conn := upstreamtest.Dial(t, upstream.Handle(func(ctx context.Context, msg json.RawMessage) any {
			<-ctx.Done()
			ended <- ctx.Err()
			return msg
		}))
		for i := range 3 {
			upstreamtest.Send(t, conn, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i))
		}
		failed := make(chan error, 1)
		go func() { failed <- upstreamtest.RecvError(conn) }()
		synctest.Wait()
		ssetest.Want(t, "Close", errors.Join(conn.Close(), conn.Close()), nil)
		for range 3 {
			ssetest.WantError(t, "handler's context", <-ended, context.Canceled)
		}
		ssetest.WantError(t, "Recv", <-failed, jsonrpc.ErrClosed)
		for _, msg := range []string{upstreamtest.Ping, `{"jsonrpc":"2.0","method":"n"}`} {
			ssetest.WantError(t, "Send", conn.Send([]byte(msg)), jsonrpc.ErrClosed)
		}
	})
}

// largePing fills the bound of a session.
var largePing = `{"jsonrpc":"2.0","id":1,"method":"ping","params":["` + strings.Repeat("x", buffer.SendLimit) + `"]}`

func TestHandlePushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := upstreamtest.Dial(t, upstream.Handle(func(_ context.Context, msg json.RawMessage) any { return msg }))
		events := make(chan string, 10)
		conn.(jsonrpc.Local).Push(func(msg []byte, err error) { events <- fmt.Sprintf("%s %v", msg, err) })
		for range 3 {
			upstreamtest.Send(t, conn, upstreamtest.Ping)
			ssetest.Want(t, "event", <-events, upstreamtest.Ping+" <nil>")
			synctest.Wait() // the id is free once the function has returned
		}
		ssetest.Want(t, "Close", errors.Join(conn.Close(), conn.Close()), nil)
		ssetest.Want(t, "end", <-events, " "+jsonrpc.ErrClosed.Error())
		ssetest.Want(t, "events after the end", len(events), 0)
	})
}

// An answer that was handed over but not taken counts toward the session's bound.
func TestHandlePushCountsWhatIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := upstreamtest.Dial(t, upstream.Handle(func(_ context.Context, _ json.RawMessage) any { return []byte(`{}`) }))
		take := make(chan struct{})
		conn.(jsonrpc.Local).Push(func([]byte, error) { <-take })
		upstreamtest.Send(t, conn, largePing)
		synctest.Wait()
		ssetest.WantError(t, "Send", conn.Send([]byte(upstreamtest.Ping)), jsonrpc.ErrBusy)
		take <- struct{}{}
		synctest.Wait()
		upstreamtest.Send(t, conn, upstreamtest.Ping)
		close(take)
	})
}

func TestDialWithEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, up := range []upstream.Upstream{
		upstream.Handle(func(context.Context, json.RawMessage) any { return nil }),
		upstream.Serve(nil),
		upstream.Command{Path: "/bin/true"},
	} {
		if conn, err := up.Dial(ctx); !errors.Is(err, context.Canceled) || conn != nil {
			t.Errorf("%T: got %v, %v, want context.Canceled", up, conn, err)
		}
	}
}
