//lint:file-ignore SA1019 SEP-2577 deprecates sampling; servers use it as long as it exists.

package gosdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// filler is the params of a call of 4 MiB: two of it fill a session.
func filler(tool string) string {
	return `{"name":"` + tool + `","arguments":{"x":"` + strings.Repeat("x", 4<<20-4096) + `"}}`
}

func cancellation(number int64, reason string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":%q}}`, number, reason)
}

// What requests that fill the session wait for reaches them.
func TestFullSessionTakesResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := echoServer()
		tool(server, "ask", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			_, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 1, Messages: []*mcp.SamplingMessage{}})
			return &mcp.CallToolResult{}, err
		})
		l := dial(t, server, nil).initialized()
		defer l.close()
		for range 2 {
			if _, err := l.request("tools/call", filler("ask")); err != nil {
				t.Fatal(err)
			}
		}
		asked := []*jsonrpc.Message{parse(t, <-l.pushed), parse(t, <-l.pushed)}
		if _, err := l.request("tools/call", `{"name":"echo","arguments":{"x":"`+strings.Repeat("x", 20<<10)+`"}}`); !errors.Is(err, jsonrpc.ErrBusy) {
			t.Fatalf("a request to a full session: %v", err)
		}
		for _, m := range asked { // the second before go-sdk can have read the first
			if err := l.conn.Send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"role":"user","model":"m","content":{"type":"text","text":"%s"}}}`, m.ID, strings.Repeat("y", 3<<20))); err != nil {
				t.Fatalf("a response: %v", err)
			}
		}
		for range asked {
			if got := <-l.results; !strings.Contains(got, `"content"`) {
				t.Errorf("got %s", got)
			}
		}
	})
}

// A session that does nothing takes a message of any size, also after notifications.
func TestIdleSessionTakesALargeRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := dial(t, echoServer(), nil).initialized()
		defer l.close()
		synctest.Wait()
		if _, err := l.request("ping", `{"x":"`+strings.Repeat("x", 9<<20)+`"}`); err != nil {
			t.Fatal(err)
		}
		<-l.results
	})
}

// Responses pass the limit, but do not pile up where go-sdk does not read.
func TestUnreadResponsesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := budget.New(1<<30, nil)
		l := dial(t, echoServer(), held)
		defer l.close()
		// Nobody receives yet: go-sdk's reader waits to write the error of the first.
		for _, m := range []string{`"notifications/cancelled","params":{"requestId":{}}`, `"x","params":` + filler("x"), `"x","params":` + filler("x")} {
			if _, err := l.send(parse(t, `{"jsonrpc":"2.0","id":1,"method":`+m+`}`)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		var err error
		sent := 0
		for ; err == nil && sent < 100; sent++ {
			err = l.conn.Send([]byte(`{"jsonrpc":"2.0","id":1,"result":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`))
		}
		if !errors.Is(err, jsonrpc.ErrBusy) || sent < 5 || sent > 10 {
			t.Errorf("after %d responses of 1 MiB that go-sdk does not read: %v", sent, err)
		}
	})
}

// A full session takes cancellations, which go-sdk queues, up to a bound.
func TestFullSessionTakesCancellations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, release := echoServer(), make(chan struct{})
		begun := blocked(server, release)
		tool(server, "obey", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			begun <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		l := dial(t, server, nil).initialized()
		defer l.close()
		defer close(release)
		var last int64
		for _, name := range []string{"block", "obey"} {
			n, err := l.request("tools/call", filler(name))
			if err != nil {
				t.Fatal(err)
			}
			<-begun
			last = n
		}
		for range 100 { // they are handled: go-sdk's queue is short
			if err := l.conn.Send(cancellation(99, strings.Repeat("r", 100<<10))); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if err := l.conn.Send(cancellation(last, "")); err != nil {
			t.Fatal(err)
		}
		if got := <-l.results; !strings.Contains(got, "canceled") {
			t.Errorf("got %s", got)
		}
	})
}

// Cancellations wait in go-sdk's queue behind a notification whose handler does not return.
func TestUnhandledCancellationsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		server := mcp.NewServer(&mcp.Implementation{Name: "slow"}, &mcp.ServerOptions{
			ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationServerRequest) { <-release }})
		blocked(server, release)
		l := dial(t, server, nil).initialized()
		if err := l.conn.Send([]byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := l.request("tools/call", filler("block")); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		sent := 0
		for ; err == nil && sent < 100; sent++ {
			err = l.conn.Send(cancellation(99, strings.Repeat("r", 100<<10)))
			synctest.Wait()
		}
		if !errors.Is(err, jsonrpc.ErrBusy) || sent < 10 || sent > 20 {
			t.Errorf("after %d cancellations of 100 KiB: %v", sent, err)
		}
		close(release)
		synctest.Wait()
		if err := l.conn.Send(cancellation(99, "")); err != nil {
			t.Errorf("after all were handled: %v", err)
		}
		l.close()
	})
}

// go-sdk writes nothing for a result that has no JSON form. Such a request counts until it
// is cancelled, as the gateway does after its timeout.
func TestRequestWithoutAnswerIsReleased(t *testing.T) {
	for name, early := range map[string]bool{"cancelled after its handler": false, "cancelled before": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, release := echoServer(), make(chan struct{})
				begun := make(chan struct{}, 2)
				tool(server, "bad", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					begun <- struct{}{}
					<-release
					return &mcp.CallToolResult{StructuredContent: json.RawMessage("{bad")}, nil
				})
				held := budget.New(1<<30, nil)
				l := dial(t, server, held).initialized()
				defer l.close()
				var numbers []int64
				for range 2 {
					n, err := l.request("tools/call", filler("bad"))
					if err != nil {
						t.Fatal(err)
					}
					<-begun
					numbers = append(numbers, n)
				}
				end := func() { close(release); synctest.Wait() }
				if !early {
					end()
				}
				for _, n := range numbers {
					if err := l.conn.Send(cancellation(n, "")); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				if early {
					if held.TakeAny(1<<30-7<<20, "") {
						t.Error("a cancelled request does not count while its handler runs")
					}
					end()
					if _, err := l.request("tools/call", filler("echo")); !errors.Is(err, jsonrpc.ErrBusy) {
						t.Errorf("a request to a full session: %v", err) // it makes the session ask
					}
					synctest.Wait()
				}
				for range len(l.results) { // go-sdk may say "context canceled" of them
					<-l.results
				}
				if _, err := l.request("tools/call", filler("echo")); err != nil {
					t.Fatalf("after the cancellation: %v", err)
				}
				if got := <-l.results; !strings.Contains(got, "content") {
					t.Errorf("got %.200s", got)
				}
			})
		})
	}
}

// A cancelled request whose handler goes on counts, and its answer is the only one.
func TestCancelledRequestCountsUntilItsHandlerReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, release := echoServer(), make(chan struct{})
		begun := blocked(server, release)
		l := dial(t, server, nil).initialized()
		defer l.close()
		for range 2 {
			n, err := l.request("tools/call", filler("block"))
			if err != nil {
				t.Fatal(err)
			}
			<-begun
			if err := l.conn.Send(cancellation(n, "")); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		for range 10 {
			if _, err := l.request("tools/call", filler("block")); !errors.Is(err, jsonrpc.ErrBusy) {
				t.Fatalf("a third request: %v", err)
			}
			synctest.Wait()
		}
		close(release)
		synctest.Wait()
		if len(l.results) != 2 {
			t.Errorf("%d answers to 2 requests", len(l.results))
		}
		if _, err := l.request("tools/call", filler("echo")); err != nil {
			t.Errorf("after all were answered: %v", err)
		}
		for range 3 {
			if got := <-l.results; !strings.Contains(got, "content") {
				t.Errorf("got %s", got)
			}
		}
	})
}

// A response that the gateway has not taken holds its request, cancelled or not.
func TestCancelledRequestCountsUntilItsResponseIsTaken(t *testing.T) {
	for name, early := range map[string]bool{"cancelled before the response": true, "after": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, release := echoServer(), make(chan struct{})
				begun := blocked(server, release)
				held := budget.New(1<<30, nil)
				l := dial(t, server, held)
				l.results = make(chan string)
				l.initialized()
				defer l.close()
				n, err := l.request("tools/call", filler("block"))
				if err != nil {
					t.Fatal(err)
				}
				<-begun
				cancel := func() {
					if err := l.conn.Send(cancellation(n, "")); err != nil {
						t.Error(err)
					}
					synctest.Wait()
				}
				if early {
					cancel()
				}
				close(release)
				synctest.Wait()
				cancel()
				if _, err := l.request("tools/call", filler("x")); err != nil {
					t.Error(err)
				}
				if _, err := l.request("tools/call", filler("x")); !errors.Is(err, jsonrpc.ErrBusy) { // it makes the session ask
					t.Errorf("a third request: %v", err)
				}
				synctest.Wait()
				if held.TakeAny(1<<30-7<<20, "") {
					t.Error("a response that waits does not count")
				}
				for range 2 {
					<-l.results
				}
			})
		})
	}
}
