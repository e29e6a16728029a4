package compose_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// inBubble runs a test with a clock of its own.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// A client of a view lists the tools of all members under their final names, and calls each by that name.
func TestListAndCall(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		github, brave := newFake("create_issue", "get.me"), newFake("search")
		c := open(t, newView(t, members("github", github, "brave", brave)))
		ssetest.WantText(t, "initialize", strings.Join(c.take(), "\n"), `{"id":1,"result":{"capabilities":{"tools":{"listChanged":true}}`,
			`"protocolVersion":"2025-06-18"`, `"serverInfo":{"name":"team","version":`)
		c.request(2, "tools/list", "{}")
		c.want("list", tools(2, "github__create_issue", "github__get_me", "brave__search"))
		github.wantGot(t, "handshake", `{"method":"notifications/initialized"}`)
		brave.wantGot(t, "handshake", `{"method":"notifications/initialized"}`)

		c.request(3, "tools/call", `{"x":1e3, "name":"github__get_me", "arguments":{"name":"github__get_me"},"_meta":{"progressToken":"t"}}`)
		github.wantGot(t, "call", `{"id":3,"method":"tools/call","params":{"x":1e3, "name":"get.me", "arguments":{"name":"github__get_me"},"_meta":{"progressToken":3}}}`)
		brave.wantGot(t, "nothing")
		github.conn().say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":1}}`,
			`{"jsonrpc":"2.0","id":3, "result":{"content":[]}}`, `{"jsonrpc":"2.0","id":3,"result":{"again":1}}`)
		c.want("answer", `{"method":"notifications/progress","params":{"progressToken":3,"progress":1}}`, `{"id":3, "result":{"content":[]}}`)
	})
}

// The names of a view of one stay as they are, and so do all other requests and answers.
func TestViewOfOne(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake("a.b")
		f.says = `{"protocolVersion":"2025-11-25","capabilities":{"logging":{},"tools":{}},"instructions":"as they are"}`
		c := open(t, newView(t, members("f", f)))
		ssetest.WantText(t, "initialize", strings.Join(c.take(), "\n"), `"instructions":"as they are"`, `"logging":{}`)
		c.request(2, "tools/list", "{}")
		c.want("list", tools(2, "a.b"))
		f.conn().take()
		for n, message := range []string{
			`"tools/call","params":{"name":"a.b"}`, `"tasks/get","params":{"taskId":"t"}`,
			`"resources/read","params":{"uri":"x:1"}`, `"vendor/x","params":{"a":1}`,
		} {
			method, params, _ := strings.Cut(message, `,"params":`)
			c.request(int64(n+3), strings.Trim(method, `"`), params)
			f.wantGot(t, "request", fmt.Sprintf(`{"id":%d,"method":%s}`, n+3, message))
		}
		c.send(`{"jsonrpc":"2.0","method":"vendor/note"}`)
		f.wantGot(t, "notification", `{"method":"vendor/note"}`)
		f.conn().say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"l"}}`)
		c.want("log", `{"method":"notifications/message","params":{"level":"info","logger":"l"}}`)
	})
}

// Three members give equal ids and tokens to what they ask, while the client has a call at each. Nothing crosses.
func TestThreeMembersWithEqualIDs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		fakes := []*fake{newFake("t"), newFake("t"), newFake("t")}
		c := open(t, newView(t, members("a", fakes[0], "b", fakes[1], "c", fakes[2])))
		c.request(2, "tools/list", "{}")
		c.take()
		for i, name := range []string{"a__t", "b__t", "c__t"} {
			fakes[i].conn().take()
			c.request(int64(10+i), "tools/call", `{"name":"`+name+`"}`)
			fakes[i].wantGot(t, "call", fmt.Sprintf(`{"id":%d,"method":"tools/call","params":{"name":"t"}}`, 10+i))
		}
		ids := map[string]string{} // of the questions at the client, by member
		for i, member := range []string{"a", "b", "c"} {
			fakes[i].conn().sayFor(jsonrpc.NumberID(int64(10+i)),
				`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"Sure?","_meta":{"progressToken":1}}}`)
			got := strings.Join(c.take(), "\n")
			prefix := fmt.Sprintf(`for %d: {"id":"view-`, 10+i)
			id, _, _ := strings.Cut(strings.TrimPrefix(got, prefix), `"`)
			ids[member] = `"view-` + id + `"`
			ssetest.Want(t, "question", got, fmt.Sprintf(
				`for %d: {"id":%s,"method":"elicitation/create","params":{"message":"%s: Sure?","_meta":{"progressToken":%s}}}`, 10+i, ids[member], member, ids[member]))
		}
		c.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + ids["b"] + `,"progress":1}}`)
		c.send(`{"jsonrpc":"2.0","id":` + ids["c"] + `,"result":{"action":"decline"}}`)
		c.send(`{"jsonrpc":"2.0","id":` + ids["b"] + `,"result":{"action":"accept"}}`)
		c.send(`{"jsonrpc":"2.0","id":` + ids["b"] + `,"result":{"action":"cancel"}}`)
		c.send(`{"jsonrpc":"2.0","id":1,"result":{"action":"forged"}}`)
		fakes[0].conn().say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		c.send(`{"jsonrpc":"2.0","id":` + ids["a"] + `,"result":{"action":"too late"}}`)
		fakes[0].wantGot(t, "a")
		fakes[1].wantGot(t, "b", `{"method":"notifications/progress","params":{"progressToken":1,"progress":1}}`, `{"id":1,"result":{"action":"accept"}}`)
		fakes[2].wantGot(t, "c", `{"id":1,"result":{"action":"decline"}}`)
		c.want("cancelled", `{"method":"notifications/cancelled","params":{"requestId":`+ids["a"]+`}}`)

		// Answers in another order, one to the request of another member, and one to no request.
		fakes[0].conn().say(`{"jsonrpc":"2.0","id":11,"result":"stolen"}`, `{"jsonrpc":"2.0","id":99,"result":{}}`, `{"jsonrpc":"2.0","id":900000000000001,"result":{}}`)
		for _, i := range []int{2, 0, 1} {
			fakes[i].conn().say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"of %d"}`, 10+i, i))
		}
		c.want("answers", `{"id":12,"result":"of 2"}`, `{"id":10,"result":"of 0"}`, `{"id":11,"result":"of 1"}`)
	})
}

// A question that is withdrawn while it is on its way reaches the client before its cancellation.
func TestQuestionIsNotOvertaken(t *testing.T) {
	const question = `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"Sure?"}}`
	for name, withdraw := range map[string]func(t *testing.T, v *compose.View, a, b *fake){
		"its member leaves": func(t *testing.T, v *compose.View, _, b *fake) { replace(t, v, members("b", b)) },
		"its member withdraws it": func(_ *testing.T, _ *compose.View, a, _ *fake) {
			a.conn().say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				a, b := newFake("t"), newFake("t")
				v := newView(t, members("a", a, "b", b))
				c := open(t, v)
				c.take()
				c.hook = func(line string) {
					if strings.Contains(line, "elicitation/create") {
						c.hook = nil
						withdraw(t, v, a, b)
					}
				}
				a.conn().say(question)
				synctest.Wait()
				c.want("both, in their order", `for null: {"id":"view-5","method":"elicitation/create","params":{"message":"a: Sure?"}}`,
					`{"method":"notifications/cancelled","params":{"requestId":"view-5"}}`)
				ssetest.Want(t, "questions that are kept", compose.Tables(c.conn)["asked"], 0)
			})
		})
	}
}

// A member that never answers costs its own tools, and one client 5 s.
func TestMemberThatNeverAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		good, mute := newFake("t"), newFake("t")
		mute.silent["*"] = true
		v := newView(t, members("good", good, "mute", mute))
		c := open(t, v)
		ssetest.WantText(t, "what may come is declared", strings.Join(c.take(), ""), `"prompts":{"listChanged":true}`, `"subscribe":true`, `"completions":{}`)
		begin := time.Now()
		c.request(2, "tools/list", "{}")
		time.Sleep(time.Millisecond)
		c.request(3, "tools/call", `{"name":"good__t"}`)
		c.request(4, "tools/call", `{"name":"mute__t"}`)
		c.request(5, "tools/call", `{"name":"gone__t"}`)
		c.want("nobody waits for it without need", `{"id":5,"error":{"code":-32602,"message":"unknown tool \"gone__t\""}}`)
		good.conn().say(`{"jsonrpc":"2.0","id":3,"result":{}}`)
		c.want("a call", `{"id":3,"result":{}}`)
		time.Sleep(5*time.Second - 2*time.Millisecond)
		synctest.Wait()
		c.want("it waits")
		time.Sleep(time.Second)
		ssetest.Want(t, "waited", time.Since(begin) < 7*time.Second, true)
		got := c.take()
		ssetest.Want(t, "list", got[0], tools(2, "good__t"))
		ssetest.WantText(t, "call", got[1], `{"id":4,"error":`, "mute, a server of this view, has not started yet", `"retryable":true`)

		// The next client does not wait.
		d := open(t, v)
		d.take()
		d.request(2, "tools/list", "{}")
		d.want("list of another client", tools(2, "good__t"))

		// It answers at last: both are told, each once.
		mute.nth(0).answerHeld(mute.says)
		mute.nth(0).answerHeld(mute.lists["tools/list"])
		time.Sleep(time.Second)
		c.want("told", `{"method":"notifications/tools/list_changed"}`)
		c.request(6, "tools/list", "{}")
		c.want("list", tools(6, "good__t", "mute__t"))
		d.want("nothing for the other, whose link still waits")
	})
}

// A call waits for a member that could own the tool, and goes there when it has listed.
func TestCallWaitsForItsMember(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		slow := newFake("t")
		slow.silent["tools/list"] = true
		c := open(t, newView(t, members("good", newFake("t"), "slow", slow)))
		c.take()
		c.request(2, "tools/call", `{"name":"slow__t"}`)
		c.request(3, "tools/call", `{"name":"slow__u"}`)
		c.request(4, "tools/call", `{"name":"slow__t"}`)
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}`)
		ssetest.WantText(t, "cancelled", strings.Join(c.take(), ""), `{"id":4,"error":`, `"reason":"cancelled"`)
		slow.conn().take()
		slow.conn().answerHeld(slow.lists["tools/list"])
		slow.wantGot(t, "call", `{"id":2,"method":"tools/call","params":{"name":"t"}}`)
		c.want("unknown", `{"id":3,"error":{"code":-32602,"message":"unknown tool \"slow__u\""}}`)
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"r"}}`)
		slow.wantGot(t, "cancelled", `{"method":"notifications/cancelled","params":{"requestId":2,"reason":"r"}}`)
	})
}

// A dead member fails nobody else, in each way to die.
func TestDeadMembers(t *testing.T) {
	for name, c := range map[string]struct {
		kill func(f *fake)
		says string
	}{
		"it cannot be dialled":      {func(f *fake) { f.refuse = errors.New("no such thing") }, "cannot be reached: no such thing"},
		"it refuses initialize":     {func(f *fake) { f.fault["initialize"] = `{"code":-32603,"message":"it broke"}` }, "cannot be reached: it broke"},
		"its list cannot be read":   {func(f *fake) { f.fault["tools/list"] = `{"code":-32603,"message":"it broke"}` }, "cannot be reached: it broke"},
		"it does not know a list":   {func(f *fake) { f.fault["tools/list"] = `{"code":-32601,"message":"no"}` }, `unknown tool \"dead__t\"`},
		"it declares no tools":      {func(f *fake) { f.says = `{"capabilities":{}}` }, `unknown tool \"dead__t\"`},
		"its pages do not end":      {func(f *fake) { f.lists["tools/list"] = `{"tools":[{"name":"x"}],"nextCursor":"c"}` }, `unknown tool \"dead__t\"`},
		"its result is no list":     {func(f *fake) { f.lists["tools/list"] = `{"tools":7}` }, `unknown tool \"dead__t\"`},
		"its initialize is strange": {func(f *fake) { f.says = `7` }, `unknown tool \"dead__t\"`},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				good, dead := newFake("t"), newFake("t")
				c.kill(dead)
				client := open(t, newView(t, members("dead", dead, "good", good)))
				client.take()
				client.request(2, "tools/list", "{}")
				got := strings.Join(client.take(), "\n")
				ssetest.WantText(t, "list", got, `{"id":2,"result":{"tools":[`, `{"name":"good__t"}]}}`)
				client.request(3, "tools/call", `{"name":"dead__t"}`)
				ssetest.WantText(t, "call", strings.Join(client.take(), "\n"), `{"id":3,"error":`, c.says)
				client.request(4, "tools/call", `{"name":"good__t"}`)
				good.conn().say(`{"jsonrpc":"2.0","id":4,"result":{}}`)
				client.want("the other", `{"id":4,"result":{}}`)
			})
		})
	}
}

// The end of a connection fails the requests of its member alone, and withdraws its questions.
func TestConnectionOfAMemberEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, b := newFake("t"), newFake("t")
		c := open(t, newView(t, members("a", a, "b", b)))
		c.request(2, "tools/list", "{}")
		c.take()
		c.request(3, "tools/call", `{"name":"a__t"}`)
		ctx, beside := asker.WithRequest(t.Context(), "")
		untaken, err := jsonrpc.Parse(jsonrpc.NewRequest("0", "tools/call", json.RawMessage(`{"name":"a__t"}`)))
		ssetest.Must(t, err)
		untaken.Context = ctx
		ssetest.Must(t, c.conn.SendRequest(untaken, 4))
		c.request(5, "tools/call", `{"name":"b__t"}`)
		a.conn().say(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
		c.want("question", `{"id":"view-5","method":"roots/list"}`)
		ended := a.conn()
		ended.end(&jsonrpc.NotTakenError{ID: "4", Err: io.EOF})
		got := c.take()
		ssetest.WantText(t, "what the client gets", strings.Join(got, "\n"),
			`{"method":"notifications/cancelled","params":{"requestId":"view-5"}}`,
			`{"id":3,"error":{"code":-32603,"message":"the session with a was lost","data":{"reason":"session_lost","retryable":false}}}`,
			`{"id":4,"error":{"code":-32603,"message":"the session with a was lost","data":{"reason":"session_lost","retryable":true}}}`)
		ssetest.Want(t, "messages", len(got), 3)
		member, _ := beside.Destination()
		ssetest.Want(t, "the member that has not taken it", member, "")
		ssetest.Want(t, "closed", ended.isClosed(), true)
		b.conn().say(`{"jsonrpc":"2.0","id":5,"result":{}}`)
		ended.say(`{"jsonrpc":"2.0","id":3,"result":{}}`)
		c.want("the other", `{"id":5,"result":{}}`)
		c.request(6, "tools/list", "{}")
		c.want("its tools stay", tools(6, "a__t", "b__t"))
		c.request(7, "tools/call", `{"name":"a__t"}`)
		ssetest.WantText(t, "call", strings.Join(c.take(), ""), `{"id":7,"error":`, "a, a server of this view, cannot be reached: EOF", `"reason":"member_unavailable"`)
	})
}

// A member that takes no more is busy for its own requests alone.
func TestBusyMember(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newFake("t")
		c := open(t, newView(t, members("a", a, "b", newFake("t"))))
		c.request(2, "tools/list", "{}")
		c.take()
		conn := a.conn()
		conn.mu.Lock()
		conn.busy = jsonrpc.ErrBusy
		conn.mu.Unlock()
		if err := c.tryRequest(3, "tools/call", `{"name":"a__t"}`); !errors.Is(err, jsonrpc.ErrBusy) {
			t.Errorf("got %v", err)
		}
		c.want("nothing")
		c.request(4, "tools/call", `{"name":"b__t"}`)
		conn.mu.Lock()
		conn.busy, conn.closed = nil, true
		conn.mu.Unlock()
		c.request(5, "tools/call", `{"name":"a__t"}`)
		ssetest.WantText(t, "lost", strings.Join(c.take(), ""), `{"id":5,`, `"session_lost","retryable":true`)
	})
}

// A name without its prefix is understood if one tool alone has it.
func TestBareNames(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, b := newFake("one", "both", "old"), newFake("both", "a__one")
		list := members("a", a, "b", b)
		list[0].Rename = map[string]string{"old": "new"}
		list[0].Exclude = []string{"secret"}
		v := newView(t, list)
		c := open(t, v)
		c.request(2, "tools/list", "{}")
		c.take()
		a.conn().take()
		for n, name := range []string{"one", "old", "a__new"} {
			c.request(int64(3+n), "tools/call", `{"name":"`+name+`"}`)
		}
		a.wantGot(t, "calls", `{"id":3,"method":"tools/call","params":{"name":"one"}}`, `{"id":4,"method":"tools/call","params":{"name":"old"}}`,
			`{"id":5,"method":"tools/call","params":{"name":"old"}}`)
		for name, says := range map[string]string{
			"both": `unknown tool "both": there are a__both, b__both`, "new": `unknown tool "new"`,
			"a__old": `unknown tool "a__old"`, "secret": `unknown tool "secret"`, "a__secret": `unknown tool "a__secret"`,
		} {
			c.request(9, "tools/call", fmt.Sprintf(`{"name":%q}`, name))
			c.want(name, fmt.Sprintf(`{"id":9,"error":{"code":-32602,"message":%q}}`, says))
		}
	})
}

// What came beside the message of a request tells the gateway in front where it leads, and no member gets it.
func TestRequestsTellWhereTheyLead(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, b := newFake("one", "both", "old"), newFake("both", "a__one")
		list := members("a", a, "b", b)
		list[0].Rename = map[string]string{"old": "new"}
		c := open(t, newView(t, list))
		c.take()
		type key struct{}
		before := context.WithValue(t.Context(), key{}, "kept")
		for name, want := range map[string]string{
			"a__one": "a one", "one": "a one", "both": " ", "b__a__one": "b a__one", "a__new": "a old", "x": " ",
		} {
			ctx, beside := asker.WithRequest(before, "")
			m, err := jsonrpc.Parse(jsonrpc.NewRequest("0", "tools/call", json.RawMessage(`{"name":"`+name+`"}`)))
			ssetest.Must(t, err)
			m.Context = ctx
			ssetest.Must(t, c.conn.SendRequest(m, 2))
			c.take()
			member, own := beside.Destination()
			ssetest.Want(t, name+" leads to", member+" "+own, want)
			for _, f := range []*fake{a, b} {
				for _, got := range f.conn().contexts() {
					ssetest.Want(t, "a member gets what came beside", asker.RequestFrom(got) != nil, false)
					ssetest.Want(t, "a member gets other values", fmt.Sprint(got.Value(key{})), "kept")
				}
			}
		}
	})
}

// A call leads to the member that it was sent to. One that was sent to no member leads to none, although its tool is
// known.
func TestCallsThatAreSentToNoMember(t *testing.T) {
	for how, c := range map[string]struct {
		before func(a *fake)
		want   string
	}{
		"it is there":           {func(*fake) {}, "a t"},
		"it cannot be dialled":  {func(a *fake) { a.refuse = errors.New("it is dead") }, " "},
		"it has not started":    {func(a *fake) { a.silent["initialize"] = true }, " "},
		"it does not read":      {func(a *fake) { a.conns[0].busy = jsonrpc.ErrBusy }, " "},
		"its session is closed": {func(a *fake) { a.conns[0].closed = true }, " "},
	} {
		t.Run(how, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				a := newFake("t")
				client := open(t, newView(t, members("a", a, "b", newFake("t"))))
				client.request(2, "tools/list", "{}")
				client.take()
				time.Sleep(time.Minute)
				a.set(c.before)
				if a.refuse != nil || a.silent["initialize"] {
					a.conn().end(io.EOF)
				}
				synctest.Wait()
				ctx, beside := asker.WithRequest(t.Context(), "")
				m, err := jsonrpc.Parse(jsonrpc.NewRequest("0", "tools/call", json.RawMessage(`{"name":"a__t"}`)))
				ssetest.Must(t, err)
				m.Context = ctx
				_ = client.conn.SendRequest(m, 3) // the gateway in front answers a member that does not read
				time.Sleep(10 * time.Second)
				member, own := beside.Destination()
				ssetest.Want(t, "it leads to", member+" "+own, c.want)
			})
		})
	}
}

// A name that parsers may read in two ways is refused before it is routed, and so is one that is no name.
func TestStrangeNames(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newFake("t", "u")
		c := open(t, newView(t, members("a", a, "b", newFake("t"))))
		c.request(2, "tools/list", "{}")
		c.take()
		a.conn().take()
		for params, says := range map[string]string{
			`{"name":"a__t","name":"a__u"}`: `{"code":-32600,"message":"params.name is ambiguous"}`,
			`{"name":"a__t","Name":"a__u"}`: `{"code":-32600,"message":"params.name is ambiguous"}`,
			`{"name":7}`:                    `{"code":-32602,"message":"params.name must be a string"}`,
			`{}`:                            `{"code":-32602,"message":"there must be params.name"}`,
		} {
			c.request(3, "tools/call", params)
			c.want(params, `{"id":3,"error":`+says+`}`)
		}
		c.request(4, "vendor/x", "{}")
		c.want("an unknown method", `{"id":4,"error":{"code":-32601,"message":"method not found"}}`)
		c.request(5, "ping", "{}")
		c.want("ping", `{"id":5,"result":{}}`)
		a.wantGot(t, "nothing")
	})
}

// A session that is over leaves nothing, whatever its members do.
func TestClose(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		mute := newFake("t")
		mute.silent["*"] = true
		a := newFake("t")
		c := open(t, newView(t, members("a", a, "mute", mute)))
		c.request(2, "tools/list", "{}")
		c.request(3, "tools/call", `{"name":"a__t"}`)
		c.take()
		ssetest.Must(t, c.conn.Close())
		ssetest.Must(t, c.conn.Close())
		ssetest.Want(t, "closed", a.conn().isClosed() && mute.conn().isClosed(), true)
		a.conn().say(`{"jsonrpc":"2.0","id":3,"result":{}}`)
		a.conn().end(jsonrpc.ErrClosed)
		mute.conn().answerHeld(mute.says)
		time.Sleep(time.Minute)
		c.want("nothing")
		ssetest.Want(t, "the end", fmt.Sprint(c.ends), fmt.Sprint([]error{jsonrpc.ErrClosed}))
		ssetest.WantError(t, "a request", c.tryRequest(4, "tools/list", "{}"), jsonrpc.ErrClosed)
		ssetest.WantError(t, "a notification", c.conn.Send([]byte(`{"jsonrpc":"2.0","method":"x"}`)), jsonrpc.ErrClosed)
	})
}

// A member that a client may not use is in none of its lists, and is not dialled for it.
func TestMembersThatAClientMayUse(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		type key struct{}
		a, b := newFake("t"), newFake("t")
		list := members("a", a, "b", b)
		list[0].Allow = func(ctx context.Context) bool { return ctx.Value(key{}) == "alice" }
		v := newView(t, list)
		c := open(t, v)
		c.take()
		c.request(2, "tools/list", "{}")
		c.want("list", tools(2, "b__t"))
		c.request(3, "tools/call", `{"name":"a__t"}`)
		c.want("call", `{"id":3,"error":{"code":-32602,"message":"unknown tool \"a__t\""}}`)
		ssetest.Want(t, "dials", fmt.Sprint(a.dialled(), b.dialled()), "0 1")
	})
}

// A configuration that cannot work is refused, with everything that is wrong.
func TestRefusedConfigurations(t *testing.T) {
	up := newFake()
	empty, long := "", strings.Repeat("p", 41)
	with := func(change func(m *compose.Member)) []compose.Member {
		list := members("a", up, "b", up)
		change(&list[0])
		return list
	}
	for name, c := range map[string]struct {
		members []compose.Member
		opts    compose.Options
		says    string
	}{
		"no member": {nil, compose.Options{}, "there is no member: name the servers of the view"},
		"many members": {members(func() (all []any) {
			for i := range 65 {
				all = append(all, fmt.Sprint("m", i), up)
			}
			return all
		}()...), compose.Options{}, "there are 65 members, and a view has at most 64"},
		"no name":         {with(func(m *compose.Member) { m.Name = "" }), compose.Options{}, `member "": it has no name`},
		"no upstream":     {with(func(m *compose.Member) { m.Upstream = nil }), compose.Options{}, `member "a": it has no upstream`},
		"two of one name": {members("a", up, "a", up), compose.Options{}, `member "a" is there twice`},
		"names that meet": {with(func(m *compose.Member) { m.Name = "a__b" }), compose.Options{}, `member "a__b": the names of two members could meet`},
		"an end with _":   {with(func(m *compose.Member) { m.Name = "a_" }), compose.Options{}, `member "a_": the names of two members could meet`},
		"a long prefix":   {with(func(m *compose.Member) { m.Prefix = &long }), compose.Options{}, "has 41 characters, and 40 are allowed"},
		"a bad glob":      {with(func(m *compose.Member) { m.Include = []string{"[a"} }), compose.Options{}, `member "a": include: the glob "[a" cannot be read`},
		"a bad choice":    {with(func(m *compose.Member) { m.Only = 7 }), compose.Options{}, `only: "value 7" is no choice: write read-only or non-destructive`},
		"a bad new name":  {with(func(m *compose.Member) { m.Rename = map[string]string{"x": "y z"} }), compose.Options{}, `rename: "y z" is no name`},
		"equal new names": {with(func(m *compose.Member) { m.Rename = map[string]string{"x": "z", "y": "z"} }), compose.Options{}, `rename: "x" and "y" would both be "z"`},
		"excluded, renamed": {with(func(m *compose.Member) {
			m.Rename, m.Exclude = map[string]string{"x": "z"}, []string{"x"}
		}), compose.Options{}, `rename: exclude leaves "x" out`},
		"excluded, described": {with(func(m *compose.Member) {
			m.Describe, m.Exclude = map[string]string{"x": "z"}, []string{"x"}
		}), compose.Options{}, `describe: exclude leaves "x" out`},
		"an unknown client": {members("a", up), compose.Options{For: "nobody"}, `for: "nobody" is no client: write one of claude-code, `},
		"several at once":   {[]compose.Member{{}}, compose.Options{For: "nobody"}, "it has no name\nit has no upstream\nfor: "},
	} {
		v, err := compose.New(c.members, c.opts)
		ssetest.WantText(t, name, err, c.says)
		ssetest.Want(t, name+": a view", v == nil, true)
	}
	for _, list := range [][]compose.Member{
		members("a__b_", up), // alone
		with(func(m *compose.Member) { m.Name, m.Prefix = "a__", &empty }),
	} {
		newView(t, list)
	}
}

// A question that a member asks outside of its calls belongs to none, whatever other members have been called. One that
// comes while it has a call, which the client has not cancelled, may belong to that. Roots are asked of the client alone.
func TestQuestionsOutsideOfCalls(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, b := newFake("t"), newFake("t")
		a.says = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"completions":{}}}`
		a.lists["prompts/list"] = listOf("prompts", "name", "p")
		c := open(t, newView(t, members("a", a, "b", b)))
		c.request(2, "tools/call", `{"name":"b__t"}`)
		c.take()
		ask := func(method string) { a.conn().say(`{"jsonrpc":"2.0","id":1,"method":"` + method + `"}`) }
		asked := func() string {
			before, _, _ := strings.Cut(strings.Join(c.take(), "\n"), "{")
			return before
		}
		for _, method := range []string{"elicitation/create", "sampling/createMessage"} {
			ask(method)
			ssetest.Want(t, method+" during a call of another member", asked(), "for null: ")
		}
		ask("roots/list")
		ssetest.Want(t, "roots", asked(), "")
		c.request(4, "completion/complete", `{"ref":{"type":"ref/prompt","name":"a__p"},"argument":{"name":"x","value":""}}`)
		ssetest.Want(t, "requests that members have", compose.Tables(c.conn)["open"], 2)
		ask("elicitation/create")
		ssetest.Want(t, "during a request that asks nothing", asked(), "for null: ")
		c.request(3, "tools/call", `{"name":"a__t"}`)
		ask("elicitation/create")
		ssetest.Want(t, "during a call", asked(), "")
		a.conn().sayFor("3", `{"jsonrpc":"2.0","id":1,"method":"elicitation/create"}`)
		ssetest.Want(t, "in a call", asked(), "for 3: ")
		a.conn().say(`{"jsonrpc":"2.0","id":3,"result":{}}`)
		c.take()
		ask("elicitation/create")
		ssetest.Want(t, "after its call", asked(), "for null: ")
		c.request(5, "tools/call", `{"name":"a__t"}`)
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
		ask("sampling/createMessage")
		ssetest.Want(t, "after the cancellation of its call", asked(), "for null: ")
	})
}

// What a member sends reaches the client in its order, and at once, although another goroutine is in the middle of
// telling the client something.
func TestMessagesOfAMemberKeepTheirOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newFake("t")
		c := open(t, newView(t, members("a", a, "b", newFake("t"))))
		c.request(2, "tools/list", "{}")
		c.request(3, "tools/call", `{"name":"a__t"}`)
		c.take()
		goOn := make(chan struct{})
		c.hook = func(line string) {
			if strings.Contains(line, `"tools":[`) {
				<-goOn
			}
		}
		go c.request(4, "tools/list", "{}")
		synctest.Wait()
		want := []string{
			`{"method":"notifications/progress","params":{"progressToken":3,"progress":1}}`,
			`{"method":"notifications/message","params":{"level":"info","data":1,"logger":"a"}}`,
			`{"id":"view-5","method":"roots/list"}`, `{"method":"notifications/cancelled","params":{"requestId":"view-5"}}`,
			`{"id":3,"result":{}}`,
		}
		a.conn().say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":1}}`,
			`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`,
			`{"jsonrpc":"2.0","id":7,"method":"roots/list"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`,
			`{"jsonrpc":"2.0","id":3,"result":{}}`)
		c.want("messages", want...)
		close(goOn)
		synctest.Wait()
		c.want("list", tools(4, "a__t", "b__t"))
	})
}

// A member that asks without end leaves room for the questions of the others. The only member has all of it.
func TestTooManyQuestions(t *testing.T) {
	for others, most := range map[bool]int{true: 64, false: 256} {
		inBubble(t, func(t *testing.T) {
			a, b := newFake("x"), newFake("y")
			list := members("a", a, "b", b)
			if !others {
				list = list[:1]
			}
			c := open(t, newView(t, list))
			c.take()
			a.conn().take()
			for i := range most {
				a.conn().say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"sampling/createMessage","params":{}}`, i))
			}
			ssetest.Want(t, "questions", len(c.take()), most)
			a.conn().say(`{"jsonrpc":"2.0","id":"more","method":"sampling/createMessage","params":{}}`)
			c.want("one more")
			ssetest.WantText(t, "refused", strings.Join(a.conn().take(), ""), `{"id":"more","error":`, `"server_busy"`)
			if others {
				b.conn().say(`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"hi"}}`)
				ssetest.WantText(t, "the other", strings.Join(c.take(), ""), `"elicitation/create"`)
			}
		})
	}
}

// A client gets progress of the member that has the request alone. A task makes progress after the answer.
func TestProgressOfAnotherMember(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, b := newFake("t"), newFake("t")
		c := open(t, newView(t, members("a", a, "b", b)))
		c.request(2, "tools/list", `{}`)
		c.request(3, "tools/call", `{"name":"a__t"}`)
		c.take()
		const progress = `"method":"notifications/progress","params":{"progressToken":3,"progress":1}}`
		for _, token := range []string{"3", `"3"`, "3.0"} {
			b.conn().say(`{"jsonrpc":"2.0",` + strings.Replace(progress, "3", token, 1))
		}
		c.want("of another member")
		a.conn().say(`{"jsonrpc":"2.0",`+progress, `{"jsonrpc":"2.0","id":3,"result":{}}`, `{"jsonrpc":"2.0",`+progress)
		c.want("its own", `{`+progress, `{"id":3,"result":{}}`, `{`+progress)
	})
}
