package compose_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
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
// open there. A call at another member goes on. A name that the client was shown leads nowhere.
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

// A tool, a prompt, a resource, an app or a template that the client was shown leads to no other member, also when its
// own is lost and another one has the same. With a new list the client knows that one.
func TestWhatWasShownNeverLeadsToAnotherMember(t *testing.T) {
	const resource, app = "x:one", "ui://app"
	same := func() *fake {
		f := full("f")
		f.lists["tools/list"] = `{"tools":[{"name":"search","_meta":{"ui":{"resourceUri":"` + app + `"}}}]}`
		f.lists["prompts/list"] = listOf("prompts", "name", "search")
		f.lists["resources/list"] = listOf("resources", "uri", resource)
		f.lists["resources/templates/list"] = listOf("resourceTemplates", "uriTemplate", "y:{id}")
		return f
	}
	lost := map[string]func(of []compose.Member) []compose.Member{
		"access":     func(of []compose.Member) []compose.Member { return forbidden(of, "a") },
		"the member": func(of []compose.Member) []compose.Member { return of[1:] },
		"its rules": func(of []compose.Member) []compose.Member {
			of[0].Include, of[0].Prompts, of[0].Resources = []string{"z"}, []string{"z"}, []string{"z"}
			return of
		},
	}
	for how, lose := range lost {
		for what, c := range map[string]struct{ list, method, params string }{
			"a tool":      {"tools/list", "tools/call", `{"name":"search"}`},
			"a prompt":    {"prompts/list", "prompts/get", `{"name":"search"}`},
			"a resource":  {"resources/list", "resources/read", `{"uri":"` + resource + `"}`},
			"an app":      {"tools/list", "resources/read", `{"uri":"` + app + `"}`},
			"a template":  {"resources/templates/list", "resources/read", `{"uri":"y:1"}`},
			"to complete": {"prompts/list", "completion/complete", `{"ref":{"type":"ref/prompt","name":"search"}}`},
		} {
			t.Run(how+", "+what, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					a, b, other := same(), same(), newFake("other")
					of := func() []compose.Member {
						all := members("a", a, "b", b, "other", other)
						all[0].Prefix, all[1].Prefix = new(""), new("")
						return all
					}
					v := newView(t, of())
					client := open(t, v)
					client.request(2, c.list, "{}")
					client.request(3, c.method, c.params)
					client.take()
					replace(t, v, lose(of()))
					time.Sleep(time.Second)
					client.take()
					b.conn().take()
					client.request(4, c.method, c.params)
					if got := strings.Join(b.conn().take(), "\n"); strings.Contains(got, c.method) {
						t.Errorf("the other member got what was meant for the first: %s", got)
					}
					if got := strings.Join(client.take(), "\n"); !strings.Contains(got, `"error"`) {
						t.Errorf("got %s, want an error", got)
					}
					client.request(5, c.list, "{}")
					client.request(6, c.method, c.params)
					if got := strings.Join(b.conn().take(), "\n"); !strings.Contains(got, c.method) {
						t.Errorf("after a new list: the other member got %q", got)
					}
				})
			})
		}
	}
}

// A request that came with credentials for fewer members than the newest ones uses the others no more than it learns of
// them: names, lists and errors are those of a client without them. A call with the newest credentials passes.
func TestRequestsHaveTheMembersOfTheirOwnCredentials(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, b := full("a"), full("b")
		of := members("secret", a, "b", b)
		of[0].Allow = func(ctx context.Context) bool { return asker.FromContext(ctx).Credentials() == "strong" }
		ctx := asker.NewContext(t.Context(), &asker.Asker{Credentials: func() string { return "strong" }})
		c := dialWith(ctx, t, newView(t, of))
		c.initialize()
		for i, kind := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
			c.request(int64(i+2), kind, "{}")
		}
		c.request(6, "resources/subscribe", `{"uri":"x:a"}`)
		c.take()
		a.conn().take()
		ask := func(credentials, method, params string) string {
			t.Helper()
			m, err := jsonrpc.Parse(jsonrpc.NewRequest("0", method, json.RawMessage(params)))
			ssetest.Must(t, err)
			m.Context, _ = asker.WithRequest(t.Context(), credentials)
			ssetest.Must(t, c.conn.SendRequest(m, 9))
			return strings.Join(c.take(), "\n")
		}
		const unknown, none = `"code":-32602,"message":"unknown `, `"message":"resource not found"`
		for request, want := range map[string]string{
			`tools/call {"name":"secret__t"}`:                                      unknown + `tool \"secret__t\""}`,
			`tools/call {"name":"t"}`:                                              unknown + `tool \"t\""}`,
			`tools/call {"name":"a_tool"}`:                                         unknown + `tool \"a_tool\""}`,
			`prompts/get {"name":"secret__p"}`:                                     unknown + `prompt \"secret__p\""}`,
			`resources/read {"uri":"x:a"}`:                                         none,
			`resources/read {"uri":"ui://a"}`:                                      none,
			`resources/read {"uri":"a:1"}`:                                         none,
			`resources/subscribe {"uri":"x:a"}`:                                    none,
			`resources/unsubscribe {"uri":"x:a"}`:                                  `"result":{}`,
			`completion/complete {"ref":{"type":"ref/prompt","name":"secret__p"}}`: unknown + `prompt \"secret__p\""}`,
			`completion/complete {"ref":{"type":"ref/resource","uri":"a:{id}"}}`:   unknown + `template \"a:{id}\""}`,
			`tasks/get {"taskId":"secret:1"}`:                                      unknown + `task \"secret:1\""}`,
			`tools/list {}`:                                                        `"tools":[{"name":"b__t"`,
			`prompts/list {}`:                                                      `"prompts":[{"name":"b__p"}`,
			`resources/list {}`:                                                    `"resources":[{"uri":"x:b"}`,
			`resources/templates/list {}`:                                          `"resourceTemplates":[{"uriTemplate":"b:{id}"}`,
			`initialize {}`:                                                        `"serverInfo"`,
		} {
			method, params, _ := strings.Cut(request, " ")
			if got := ask("weak", method, params); !strings.Contains(got, want) {
				t.Errorf("%s: got %s, want %s", request, got, want)
			}
		}
		ssetest.Want(t, "what the member got", strings.Join(a.conn().take(), "\n"), "")
		ask("weak", "tools/call", `{"name":"b__t"}`)
		ssetest.WantText(t, "the other member", strings.Join(b.conn().take(), "\n"), `"name":"t"`)
		ask("strong", "tools/call", `{"name":"secret__t"}`)
		a.wantGot(t, "with the newest credentials", `{"id":9,"method":"tools/call","params":{"name":"t"}}`)
	})
}

// The pages of a list that a client has begun to read end with what it may have: a cursor of before is unknown once the
// client may not use a member of the list any more, or rules leave something out. It stays good if only lists change,
// and if a reload leaves the list as it is.
func TestPagesAfterALoss(t *testing.T) {
	for how, c := range map[string]struct {
		lose     func(of []compose.Member) []compose.Member
		changes  bool // the second member lists another tool after that
		survives bool
	}{
		"access":     {lose: func(of []compose.Member) []compose.Member { return forbidden(of, "b") }},
		"its rules":  {lose: func(of []compose.Member) []compose.Member { of[1].Exclude = []string{"u"}; return of }},
		"the member": {lose: func(of []compose.Member) []compose.Member { return of[:1] }},
		"nothing":    {survives: true},
		"no entry":   {lose: func(of []compose.Member) []compose.Member { return of }, survives: true},
		"rules of nothing, and of prompts": {lose: func(of []compose.Member) []compose.Member {
			of[1].Exclude, of[1].Prompts = []string{"none"}, []string{}
			return of
		}, survives: true},
		"a change of the list":              {changes: true, survives: true},
		"a reload and a change of the list": {lose: func(of []compose.Member) []compose.Member { return of }, changes: true},
	} {
		t.Run(how, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				a := newFake()
				a.lists["tools/list"] = `{"tools":[{"name":"t","description":"` + strings.Repeat("x", 1<<20) + `"}]}`
				b := newFake("u", "v")
				v := newView(t, members("a", a, "b", b))
				client := open(t, v)
				client.take()
				client.request(2, "tools/list", "{}")
				cursor := cursorIn(client.take())
				if c.lose != nil {
					replace(t, v, c.lose(members("a", a, "b", b)))
				}
				if c.changes {
					b.set(func(f *fake) { f.lists["tools/list"] = listOf("tools", "name", "u", "w") })
					b.conn().say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				}
				client.take()
				client.request(3, "tools/list", `{"cursor":`+cursor+`}`)
				got := strings.Join(client.take(), "")
				ssetest.Want(t, "the second page: "+got[:min(200, len(got))], strings.Contains(got, `"b__v"`), c.survives)
				ssetest.Want(t, "it is refused", strings.Contains(got, "unknown cursor"), !c.survives)
			})
		})
	}
}

// cursorIn returns the cursor of a page, as JSON.
func cursorIn(got []string) string {
	_, after, _ := strings.Cut(strings.Join(got, ""), `"nextCursor":`)
	return strings.TrimSuffix(after, "}}")
}

// A request with credentials for fewer members reads its own list to the end. Its cursors are no cursors of the whole
// list, and the reverse.
func TestPagesForFewerMembers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		long := newFake()
		long.lists["tools/list"] = `{"tools":[{"name":"t","description":"` + strings.Repeat("x", 1<<20) + `"},{"name":"last"}]}`
		of := members("b", long, "secret", newFake("s"))
		of[1].Allow = func(ctx context.Context) bool { return asker.FromContext(ctx).Credentials() == "strong" }
		ctx := asker.NewContext(t.Context(), &asker.Asker{Credentials: func() string { return "strong" }})
		c := dialWith(ctx, t, newView(t, of))
		c.initialize()
		c.take()
		list := func(credentials, params string) (got []string) {
			m, err := jsonrpc.Parse(jsonrpc.NewRequest("0", "tools/list", json.RawMessage(params)))
			ssetest.Must(t, err)
			m.Context, _ = asker.WithRequest(t.Context(), credentials)
			ssetest.Must(t, c.conn.SendRequest(m, 9))
			return c.take()
		}
		cursors := map[string]string{"strong": cursorIn(list("strong", "{}")), "weak": cursorIn(list("weak", "{}"))}
		for reader, cursor := range cursors {
			for by := range cursors {
				got := strings.Join(list(by, `{"cursor":`+cursor+`}`), "")
				ssetest.Want(t, by+" has the page of the list of "+reader+": "+got[:min(200, len(got))],
					strings.Contains(got, `"b__last"`), by == reader)
			}
		}
	})
}
