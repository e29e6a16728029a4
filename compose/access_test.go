package compose_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// forbidden returns the members with one that no client may use.
func forbidden(of []compose.Member, name string) []compose.Member {
	for i := range of {
		if of[i].Name == name {
			of[i].Allow = func(context.Context) bool { return false }
		}
	}
	return of
}

// A client that may not use a member any more loses its connection at once, with the call and the question that are
// open there. Those of another member go on. A name that the client was shown leads nowhere.
func TestAccessThatIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, b := full("a"), full("b")
		v := newView(t, members("a", a, "b", b))
		c := open(t, v)
		c.request(2, "tools/list", "{}")
		c.request(3, "tools/call", `{"name":"a__t"}`)
		c.request(4, "tools/call", `{"name":"b__t"}`)
		a.conn().say(`{"jsonrpc":"2.0","id":7,"method":"roots/list"}`)
		c.take()
		replace(t, v, forbidden(members("a", a, "b", b), "a"))
		c.want("the question and the call", `{"method":"notifications/cancelled","params":{"requestId":"view-5"}}`,
			`{"id":3,"error":{"code":-32603,"message":"the session with a was lost","data":{"reason":"session_lost","retryable":false}}}`)
		ssetest.Want(t, "closed", a.conn().isClosed(), true)
		c.send(`{"jsonrpc":"2.0","id":"view-5","result":{"roots":[]}}`)
		b.conn().say(`{"jsonrpc":"2.0","id":4,"result":{}}`)
		c.want("the other call", `{"id":4,"result":{}}`)
		c.request(5, "tools/call", `{"name":"a__t"}`)
		c.want("the name", `{"id":5,"error":{"code":-32602,"message":"unknown tool \"a__t\""}}`)
		time.Sleep(time.Second)
		c.want("told", `{"method":"notifications/tools/list_changed"}`)
		c.request(6, "tools/list", "{}")
		if got := strings.Join(c.take(), "\n"); strings.Contains(got, `"a__`) || !strings.Contains(got, `"b__`) {
			t.Errorf("the list: got %s, want that of b alone", got)
		}
		ssetest.Want(t, "dials", a.dialled(), 1)
	})
}

// Nothing of a view of one reaches a server that its client may not use, or names it.
func TestViewOfOneThatIsForbidden(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := full("f")
		c := open(t, newView(t, forbidden(members("secret-server", f), "secret-server")))
		for i, request := range []string{
			`tools/call {"name":"f"}`, `prompts/get {"name":"f"}`, `resources/read {"uri":"x:f"}`, `resources/subscribe {"uri":"x:f"}`,
			`tasks/get {"taskId":"t"}`, `vendor/x {}`, `completion/complete {"ref":{"type":"ref/prompt","name":"f"}}`, `tools/list {}`,
		} {
			method, params, _ := strings.Cut(request, " ")
			c.request(int64(i+2), method, params)
		}
		c.send(`{"jsonrpc":"2.0","method":"vendor/note"}`)
		got := c.take()
		ssetest.Want(t, "answers", len(got), 9)
		for _, line := range got[1:8] {
			if !strings.Contains(line, `"error"`) || strings.Contains(line, "secret-server") {
				t.Errorf("got %s, want an error that does not name the server", line)
			}
		}
		ssetest.Want(t, "the list", got[8], `{"id":9,"result":{"tools":[]}}`)
		ssetest.Want(t, "dials", f.dialled(), 0)
	})
}

// When a client's token has been checked again, or is another one, its links are those that it may use then. Nothing
// asks after the session.
func TestAccessThatFollowsTheToken(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, b, mayUse := newFake("t"), newFake("t"), false
		of := members("a", a, "b", b)
		of[0].Allow = func(context.Context) bool { return mayUse }
		var check func()
		followed := 0
		ctx := asker.NewContext(t.Context(), &asker.Asker{OnCheck: func(f func()) (stop func()) {
			check, followed = f, followed+1
			return func() { followed-- }
		}})
		c := dialWith(ctx, t, newView(t, of))
		check() // before initialize nothing is open
		c.request(1, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
		c.take()
		c.request(2, "tools/list", "{}")
		c.want("the first list", tools(2, "b__t"))
		for i, may := range []bool{false, true, true, false, true} {
			told := may != mayUse
			mayUse = may
			check()
			time.Sleep(time.Second)
			ssetest.Want(t, "told", len(c.take()) == 1, told)
			names := []string{"b__t"}
			if may {
				names = []string{"a__t", "b__t"}
			}
			number := int64(i + 3)
			c.request(number, "tools/list", "{}")
			c.want("the list", tools(number, names...))
		}
		ssetest.Want(t, "dials", fmt.Sprint(a.dialled(), b.dialled()), "2 1")
		ssetest.Must(t, c.conn.Close())
		check()
		ssetest.Want(t, "sessions that are followed", followed, 0)
	})
}
