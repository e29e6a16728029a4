//lint:file-ignore SA1019 SEP-2577 deprecates sampling; servers use it as long as it exists.

package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// filler is the params of a call of 4 MiB: two of it fill a session.
func filler(tool string) string {
	return `{"name":"` + tool + `","arguments":{"x":"` + strings.Repeat("x", 4<<20-4096) + `"}}`
}

// Unanswered requests fill a session at 8 MiB. The responses that they wait for reach them; then the session
// takes others.
func TestFullSessionTakesResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := echoServer()
		tool(server, "ask", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			_, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 1, Messages: []*mcp.SamplingMessage{}})
			return &mcp.CallToolResult{}, err
		})
		l := dial(t, server).initialized()
		defer l.close()
		for range 2 {
			ssetest.Must(t, l.request("tools/call", filler("ask")))
		}
		asked := []*jsonrpc.Message{parse(t, <-l.pushed), parse(t, <-l.pushed)}
		more := `{"x":"` + strings.Repeat("x", 20<<10) + `"}`
		if err := l.request("tools/call", `{"name":"echo","arguments":`+more+`}`); !errors.Is(err, jsonrpc.ErrBusy) {
			t.Fatalf("a request to a full session: %v", err)
		}
		for _, m := range asked { // the second before go-sdk can have read the first
			if err := l.conn.Send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"role":"user","model":"m","content":{"type":"text","text":"%s"}}}`, m.ID, strings.Repeat("y", 3<<20))); err != nil {
				t.Fatalf("a response: %v", err)
			}
		}
		for range asked {
			ssetest.WantText(t, "text", <-l.results, `"content"`)
		}
		synctest.Wait()
		ssetest.WantText(t, "after all were answered", l.call("echo", more), `"content"`)
	})
}

// Responses pass the limit, but do not pile up where go-sdk does not read.
func TestUnreadResponsesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := dial(t, echoServer())
		defer l.close()
		// Nobody receives yet: go-sdk's reader waits to write the error of the first.
		for _, m := range []string{`"notifications/cancelled","params":{"requestId":{}}`, `"x","params":` + filler("x"), `"x","params":` + filler("x")} {
			ssetest.Must(t, l.send(parse(t, `{"jsonrpc":"2.0","id":1,"method":`+m+`}`)))
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
