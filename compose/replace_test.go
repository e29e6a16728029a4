package compose_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// replace gives a view other members.
func replace(t *testing.T, v *compose.View, of []compose.Member) {
	t.Helper()
	ssetest.Must(t, v.Replace(of, compose.Options{Name: "team"}))
}

// A reload changes members during a call and a question. Both end well, the connection of the member that stays goes
// on, that of the one that has left ends when it has answered, and the client is told of the list.
func TestReplaceMembers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		stays, leaves, comes := newFake("t"), newFake("t"), newFake("t")
		v := newView(t, members("stays", stays, "leaves", leaves))
		c := open(t, v)
		c.request(2, "tools/list", "{}")
		c.request(3, "tools/call", `{"name":"stays__t"}`)
		c.request(4, "tools/call", `{"name":"leaves__t"}`)
		c.take()
		stays.conn().say(`{"jsonrpc":"2.0","id":7,"method":"roots/list"}`)
		leaves.conn().say(`{"jsonrpc":"2.0","id":7,"method":"roots/list"}`)
		c.want("questions", `{"id":"view-5","method":"roots/list"}`, `{"id":"view-6","method":"roots/list"}`)
		stays.conn().take()
		leaves.conn().take()
		replace(t, v, members("stays", stays, "comes", comes))
		for _, name := range []string{"leaves__t", "leaves__none"} {
			c.request(5, "tools/call", `{"name":"`+name+`"}`)
			c.want("a call to the one that has left", fmt.Sprintf(`{"id":5,"error":{"code":-32602,"message":"unknown tool \"%s\""}}`, name))
		}
		c.send(`{"jsonrpc":"2.0","id":"view-5","result":{"roots":[]}}`)
		c.send(`{"jsonrpc":"2.0","id":"view-6","result":{"roots":[]}}`)
		for _, f := range []*fake{stays, leaves} {
			f.wantGot(t, "reply", `{"id":7,"result":{"roots":[]}}`)
			ssetest.Want(t, "closed", f.conn().isClosed(), false)
		}
		leaves.conn().say(`{"jsonrpc":"2.0","id":4,"result":{}}`)
		stays.conn().say(`{"jsonrpc":"2.0","id":3,"result":{}}`)
		c.want("answers", `{"id":4,"result":{}}`, `{"id":3,"result":{}}`)
		ssetest.Want(t, "closed", fmt.Sprint(stays.conn().isClosed(), leaves.conn().isClosed()), "false true")
		ssetest.Want(t, "dials", fmt.Sprint(stays.dialled(), leaves.dialled(), comes.dialled()), "1 1 1")
		time.Sleep(time.Second)
		c.want("told", `{"method":"notifications/tools/list_changed"}`)
		c.request(6, "tools/list", "{}")
		c.want("list", tools(6, "stays__t", "comes__t"))

		// Another upstream under the same name is another member.
		other := newFake("u")
		replace(t, v, members("stays", other, "comes", comes))
		ssetest.Want(t, "closed", fmt.Sprint(stays.conn().isClosed(), other.conn().isClosed(), comes.conn().isClosed()), "true false false")
		c.request(7, "tools/list", "{}")
		c.want("list", tools(7, "stays__u", "comes__t"))

		// A session that ends while a member has not answered leaves nothing.
		c.request(8, "tools/call", `{"name":"comes__t"}`)
		replace(t, v, members("stays", other))
		ssetest.Must(t, c.conn.Close())
		ssetest.Want(t, "closed", comes.conn().isClosed(), true)
	})
}

// Rules that change hold at once, for calls of names that the client was shown too. Configurations that are wrong
// change nothing.
func TestReplaceRules(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake()
		f.lists["tools/list"] = `{"tools":[{"name":"t","annotations":{"readOnlyHint":true}},{"name":"u"}]}`
		list := func(change func(m *compose.Member)) []compose.Member {
			l := members("a", f, "b", newFake("t"))
			change(&l[0])
			return l
		}
		all := list(func(*compose.Member) {})
		v := newView(t, all)
		c := open(t, v)
		c.request(2, "tools/list", "{}")
		c.take()
		calls := func(what string, t2, u int) {
			t.Helper()
			for name, want := range map[string]int{"t": t2, "u": u} {
				f.conn().take()
				c.request(3, "tools/call", `{"name":"a__`+name+`"}`)
				ssetest.Want(t, what+" "+name, len(f.conn().take()), want)
			}
			c.take()
		}
		calls("all", 1, 1)
		replace(t, v, list(func(m *compose.Member) { m.Exclude = []string{"t"} }))
		calls("exclude", 0, 1)
		replace(t, v, list(func(m *compose.Member) { m.Only = compose.OnlyReadOnly }))
		calls("only", 1, 0)
		if err := v.Replace(list(func(m *compose.Member) { m.Include = []string{"["} }), compose.Options{}); err == nil {
			t.Error("a glob that cannot be read is taken")
		}
		calls("nothing has changed", 1, 0)
		replace(t, v, all)
		calls("all again", 1, 1)
		time.Sleep(time.Second)
		c.want("the list is the one that the client knows")
		ssetest.Want(t, "dials", f.dialled(), 1)
	})
}

// A report says what is known of members, and asks none of them.
func TestMembersReport(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		late, dead, good := newFake("t"), newFake("t"), newFake("t", "u")
		late.silent["*"], dead.refuse = true, errors.New("it is dead")
		v := newView(t, members("late", late, "dead", dead, "good", good))
		report := func() string { return strings.Trim(fmt.Sprint(v.Members()), "[]") }
		ssetest.Want(t, "before", report(), "{late unused  -1} {dead unused  -1} {good unused  -1}")
		c := open(t, v)
		c.request(2, "tools/list", "{}")
		time.Sleep(6 * time.Second)
		synctest.Wait()
		ssetest.Want(t, "then", report(), "{late late  -1} {dead failing it is dead -1} {good listed  2}")
		good.conn().end(jsonrpc.ErrTooLong)
		dead.set(func(f *fake) { f.refuse = nil })
		late.nth(0).answerHeld(late.says)
		late.nth(0).answerHeld(late.lists["tools/list"])
		time.Sleep(time.Minute)
		ssetest.Want(t, "all well", report(), "{late listed  1} {dead listed  1} {good listed  2}")
		replace(t, v, members("good", newFake("x")))
		time.Sleep(time.Second)
		ssetest.Want(t, "other members", report(), "{good listed  1}")
	})
}

// A session that has not initialized opens the members of now. Clients get a member that they may use, and lose one that
// they may not.
func TestReplaceBeforeInitializeAndOfAccess(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, b := newFake("t"), newFake("t")
		v := newView(t, members("a", a))
		c := dial(t, v)
		replace(t, v, members("b", b, "a", a))
		ssetest.Want(t, "dials", a.dialled()+b.dialled(), 0)
		c.request(1, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
		c.take()
		c.request(2, "tools/list", "{}")
		c.want("the list", tools(2, "b__t", "a__t"))
		for _, mayUse := range []bool{false, true} {
			of := members("b", b, "a", a)
			of[1].Allow = func(context.Context) bool { return mayUse }
			replace(t, v, of)
			time.Sleep(time.Second)
			c.want("told", `{"method":"notifications/tools/list_changed"}`)
			ssetest.Want(t, "the connection is closed", a.conn().isClosed(), !mayUse)
		}
		ssetest.Must(t, c.conn.Close())
		replace(t, v, members("b", b)) // nobody is there
	})
}

// A member that fails is not tried any more when it has left, and nothing of that is known of another one of its name.
func TestReplaceOfAMemberThatFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		dead, well := newFake("x"), newFake("x")
		dead.refuse = errors.New("it is dead")
		v := newView(t, members("m", dead, "n", newFake("y")))
		c := open(t, v)
		c.request(2, "tools/list", "{}")
		c.take()
		tries := dead.dialled()
		replace(t, v, members("m", well, "n", newFake("y")))
		time.Sleep(time.Hour)
		c.want("told", `{"method":"notifications/tools/list_changed"}`)
		c.request(3, "tools/list", "{}")
		c.want("the list", tools(3, "m__x", "n__y"))
		ssetest.Want(t, "tries of the one that has left", dead.dialled(), tries)
	})
}

// A subscription ends with the rule that allowed it: the server is told, the client hears of the resource no more, and
// a new connection does not subscribe again.
func TestReplaceEndsSubscriptions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, b := full("a"), full("b")
		list := members("a", a, "b", b)
		v := newView(t, list)
		c := open(t, v)
		for i, uri := range []string{"x:a", "x:all"} {
			c.request(int64(i+2), "resources/subscribe", `{"uri":"`+uri+`"}`)
			a.conn().say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, i+2))
		}
		a.conn().take()
		list = members("a", a, "b", b)
		list[0].Resources = []string{"x:all", "x:none"}
		ssetest.Must(t, v.Replace(list, compose.Options{Name: "team"}))
		ssetest.WantText(t, "the server", strings.Join(a.conn().take(), "\n"), `"method":"resources/unsubscribe","params":{"uri":"x:a"}}`)
		time.Sleep(time.Second)
		c.take()
		updated := func(uri string) {
			a.conn().say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"}}`)
		}
		updated("x:a")
		updated("x:all/part")
		c.want("left out")
		updated("x:all")
		c.want("allowed", `{"method":"notifications/resources/updated","params":{"uri":"x:all"}}`)
		time.Sleep(time.Minute)
		a.conn().end(io.EOF)
		ssetest.Want(t, "dials", a.dialled(), 2)
		got := strings.Join(a.conn().take(), "\n")
		ssetest.WantText(t, "subscribed again", got, `{"uri":"x:all"}`)
		ssetest.Want(t, "the one that is left out", strings.Contains(got, `{"uri":"x:a"}`), false)
	})
}
