package compose_test

import (
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// full returns a member that has one of everything, named after it. Tools have the app ui://NAME.
func full(name string) *fake {
	f := newFake()
	f.says = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"resources":{"subscribe":true},"completions":{},"logging":{}}}`
	f.lists = map[string]string{
		"tools/list":               `{"tools":[{"name":"t","_meta":{"ui":{"resourceUri":"ui://` + name + `"}}},{"name":"` + name + `_tool"},{"name":"hidden"}]}`,
		"prompts/list":             listOf("prompts", "name", "p", name+"_prompt", "hidden"),
		"resources/list":           listOf("resources", "uri", "x:"+name, "x:all", "x:hidden"),
		"resources/templates/list": listOf("resourceTemplates", "uriTemplate", name+":{id}", "all:{id}", "hidden:{id}"),
	}
	return f
}

// Each row of the table of the design finds the right one of three members, by every name that it accepts. What a rule
// leaves out is unknown.
func TestRoutes(t *testing.T) {
	page, err := os.ReadFile("../docs/design/views.md")
	ssetest.Must(t, err)
	_, table, _ := strings.Cut(string(page), "\n### From the client\n")
	table, _, _ = strings.Cut(table, "\n### ")
	rows := map[string]bool{}
	for line := range strings.Lines(table) {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		for _, method := range regexp.MustCompile("`([a-z/A-Z]+)`").FindAllStringSubmatch(first, -1) {
			if line[0] == '|' && !strings.HasPrefix(method[1], "notifications/") {
				rows[method[1]] = true
			}
		}
	}
	type found struct{ params, member, gets string } // gets: what the member gets; empty: the same
	tested := map[string]struct {
		found []found
		lost  []string // params of what is unknown
	}{
		"initialize": {}, "ping": {}, "tools/list": {}, "prompts/list": {}, "resources/list": {}, "resources/templates/list": {},
		"logging/setLevel": {}, "resources/unsubscribe": {},
		"tasks/list": {},
		"tasks/get": {[]found{
			{`{"taskId":"b:t:1"}`, "b", `{"taskId":"t:1"}`}, {`{"taskId":"c:"}`, "c", `{"taskId":""}`},
		}, []string{`{"taskId":"t:1"}`, `{"taskId":"b"}`, `{"taskId":7}`, `{}`}},
		"tasks/result": {[]found{{`{"taskId":"a:t"}`, "a", `{"taskId":"t"}`}}, []string{`{"taskId":"d:t"}`}},
		"tasks/cancel": {[]found{{`{"taskId":"b:t"}`, "b", `{"taskId":"t"}`}}, []string{`{"taskId":"d:t"}`}},
		"tasks/update": {[]found{{`{"taskId":"c:t"}`, "c", `{"taskId":"t"}`}}, []string{`{"taskId":"d:t"}`}},
		"tools/call": {[]found{
			{`{"name":"b__t"}`, "b", `{"name":"t"}`}, {`{"name":"b_tool"}`, "b", ""}, {`{"name":"c__hidden"}`, "c", `{"name":"hidden"}`},
		}, []string{`{"name":"b__hidden"}`, `{"name":"t"}`, `{"name":"d__t"}`, `{"name":""}`}},
		"prompts/get": {[]found{
			{`{"name":"c__p"}`, "c", `{"name":"p"}`}, {`{"name":"a_prompt"}`, "a", ""},
		}, []string{`{"name":"b__hidden"}`, `{"name":"p"}`, `{"name":"b__t"}`}},
		"resources/read": {[]found{
			{`{"uri":"x:b"}`, "b", ""}, {`{"uri":"x:all"}`, "a", ""}, {`{"uri":"ui://c"}`, "c", ""}, {`{"uri":"b:7"}`, "b", ""},
			{`{"uri":"all:7"}`, "a", ""}, {`{"uri":"x:hidden"}`, "a", ""},
		}, []string{`{"uri":"x:none"}`, `{"uri":""}`, `{"uri":"ui://none"}`}},
		"resources/subscribe": {[]found{{`{"uri":"x:c"}`, "c", ""}, {`{"uri":"b:7"}`, "b", ""}}, []string{`{"uri":"x:none"}`}},
		"completion/complete": {[]found{
			{`{"ref":{"type":"ref/prompt","name":"b__p"}}`, "b", `{"ref":{"type":"ref/prompt","name":"p"}}`},
			{`{"ref":{"type":"ref/resource","uri":"c:{id}"}}`, "c", ""}, {`{"ref":{"type":"ref/resource","uri":"all:{id}"}}`, "a", ""},
		}, []string{`{"ref":{"name":"b__hidden"}}`, `{"ref":{"uri":"none:{id}"}}`, `{"ref":{"uri":"x:b","name":"c__p"}}`, `{"ref":{}}`}},
	}
	ssetest.WantLines(t, slices.Sorted(maps.Keys(tested)), slices.Sorted(maps.Keys(rows)))
	inBubble(t, func(t *testing.T) {
		fakes := map[string]*fake{"a": full("a"), "b": full("b"), "c": full("c")}
		list := members("a", fakes["a"], "b", fakes["b"], "c", fakes["c"])
		list[1].Exclude, list[1].Prompts = []string{"hidden"}, []string{"p", "b_*"}
		list[1].Resources = []string{"x:b", "b:*", "ui:*"}
		c := open(t, newView(t, list))
		number := int64(10)
		for method, row := range tested {
			for _, one := range row.found {
				c.take()
				for _, f := range fakes {
					f.conn().take()
				}
				number++
				c.request(number, method, one.params)
				for name, f := range fakes {
					var want []string
					if name == one.member {
						gets := max(one.gets, "")
						if gets == "" {
							gets = one.params
						}
						want = []string{fmt.Sprintf(`{"id":%d,"method":%q,"params":%s}`, number, method, gets)}
					}
					f.wantGot(t, method+" "+one.params+" at "+name, want...)
				}
			}
			for _, params := range row.lost {
				c.take()
				number++
				c.request(number, method, params)
				ssetest.WantText(t, method+" "+params, strings.Join(c.take(), "\n"), fmt.Sprintf(`{"id":%d,"error":{"code":-32`, number))
			}
		}
		c.take()
		c.request(9, "tasks/list", `{}`)
		c.want("tasks/list", `{"id":9,"error":{"code":-32601,"message":"method not found"}}`)
	})
}

// A URI goes to the member that named it: first by the app of a tool, of which the one that was called last counts,
// then by a result that this client got.
func TestURIsThatAreNamed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, b, other := full("a"), full("b"), full("c")
		b.lists["tools/list"] = strings.ReplaceAll(b.lists["tools/list"], "ui://b", "ui://a")
		v := newView(t, members("a", a, "b", b, "c", other))
		c := open(t, v)
		number := int64(1)
		read := func(c *client, uri, want string) {
			t.Helper()
			for _, f := range []*fake{a, b, other} {
				f.conn().take()
			}
			c.take()
			number++
			c.request(number, "resources/read", fmt.Sprintf(`{"uri":%q}`, uri))
			got := ""
			for name, f := range map[string]*fake{"a": a, "b": b, "c": other} {
				if len(f.conn().take()) > 0 {
					got += name
				}
			}
			ssetest.Want(t, uri, got, want)
		}
		call := func(f *fake, method, params, result string) {
			t.Helper()
			number++
			c.request(number, method, params)
			f.conn().say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, number, result))
		}
		read(c, "ui://a", "a")
		call(b, "tools/call", `{"name":"b__t"}`, `{"content":[{"type":"resource_link","uri":"y:1","name":"n"},{"type":"resource","resource":{"uri":"y:2","text":""}}]}`)
		read(c, "ui://a", "b")
		read(c, "y:1", "b")
		read(c, "y:2", "b")
		call(a, "prompts/get", `{"name":"a__p"}`, `{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"y:3","text":""}}},{"content":{"type":"text","text":"\"uri\""}}]}`)
		read(c, "y:3", "a")
		call(other, "resources/read", `{"uri":"x:c"}`, `{"contents":[{"uri":"x:all","text":""},{"uri":"y:1","text":""}]}`)
		read(c, "x:all", "c")
		read(c, "y:1", "c")
		read(c, "y:4", "")
		c.want("unknown", fmt.Sprintf(`{"id":%d,"error":{"code":-32002,"message":"resource not found","data":{"uri":"y:4"}}}`, number))
		for i := range 1100 {
			call(b, "tools/call", `{"name":"b__t"}`, fmt.Sprintf(`{"content":[{"type":"resource_link","uri":"z:%d"}]}`, i))
		}
		read(c, "z:0", "")
		read(c, "z:1099", "b")
	})
	inBubble(t, func(t *testing.T) { // of another client nothing is known
		a := full("a")
		list := members("a", a, "b", full("b"))
		v := newView(t, list)
		c, d := open(t, v), open(t, v)
		c.request(2, "tools/call", `{"name":"a__t"}`)
		a.nth(0).say(`{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"resource_link","uri":"y:1"}]}}`)
		d.take()
		d.request(2, "resources/read", `{"uri":"y:1"}`)
		ssetest.WantText(t, "the other", strings.Join(d.take(), ""), "-32002")
	})
}

// A request by a URI waits for lists that are on their way. Prompts and resources are read when somebody wants them.
func TestListsAreReadWhenTheyAreWanted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, b := full("a"), full("b")
		for _, method := range []string{"prompts/list", "resources/list", "resources/templates/list"} {
			b.silent[method] = true
		}
		c := open(t, newView(t, members("a", a, "b", b)))
		c.take()
		c.request(2, "tools/list", "{}")
		ssetest.Want(t, "tools", len(c.take()), 1)
		ssetest.Want(t, "requests that are held", len(b.conn().held), 0)
		c.request(3, "prompts/list", "{}")
		ssetest.Want(t, "requests that are held", len(b.conn().held), 1)
		c.request(4, "prompts/get", `{"name":"b__p"}`)
		c.request(5, "resources/read", `{"uri":"x:b"}`)
		c.request(6, "resources/read", `{"uri":"x:none"}`)
		c.want("they wait")
		b.conn().take()
		b.conn().answerHeld(b.lists["prompts/list"])
		b.wantGot(t, "prompt", `{"id":4,"method":"prompts/get","params":{"name":"p"}}`)
		c.want("prompts", `{"id":3,"result":`+listOf("prompts", "name", "a__p", "a__a_prompt", "a__hidden", "b__p", "b__b_prompt", "b__hidden")+`}`)
		b.conn().answerHeld(b.lists["resources/list"])
		b.wantGot(t, "resource", `{"id":5,"method":"resources/read","params":{"uri":"x:b"}}`)
		b.conn().answerHeld(b.lists["resources/templates/list"])
		ssetest.WantText(t, "unknown", strings.Join(c.take(), ""), `{"id":6,"error":{"code":-32002`)
		c.request(7, "resources/list", "{}")
		c.request(8, "resources/templates/list", "{}")
		c.want("lists", `{"id":7,"result":`+listOf("resources", "uri", "x:a", "x:all", "x:hidden", "x:b")+`}`,
			`{"id":8,"result":`+listOf("resourceTemplates", "uriTemplate", "a:{id}", "all:{id}", "hidden:{id}", "b:{id}")+`}`)
		b.set(func(f *fake) {
			clear(f.silent)
			f.lists["resources/templates/list"] = listOf("resourceTemplates", "uriTemplate")
		})
		b.conn().say(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`, `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`)
		time.Sleep(time.Second)
		c.want("told", `{"method":"notifications/resources/list_changed"}`)
	})
}

// A URI waits for the lists that may have a better member than the known ones, and for no others.
func TestURIWaitsForABetterMember(t *testing.T) {
	const resources, templates = "resources/list", "resources/templates/list"
	for name, c := range map[string]struct {
		slow   string // the member that does not answer
		method string // the list that it does not answer
		uri    string
		waits  bool
		want   string // the member that gets the request
	}{
		"a template, another member lists it":          {"b", resources, "x:b", true, "b"},
		"a template, an earlier one may have one":      {"a", templates, "b:1", true, "a"},
		"a template, a later one may have one":         {"b", templates, "a:1", false, "a"},
		"a list, an earlier member may list it":        {"a", resources, "x:all", true, "a"},
		"a list, a later member may list it":           {"b", resources, "x:all", false, "a"},
		"a list, a template may match it":              {"a", templates, "x:b", false, "b"},
		"an app, another member may list it":           {"b", resources, "ui://a", false, "a"},
		"a template, the rules of the other forbid it": {"b", resources, "forbidden", false, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				fakes := map[string]*fake{"a": full("a"), "b": full("b")}
				fakes["a"].lists[templates] = listOf("resourceTemplates", "uriTemplate", "{+uri}")
				slow := fakes[c.slow]
				slow.silent[c.method] = true
				list := members("a", fakes["a"], "b", fakes["b"])
				list[1].Resources = []string{"?:*", "ui:*"}
				client := open(t, newView(t, list))
				for _, f := range fakes {
					f.conn().take()
				}
				client.request(2, "resources/read", fmt.Sprintf(`{"uri":%q}`, c.uri))
				got := func() (names string) {
					for name, f := range fakes {
						if len(f.conn().take()) > 0 {
							names += name
						}
					}
					return names
				}
				if c.waits {
					ssetest.Want(t, "before the list is there", got(), "")
					slow.conn().answerHeld(slow.lists[c.method])
				}
				ssetest.Want(t, "read", got(), c.want)
			})
		})
	}
}

// A member that hangs costs requests for others 5 s once: by a URI, and by a name where it has no prefix.
func TestMemberThatHangsCostsOthersOnce(t *testing.T) {
	for name, hangs := range map[string]string{"it answers nothing": "*", "one list": "resources/list"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				a, mute := full("a"), full("mute")
				mute.silent[hangs] = true
				list := members("a", a, "mute", mute)
				none := ""
				list[1].Prefix = &none
				c := open(t, newView(t, list))
				c.take()
				a.conn().take()
				c.request(2, "resources/read", `{"uri":"a:1"}`)
				a.wantGot(t, "the first one waits")
				time.Sleep(5 * time.Second)
				synctest.Wait()
				a.wantGot(t, "in vain", `{"id":2,"method":"resources/read","params":{"uri":"a:1"}}`)
				c.request(3, "resources/read", `{"uri":"a:2"}`)
				a.wantGot(t, "at once", `{"id":3,"method":"resources/read","params":{"uri":"a:2"}}`)
				c.request(4, "resources/read", `{"uri":"y:none"}`)
				c.request(5, "tools/call", `{"name":"none"}`)
				got := c.take()
				ssetest.Want(t, "answers", len(got), 2)
				ssetest.WantText(t, "a URI", got[0], `{"id":4,"error":{"code":-32002`)
				ssetest.WantText(t, "a name", got[1], `{"id":5,"error":{"code":`)
			})
		})
	}
}

// Members get the level with the first request of the client, and a later one at once. A level starts no server.
func TestLevel(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, b, quiet := full("a"), full("b"), newFake("t")
		for _, f := range []*fake{a, b, quiet} {
			f.silent["logging/setLevel"] = true
		}
		c := open(t, newView(t, members("a", a, "b", b, "quiet", quiet)))
		c.take()
		c.request(2, "logging/setLevel", `{"level":"info"}`)
		c.request(3, "logging/setLevel", `{"level":7}`)
		c.want("answers", `{"id":2,"result":{}}`, `{"id":3,"error":{"code":-32602,"message":"params.level must be one string"}}`)
		c.request(4, "tools/call", `{"name":"a__t"}`)
		c.request(5, "tools/call", `{"name":"quiet__t"}`)
		ssetest.Want(t, "held", fmt.Sprint(len(a.conn().held), len(b.conn().held), len(quiet.conn().held)), "1 0 0")
		c.request(6, "logging/setLevel", `{"level":"debug"}`)
		c.request(7, "tools/call", `{"name":"b__t"}`)
		c.request(8, "tools/call", `{"name":"b__t"}`)
		ssetest.Want(t, "held", fmt.Sprint(len(a.conn().held), len(b.conn().held), len(quiet.conn().held)), "2 1 0")
		c.take()
		a.conn().say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"l","data":1}}`,
			`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`)
		c.want("log", `{"method":"notifications/message","params":{"level":"info","logger":"a/l","data":1}}`,
			`{"method":"notifications/message","params":{"level":"info","data":1,"logger":"a"}}`)
	})
}

// A request waits until its member has answered the level of log messages: with a result or an error, by its end, or not
// at all for a second. Requests to other members go on meanwhile.
func TestRequestWaitsForTheLevel(t *testing.T) {
	const get, again = `{"id":3,"method":"prompts/get","params":{"name":"p"}}`, `{"id":6,"method":"tools/call","params":{"name":"t"}}`
	for name, c := range map[string]struct {
		then func(a *fakeConn) // after half a second
		took time.Duration
	}{
		"it answers":   {func(a *fakeConn) { a.answerHeld(`{}`) }, 500 * time.Millisecond},
		"it refuses":   {func(a *fakeConn) { a.refuseHeld(`{"code":-32602,"message":"no"}`) }, 500 * time.Millisecond},
		"it is silent": {func(*fakeConn) {}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				a, b := full("a"), newFake("t")
				a.silent["logging/setLevel"] = true
				client := open(t, newView(t, members("a", a, "b", b)))
				client.request(2, "logging/setLevel", `{"level":"info"}`)
				a.conn().take()
				b.conn().take()
				begin := time.Now()
				client.request(3, "prompts/get", `{"name":"a__p"}`)
				client.request(4, "tools/call", `{"name":"a__t"}`)
				client.request(5, "tools/call", `{"name":"b__t"}`)
				client.take()
				b.wantGot(t, "another member", `{"id":5,"method":"tools/call","params":{"name":"t"}}`)
				a.wantGot(t, "at once")
				client.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}`)
				ssetest.WantText(t, "cancelled", strings.Join(client.take(), ""), `{"id":4,"error":`)
				time.AfterFunc(500*time.Millisecond, func() { c.then(a.newest()) })
				time.Sleep(c.took - time.Nanosecond)
				synctest.Wait()
				a.wantGot(t, "before")
				time.Sleep(time.Until(begin.Add(c.took)))
				synctest.Wait()
				a.wantGot(t, "then", get)
				client.request(6, "tools/call", `{"name":"a__t"}`)
				a.wantGot(t, "the next one", again)
			})
		})
	}
	inBubble(t, func(t *testing.T) { // the connection ends: the client may repeat the request, which waits again
		a := full("a")
		a.silent["logging/setLevel"] = true
		client := open(t, newView(t, members("a", a)))
		client.request(2, "logging/setLevel", `{"level":"info"}`)
		time.Sleep(time.Minute)
		client.request(3, "prompts/get", `{"name":"p"}`)
		client.take()
		a.conn().end(io.EOF)
		ssetest.Want(t, "dials", a.dialled(), 2)
		ssetest.WantText(t, "it is lost", strings.Join(client.take(), ""), `{"id":3,"error":`, `"retryable":true`)
		client.request(6, "tools/call", `{"name":"t"}`)
		a.wantGot(t, "on the new connection", `{"method":"notifications/initialized"}`)
		a.conn().answerHeld(`{}`)
		a.wantGot(t, "when it has the level", again)
	})
}

// A client hears of resources that it subscribes to, at the member that has them, also after that has come back.
func TestSubscriptions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, b := full("a"), full("b")
		c := open(t, newView(t, members("a", a, "b", b)))
		c.request(2, "resources/subscribe", `{"uri":"x:b"}`)
		b.conn().say(`{"jsonrpc":"2.0","id":2,"result":{}}`)
		a.conn().take()
		b.conn().take()
		c.take()
		updated := func(f *fake, uri string) {
			f.conn().say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"}}`)
		}
		updated(a, "x:b")
		updated(b, "x:a")
		updated(b, "x:bb")
		c.want("of others")
		updated(b, "x:b")
		updated(b, "x:b/part")
		c.want("its own", `{"method":"notifications/resources/updated","params":{"uri":"x:b"}}`, `{"method":"notifications/resources/updated","params":{"uri":"x:b/part"}}`)
		time.Sleep(time.Minute)
		b.set(func(f *fake) { f.silent["resources/subscribe"] = true })
		b.conn().end(io.EOF)
		synctest.Wait()
		ssetest.Want(t, "subscribed again", len(b.conn().held), 1)
		c.request(3, "resources/unsubscribe", `{"uri":"x:a"}`)
		c.want("nothing to end", `{"id":3,"result":{}}`)
		b.conn().take()
		c.request(4, "resources/unsubscribe", `{"uri":"x:b"}`)
		b.wantGot(t, "unsubscribe", `{"id":4,"method":"resources/unsubscribe","params":{"uri":"x:b"}}`)
		updated(b, "x:b")
		c.want("no more")
		a.wantGot(t, "nothing")
	})
}

// A subscription counts that its member has accepted. One that is refused, or lost, ends; one that was accepted before
// stays.
func TestSubscriptionsThatAreNotAccepted(t *testing.T) {
	const (
		accepted = `"result":{}`
		refused  = `"error":{"code":-32603,"message":"no"}`
	)
	for name, c := range map[string]struct {
		answers []string // to one request to subscribe each, the last request first
		then    string   // a method that is called before the answers
		lost    bool     // the connection ends with the last request open
		want    int      // the updates that the client gets
	}{
		"accepted":                          {answers: []string{accepted}, want: 1},
		"refused":                           {answers: []string{refused}},
		"refused, and another one accepted": {answers: []string{refused, accepted}, want: 1},
		"accepted, and another one refused": {answers: []string{accepted, refused}, want: 1},
		"both refused":                      {answers: []string{refused, refused}},
		"ended before it is accepted":       {answers: []string{accepted}, then: "resources/unsubscribe"},
		"lost":                              {answers: []string{""}, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := full("b")
				client := open(t, newView(t, members("a", full("a"), "b", b)))
				time.Sleep(time.Minute) // so that a connection that ends is followed by another one at once
				for i := range c.answers {
					client.request(int64(i+2), "resources/subscribe", `{"uri":"x:b"}`)
				}
				if c.then != "" {
					client.request(9, c.then, `{"uri":"x:b"}`)
				}
				for i, answer := range c.answers {
					if answer != "" {
						b.conn().say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, len(c.answers)+1-i, answer))
					}
				}
				if c.lost {
					b.conn().end(io.EOF)
					ssetest.Want(t, "dials", b.dialled(), 2)
					ssetest.Want(t, "subscribed again", len(b.conn().take()), 1) // initialized alone
				}
				client.take()
				b.conn().say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:b"}}`)
				ssetest.Want(t, "updates", len(client.take()), c.want)
			})
		})
	}
}

// A client has a bound of subscriptions.
func TestTooManySubscriptions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := open(t, newView(t, members("a", full("a"), "b", full("b"))))
		c.take()
		for i := range 1024 {
			c.request(int64(i+2), "resources/subscribe", fmt.Sprintf(`{"uri":"a:%d"}`, i))
		}
		c.take()
		c.request(2000, "resources/subscribe", `{"uri":"a:0"}`)
		c.want("again")
		c.request(2001, "resources/subscribe", `{"uri":"a:more"}`)
		ssetest.WantText(t, "one more", strings.Join(c.take(), ""), `"too_many_subscriptions"`)
	})
}

// A view of one passes all URIs on, unless it has a rule for them.
func TestURIsOfAViewOfOne(t *testing.T) {
	for rule, want := range map[string]int{"": 1, "x:*": 1, "z:*": 0} {
		inBubble(t, func(t *testing.T) {
			a := full("a")
			list := []compose.Member{{Name: "a", Upstream: a}}
			if rule != "" {
				list[0].Resources = []string{rule}
			}
			c := open(t, newView(t, list))
			a.conn().take()
			c.request(2, "resources/read", `{"uri":"x:all"}`)
			ssetest.Want(t, rule, len(a.conn().take()), want)
			c.request(3, "resources/read", `{"uri":"y:not-listed"}`)
			ssetest.Want(t, rule+" not listed", len(a.conn().take()), map[bool]int{true: 1}[rule == ""])
		})
	}
}

// Rules hold in a view of one whatever the message: a request without an id is dropped, and a request to listen to
// resources is refused. What has no row is passed on, as it is where no rule chooses among resources.
func TestRulesOfAViewOfOne(t *testing.T) {
	const (
		call      = `"method":"tools/call","params":{"name":"delete_all"}}`
		subscribe = `"method":"resources/subscribe","params":{"uri":"x:secret"}}`
		listen    = `"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["x:secret"]}}}`
		other     = `"method":"notifications/other"}`
	)
	for _, restricted := range []bool{true, false} {
		inBubble(t, func(t *testing.T) {
			a := full("a")
			list := members("a", a)
			list[0].Exclude = []string{"delete_*"}
			if restricted {
				list[0].Resources = []string{}
			}
			c := open(t, newView(t, list))
			a.conn().take()
			c.take()
			for _, msg := range []string{call, subscribe, listen, other} {
				c.send(`{"jsonrpc":"2.0",` + msg)
			}
			a.wantGot(t, "notifications", `{`+other)
			c.request(7, "subscriptions/listen", `{"notifications":{"resourceSubscriptions":["x:secret"]}}`)
			if restricted {
				a.wantGot(t, "listen")
				c.want("listen", `{"id":7,"error":{"code":-32601,"message":"method not found"}}`)
			} else {
				a.wantGot(t, "listen", `{"id":7,`+listen)
			}
		})
	}
}

// Results that name very long URIs cost a session little: those are not kept, and of long ones the oldest go.
func TestLongURIsThatAreNamed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newFake("t")
		c := open(t, newView(t, members("a", a, "b", newFake("t"))))
		long := func(i, bytes int) string { return fmt.Sprintf("z:%04d", i) + strings.Repeat("u", bytes-6) }
		name := func(number int64, uri string) {
			c.request(number, "tools/call", `{"name":"a__t"}`)
			a.conn().say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"resource_link","uri":%q}]}}`, number, uri))
		}
		for i := range 33 { // 256 KiB, and one more
			name(int64(10+i), long(i, 8<<10))
		}
		name(100, long(40, 8<<10+1))
		for i, uri := range map[int]string{0: long(0, 8<<10), 1: long(1, 8<<10), 32: long(32, 8<<10), 40: long(40, 8<<10+1)} {
			a.conn().take()
			c.request(int64(200+i), "resources/read", fmt.Sprintf(`{"uri":%q}`, uri))
			ssetest.Want(t, fmt.Sprint("kept ", i), len(a.conn().take()) == 1, i == 1 || i == 32)
		}
	})
}

// A member gets no request for what it has not declared, although the view declares it for another one.
func TestRequestsThatAMemberHasNotDeclared(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := full("a")
		a.says = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"resources":{}}}`
		c := open(t, newView(t, members("a", a, "b", full("b"))))
		c.take()
		a.conn().take()
		c.request(3, "resources/subscribe", `{"uri":"x:a"}`)
		c.request(4, "completion/complete", `{"ref":{"type":"ref/prompt","name":"a__p"},"argument":{}}`)
		c.request(5, "resources/unsubscribe", `{"uri":"x:a"}`)
		a.wantGot(t, "the member")
		c.want("the client", `{"id":3,"error":{"code":-32601,"message":"a does not know subscriptions"}}`,
			`{"id":4,"result":{"completion":{"values":[]}}}`, `{"id":5,"result":{}}`)
	})
}

// Members that the client has used are told that its roots have changed, each on its connection of now: no other one has
// asked for them, and a new connection has not yet.
func TestRootsThatChange(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const changed = `{"method":"notifications/roots/list_changed"}`
		fakes := map[string]*fake{"a": newFake("t"), "b": newFake("t"), "c": newFake("t")}
		c := open(t, newView(t, members("a", fakes["a"], "b", fakes["b"], "c", fakes["c"])))
		wantTold := func(what string, told ...string) {
			t.Helper()
			for _, f := range fakes {
				f.conn().take()
			}
			c.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
			for name, f := range fakes {
				var want []string
				if slices.Contains(told, name) {
					want = []string{changed}
				}
				f.wantGot(t, what+", at "+name, want...)
			}
		}
		use := func(number int64, name string) {
			t.Helper()
			c.request(number, "tools/call", `{"name":"`+name+`__t"}`)
			fakes[name].conn().say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, number))
		}
		wantTold("before a call")
		use(2, "a")
		use(3, "b")
		wantTold("after calls", "a", "b")
		time.Sleep(6 * time.Second) // a connection that was open for so long is opened again at once
		fakes["a"].conn().end(io.EOF)
		ssetest.Want(t, "connections", fakes["a"].dialled(), 2)
		wantTold("over a new connection", "b")
		use(4, "a")
		wantTold("after a call over it", "a", "b")
	})
}

// Errors have the beginning alone of what a client calls a tool, a prompt, a resource, a template or a task.
func TestErrorsClipNames(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, searches := range []bool{false, true} {
		inBubble(t, func(t *testing.T) {
			v, err := compose.New(members("a", full("a"), "b", full("b")), compose.Options{Name: "team", Search: searches})
			ssetest.Must(t, err)
			c := open(t, v)
			c.take()
			for _, request := range []string{
				`tools/call {"name":"LONG"}`, `prompts/get {"name":"LONG"}`, `resources/read {"uri":"LONG"}`,
				`resources/subscribe {"uri":"LONG"}`, `completion/complete {"ref":{"type":"ref/prompt","name":"LONG"}}`,
				`completion/complete {"ref":{"type":"ref/resource","uri":"LONG"}}`, `tasks/get {"taskId":"LONG"}`,
				`tools/call {"name":"call_tool","arguments":{"name":"LONG"}}`,
				`tools/call {"name":"find_tools","arguments":{"names":["LONG"]}}`,
			} {
				method, params, _ := strings.Cut(request, " ")
				c.request(9, method, strings.ReplaceAll(params, "LONG", long))
				got := strings.Join(c.take(), "")
				if !strings.Contains(got, `"id":9,`) || len(got) > 1<<10 {
					t.Errorf("%s: got %d bytes: %s", request, len(got), got[:min(len(got), 1<<10)])
				}
			}
		})
	}
}

// A name goes to no other member while the one that may own it by its prefix has no list: not as a final name of that
// other one, and not as its own.
func TestNameOfAMemberWithoutAList(t *testing.T) {
	for _, prefix := range []string{"", "b__"} {
		inBubble(t, func(t *testing.T) {
			a, b := newFake("one"), newFake("a__one")
			a.silent["tools/list"] = true
			of := members("a", a, "b", b)
			of[1].Prefix = &prefix
			c := open(t, newView(t, of))
			c.request(2, "tools/call", `{"name":"a__one"}`)
			time.Sleep(time.Minute)
			ssetest.Want(t, fmt.Sprintf("with the prefix %q, calls at b", prefix), b.asked("tools/call"), 0)
			ssetest.WantText(t, "the error", strings.Join(c.take(), ""), "a, a server of this view")
		})
	}
}
