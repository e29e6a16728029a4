package statelessclient_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// listed returns how often the server was asked for its tools, over all connections.
func (f *fixture) listed() (n int) {
	for _, c := range f.server.connections() {
		n += len(c.received("tools/list"))
	}
	return n
}

// A list without an end, or one that fails, is not asked for again with every call.
func TestIncompleteListIsRemembered(t *testing.T) {
	for name, tc := range map[string]struct {
		list  func(c *conn, m *jsonrpc.Message)
		pages int
	}{
		"endless": {func(c *conn, m *jsonrpc.Message) { c.answer(m, `{"tools":[],"nextCursor":"more"}`) }, 64},
		"failing": {func(c *conn, m *jsonrpc.Message) { c.fail(m, `{"code":-32603,"message":"m"}`) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, quiet, func(t *testing.T, f *fixture) {
				f.server.serve = func(c *conn, m *jsonrpc.Message) {
					if m.Method == "tools/list" {
						tc.list(c, m)
						return
					}
					c.answer(m, `{}`)
				}
				for range 10 {
					want(t, "status", f.do(t, ask{method: "tools/call", params: toolCall}).status, 200)
				}
				want(t, "lists", f.listed(), tc.pages)
				pause(time.Minute)
				f.do(t, ask{method: "tools/call", params: toolCall})
				want(t, "lists after a while", f.listed(), 2*tc.pages)
			})
		})
	}
}

// A server that does not list its tools delays the first calls a little, and no others.
func TestSilentServerDelaysFewCalls(t *testing.T) {
	bubble(t, quiet, func(t *testing.T, f *fixture) {
		f.server.silent = []string{"tools/list"}
		began := time.Now()
		var first []*response
		for i := range 5 { // on connections of their own
			first = append(first, f.begin(t, ask{method: "tools/call", params: toolCall, capabilities: askAll, id: fmt.Sprint(i)}))
		}
		synctest.Wait()
		want(t, "connections", len(f.server.connections()), 5)
		want(t, "lists", f.listed(), 1)
		for _, r := range first {
			<-r.done
			want(t, "status", r.status, 200)
		}
		want(t, "delay of the first", time.Since(began), 5*time.Second)
		f.do(t, ask{method: "tools/call", params: toolCall, capabilities: askAll})
		want(t, "delay of the next", time.Since(began), 5*time.Second)
		want(t, "lists", f.listed(), 1)
	})
}
