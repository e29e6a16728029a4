package compose_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// withList returns a member that lists these tools, each as its entry of the list.
func withList(entries ...string) *fake {
	f := newFake()
	f.lists["tools/list"] = `{"tools":[` + strings.Join(entries, ",") + `]}`
	return f
}

// tracker and notes are two members of the views in these tests.
func tracker() *fake {
	return withList(
		`{"name":"list_issues","description":"Lists the issues of a repository. There are pages.","inputSchema":{"type":"object","properties":{"repo":{"type":"string"}}},"annotations":{"readOnlyHint":true},"icons":[{"src":"data:x"}],"_meta":{"ui":{"resourceUri":"ui://issues"}}}`,
		`{"name":"delete_issue","description":"Deletes an issue","inputSchema":{"type":"object"}}`,
		`{"name":"secret_issue","annotations":{"readOnlyHint":true}}`,
	)
}

func notes() *fake {
	return withList(`{"name":"write_note","description":"Writes a note","annotations":{"readOnlyHint":false}}`,
		`{"name":"call_tool","description":"Rings"}`)
}

// searching returns a view of a tracker and of notes whose tools are found.
func searching(t *testing.T, tracker, notes *fake) *compose.View {
	t.Helper()
	of := members("tracker", tracker, "notes", notes)
	of[0].Exclude = []string{"secret_*"}
	of[1].Prefix = new("")
	v, err := compose.New(of, compose.Options{Name: "team", Search: true})
	ssetest.Must(t, err)
	return v
}

// said returns the text of the only answer that a client has got since the last call.
func (c *client) said(number int64) string {
	c.t.Helper()
	got := c.take()
	if len(got) != 1 || !strings.HasPrefix(got[0], fmt.Sprintf(`{"id":%d,"result":{`, number)) {
		c.t.Fatalf("got %q", got)
	}
	var answer struct {
		Result struct {
			Content []struct{ Text string }
			IsError bool
		}
	}
	ssetest.Must(c.t, json.Unmarshal([]byte(got[0]), &answer))
	text := answer.Result.Content[0].Text
	if answer.Result.IsError {
		return "error: " + text
	}
	return text
}

func TestSearchListsThreeTools(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := open(t, searching(t, tracker(), notes()))
		ssetest.WantText(t, "initialize", strings.Join(c.take(), "\n"), `"tools":{"listChanged":true}`,
			`"instructions":"The tools of this server are not listed. find_tools finds them`)
		c.request(2, "tools/list", "{}")
		got := c.take()
		var answer struct {
			Result struct {
				Tools []struct {
					Name, Description string
					InputSchema       struct{ Type string }
					Annotations       struct{ ReadOnlyHint, DestructiveHint bool }
				}
				NextCursor *string
			}
		}
		ssetest.Must(t, json.Unmarshal([]byte(got[0]), &answer))
		var lines []string
		for _, tool := range answer.Result.Tools {
			lines = append(lines, fmt.Sprint(tool.Name, " ", tool.InputSchema.Type, " ", tool.Annotations.ReadOnlyHint, " ",
				tool.Annotations.DestructiveHint))
		}
		ssetest.Want(t, "tools", strings.Join(lines, "\n"), "find_tools object true false\nread_tool object true false\ncall_tool object false true")
		ssetest.WantText(t, "description", answer.Result.Tools[0].Description, "There are 4: of tracker (2), notes (2).")
		c.request(3, "tools/list", `{"cursor":"1.1"}`)
		ssetest.WantText(t, "a cursor", strings.Join(c.take(), "\n"), `"code":-32602`)
	})
}

func TestFindTools(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := open(t, searching(t, tracker(), notes()))
		c.take()
		for n, tc := range []struct{ arguments, want string }{
			{`{"query":"list all issues"}`, `{"tools":[{"name":"tracker__list_issues","description":"Lists the issues of a repository.","readOnly":true},{"name":"tracker__delete_issue","description":"Deletes an issue","readOnly":false}],"next":"Ask for what a tool takes: find_tools with names. Then call it with read_tool if it is readOnly, else with call_tool."}`},
			{`{"query":"weather"}`, `{"next":"Nothing is found. Try other words: a verb, such as list or create, and what it is about."}`},
			{`{"names":["tracker__list_issues"]}`, `{"schemas":[{"name":"tracker__list_issues","description":"Lists the issues of a repository. There are pages.","inputSchema":{"type":"object","properties":{"repo":{"type":"string"}}},"annotations":{"readOnlyHint":true}}],"next":"Call a tool with call_tool, or with read_tool if its readOnlyHint is true."}`},
			{`{"names":"list_issues","query":""}`, `{"schemas":[{"name":"tracker__list_issues"`}, // the server's own name, and a text for a list
			{`{"names":["call_tool"]}`, `{"schemas":[{"name":"call_tool","description":"Rings"}]`},
			{`{"names":["tracker__secret_issue","secret_issue","x"]}`, `{"unknown":["tracker__secret_issue","secret_issue","x"],"next":"Nothing`},
			{`{"names":["write_note"],"query":"issue"}`, `{"tools":[{"name":"tracker__`},
			{`{}`, `error: write what you want to do as "query", or names of tools as "names"`},
			{`null`, `error: write what`},
			{`{"query":" "}`, `error: write what`},
			{`{"query":7}`, `error: "query" must be a text, and "names" a list of texts`},
			{`{"names":[7]}`, `error: "query" must`},
			{`{"names":["` + strings.Repeat(`x","`, 20) + `x"]}`, `error: ask for the schemas of 20 tools at most`},
			{`{"query":"issue"},"Arguments":{"query":"note"}`, `error: "query" must`},
		} {
			number := int64(n + 2)
			c.request(number, "tools/call", `{"name":"find_tools","arguments":`+tc.arguments+`}`)
			if text := c.said(number); !strings.HasPrefix(text, tc.want) {
				t.Errorf("%s: got %s, want %s", tc.arguments, text, tc.want)
			}
		}
		c.request(99, "tools/call", `{"name":"find_tools"}`)
		ssetest.WantText(t, "without arguments", c.said(99), "error: write what")
	})
}

// A call by the view's tools becomes the call of the named one, with all else that the request has, and the answer
// stays as it is.
func TestCallsByTheToolsOfAView(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		tracker, notes := tracker(), notes()
		c := open(t, searching(t, tracker, notes))
		c.request(2, "tools/list", "{}")
		c.take()
		tracker.conn().take()
		notes.conn().take()
		for n, tc := range []struct {
			of           *fake
			params, want string
		}{
			{tracker, `{"_meta":{"progressToken":"p"},"name":"read_tool","arguments":{"name":"tracker__list_issues","arguments":{"repo":"a"}},"task":{"ttl":1}}`,
				`{"_meta":{"progressToken":%d},"name":"list_issues","arguments":{"repo":"a"},"task":{"ttl":1}}`},
			{tracker, `{"name":"call_tool","arguments":{"arguments":{ "name" : "x" },"name":"tracker__delete_issue"}}`, `{"name":"delete_issue","arguments":{"name":"x"}}`},
			{tracker, `{"arguments":{"name":"tracker__delete_issue"},"name":"call_tool"}`, `{"arguments":{},"name":"delete_issue"}`},
			{tracker, `{"arguments":{"name":"tracker__delete_issue","arguments":null},"name":"call_tool"}`, `{"arguments":{},"name":"delete_issue"}`},
			{tracker, `{"name":"call_tool","arguments":{"name":"delete_issue","arguments":"{\"a\": 1}"}}`, `{"name":"delete_issue","arguments":{"a":1}}`}, // as some models write it
			{notes, `{"name":"call_tool","arguments":{"name":"call_tool","arguments":{"name":"find_tools"}}}`, `{"name":"call_tool","arguments":{"name":"find_tools"}}`},
			{tracker, `{"name":"tracker__list_issues","arguments":{"repo":"a"}}`, `{"name":"list_issues","arguments":{"repo":"a"}}`}, // an app knows the name
			{tracker, `{"name":"list_issues"}`, `{"name":"list_issues"}`},
		} {
			number := int64(n + 3)
			c.request(number, "tools/call", tc.params)
			want := strings.ReplaceAll(tc.want, "%d", fmt.Sprint(number))
			tc.of.wantGot(t, tc.params, fmt.Sprintf(`{"id":%d,"method":"tools/call","params":%s}`, number, want))
		}
		tracker.conn().sayFor("3", `{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"Sure?"}}`)
		tracker.conn().say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":1}}`,
			`{"jsonrpc":"2.0","id":4, "error":{"code":-1,"message":"no"}}`, `{"jsonrpc":"2.0","id":3, "result":{"content":[{"type":"text","text":"x"}],"structuredContent":{}}}`)
		got := c.take()
		ssetest.WantText(t, "question", got[0], "for 3: ", `"message":"tracker: Sure?"`)
		ssetest.Want(t, "answers", strings.Join(got[1:], "\n"), strings.Join([]string{
			`{"method":"notifications/progress","params":{"progressToken":3,"progress":1}}`,
			`{"id":4, "error":{"code":-1,"message":"no"}}`, `{"id":3, "result":{"content":[{"type":"text","text":"x"}],"structuredContent":{}}}`}, "\n"))
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
		tracker.wantGot(t, "cancelled", `{"method":"notifications/cancelled","params":{"requestId":5}}`)
	})
}

// A call of a tool that cannot be called gets the error of an unknown tool, which names others.
func TestRefusedCallsOfASearch(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		tracker, notes := tracker(), notes()
		c := open(t, searching(t, tracker, notes))
		c.request(2, "tools/list", "{}")
		c.take()
		tracker.conn().take()
		for params, want := range map[string]string{
			`{"name":"call_tool","arguments":{"name":"tracker__secret_issue"}}`:                    `"code":-32602,"message":"unknown tool \"tracker__secret_issue\": there are tracker__delete_issue, tracker__list_issues, and what find_tools finds"`,
			`{"name":"read_tool","arguments":{"name":"secret_issue"}}`:                             `"code":-32602,"message":"unknown tool \"secret_issue\": there are`,
			`{"name":"tracker__secret_issue"}`:                                                     `"code":-32602,"message":"unknown tool \"tracker__secret_issue\": there are`,
			`{"name":"call_tool","arguments":{"name":"zzz"}}`:                                      `"code":-32602,"message":"unknown tool \"zzz\": look for tools with find_tools"`,
			`{"name":"call_tool","arguments":{"name":"find_tools"}}`:                               `"code":-32602,"message":"unknown tool \"find_tools\"`,
			`{"name":"read_tool","arguments":{"name":"tracker__delete_issue"}}`:                    `"code":-32602,"message":"read_tool takes tools alone that say that they only read: call this one with call_tool"`,
			`{"name":"read_tool","arguments":{"name":"write_note"}}`:                               `"code":-32602,"message":"read_tool takes`,
			`{"name":"call_tool"}`:                                                                 `"code":-32602,"message":"params.arguments.name must be a string`,
			`{"name":"call_tool","arguments":{"name":7}}`:                                          `"code":-32602`,
			`{"name":"call_tool","arguments":{"name":"write_note","arguments":[]}}`:                `"code":-32602,"message":"params.arguments.arguments must be an object"`,
			`{"name":"call_tool","arguments":{"name":"write_note","arguments":"{\"a\""}}`:          `"code":-32602,"message":"params.arguments.arguments must be an object"`,
			`{"name":"call_tool","arguments":{"name":"write_note","name":"x"}}`:                    `"code":-32600`,
			`{"name":"call_tool","arguments":{"name":"write_note"},"Arguments":{"name":"x"}}`:      `"code":-32600`,
			`{"name":"call_tool","name":"find_tools","arguments":{"name":"tracker__list_issues"}}`: `"code":-32600`,
		} {
			c.request(3, "tools/call", params)
			ssetest.WantText(t, params, strings.Join(c.take(), "\n"), want)
		}
		tracker.wantGot(t, "nothing")
	})
}

// A question waits for the lists that are on their way, as a list does, and names the servers of which nothing is known.
func TestFindWaits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		slow, dead := tracker(), newFake()
		slow.silent["tools/list"], dead.refuse = true, errors.New("it is dead")
		c := open(t, searching(t, slow, dead))
		c.take()
		c.request(2, "tools/call", `{"name":"find_tools","arguments":{"query":"issues"}}`)
		c.request(3, "tools/call", `{"name":"read_tool","arguments":{"name":"tracker__list_issues"}}`)
		c.want("it waits")
		time.Sleep(time.Second)
		slow.conn().take()
		slow.conn().answerHeld(slow.lists["tools/list"])
		ssetest.WantText(t, "found", c.said(2), `"name":"tracker__list_issues"`, `"serversNotYetKnown":["notes"]`)
		slow.wantGot(t, "the call", `{"id":3,"method":"tools/call","params":{"name":"list_issues","arguments":{}}}`)

		never := newFake()
		never.silent["tools/list"] = true
		d := open(t, searching(t, tracker(), never))
		d.take()
		d.request(2, "tools/call", `{"name":"find_tools","arguments":{"query":"issues"}}`)
		d.want("it waits")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		ssetest.WantText(t, "found without the late one", d.said(2), `"name":"tracker__list_issues"`, `"serversNotYetKnown":["notes"]`)
		d.request(3, "tools/call", `{"name":"find_tools","arguments":{"query":"issues"}}`)
		ssetest.WantText(t, "the next one does not wait", d.said(3), `"name":"tracker__list_issues"`)
	})
}

// A client is told of another list if what the three tools say has changed, and when the search is switched on or off.
func TestSearchTellsOfChanges(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		tracker, notes := tracker(), notes()
		v := searching(t, tracker, notes)
		c := open(t, v)
		c.request(2, "tools/list", "{}")
		c.take()
		change := func(entry string) {
			notes.set(func(f *fake) { f.lists["tools/list"] = `{"tools":[` + entry + `]}` })
			notes.conn().say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			time.Sleep(2 * time.Second)
			synctest.Wait()
		}
		told := `{"method":"notifications/tools/list_changed"}`
		change(`{"name":"write_note"},{"name":"read_note"}`)
		c.want("as many tools")
		change(`{"name":"write_note"}`)
		c.want("one tool fewer", told)
		c.request(3, "tools/call", `{"name":"find_tools","arguments":{"query":"read note"}}`)
		ssetest.WantText(t, "found in the newest list", c.said(3), `{"tools":[{"name":"write_note","readOnly":false}`)

		of := members("tracker", tracker, "notes", notes)
		ssetest.Must(t, v.Replace(of, compose.Options{Name: "team"}))
		time.Sleep(time.Second)
		synctest.Wait()
		c.want("switched off", told)
		c.request(4, "tools/call", `{"name":"find_tools","arguments":{"query":"read note"}}`)
		ssetest.WantText(t, "no such tool", strings.Join(c.take(), "\n"), `unknown tool \"find_tools\"`)
		c.request(5, "tools/list", `{}`)
		ssetest.WantText(t, "all tools", strings.Join(c.take(), "\n"), `"name":"tracker__delete_issue"`)
		ssetest.Must(t, v.Replace(of, compose.Options{Name: "team", Search: true}))
		time.Sleep(time.Second)
		synctest.Wait()
		c.want("switched on", told)
	})
}

// A name leads to the tool that the client has found under it, also when a server that comes first has it later.
func TestFoundNamesKeepTheirTools(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		first, second := newFake(), withList(`{"name":"note","description":"Of the second"}`)
		of := members("first", first, "second", second)
		of[0].Prefix, of[1].Prefix = new(""), new("")
		v, err := compose.New(of, compose.Options{Name: "team", Search: true})
		ssetest.Must(t, err)
		c := open(t, v)
		c.take()
		ask := func(number int64) string {
			c.request(number, "tools/call", `{"name":"find_tools","arguments":{"query":"note"}}`)
			return c.said(number)
		}
		ssetest.WantText(t, "found", ask(2), "Of the second")
		first.set(func(f *fake) { f.lists["tools/list"] = `{"tools":[{"name":"note","description":"Of the first"}]}` })
		first.conn().say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		time.Sleep(time.Second)
		synctest.Wait()
		second.conn().take()
		c.request(3, "tools/call", `{"name":"call_tool","arguments":{"name":"note"}}`)
		second.wantGot(t, "it stays", `{"id":3,"method":"tools/call","params":{"name":"note","arguments":{}}}`)
		c.take()
		ssetest.WantText(t, "found again", ask(4), "Of the first")
		first.conn().take()
		c.request(5, "tools/call", `{"name":"call_tool","arguments":{"name":"note"}}`)
		first.wantGot(t, "the newest", `{"id":5,"method":"tools/call","params":{"name":"note","arguments":{}}}`)
	})
}

// A client that narrows its tools narrows what can be found and called, not the three tools.
func TestSearchAmongFewerTools(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		tracker, notes := tracker(), notes()
		v := searching(t, tracker, notes)
		allows := func(name string) bool { return strings.Contains(name, "list_") || name == "write_note" }
		c := &client{t: t}
		conn, err := v.Dial(asker.NewContext(t.Context(), &asker.Asker{Allows: allows}))
		ssetest.Must(t, err)
		c.listen(conn.(jsonrpc.Relay))
		c.initialize()
		c.take()
		c.request(2, "tools/list", "{}")
		ssetest.WantText(t, "list", strings.Join(c.take(), "\n"), `"name":"find_tools"`, `"name":"call_tool"`, "There are 2: of tracker (1), notes (1).")
		c.request(3, "tools/call", `{"name":"find_tools","arguments":{"query":"issue","names":["tracker__delete_issue","delete_issue","call_tool"]}}`)
		text := c.said(3)
		ssetest.WantText(t, "found", text, `{"tools":[{"name":"tracker__list_issues"`, `"unknown":["tracker__delete_issue","delete_issue","call_tool"]`)
		if strings.Contains(text, `"name":"tracker__delete_issue"`) {
			t.Error("delete_issue is found")
		}
		tracker.conn().take()
		for _, params := range []string{`{"name":"call_tool","arguments":{"name":"tracker__delete_issue"}}`, `{"name":"tracker__delete_issue"}`,
			`{"name":"delete_issue"}`, `{"name":"call_tool","arguments":{"name":"delete_issue"}}`} {
			c.request(4, "tools/call", params)
			got := strings.Join(c.take(), "\n")
			ssetest.WantText(t, params, got, "unknown tool")
			if strings.Contains(got, "are tracker__delete_issue") || strings.Contains(got, ", tracker__delete_issue") {
				t.Errorf("%s: it is named: %s", params, got)
			}
		}
		tracker.wantGot(t, "nothing")
		c.request(5, "tools/call", `{"name":"read_tool","arguments":{"name":"tracker__list_issues"}}`)
		tracker.wantGot(t, "allowed", `{"id":5,"method":"tools/call","params":{"name":"list_issues","arguments":{}}}`)
	})
}

// Tools of a member that the client may not use are neither counted nor found nor called.
func TestSearchWithoutAMember(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		of := members("tracker", tracker(), "notes", notes())
		of[0].Allow = func(context.Context) bool { return false }
		v, err := compose.New(of, compose.Options{Name: "team", Search: true})
		ssetest.Must(t, err)
		c := open(t, v)
		c.take()
		c.request(2, "tools/list", "{}")
		ssetest.WantText(t, "list", strings.Join(c.take(), "\n"), "There are 2: of notes (2).")
		c.request(3, "tools/call", `{"name":"find_tools","arguments":{"query":"issue","names":["tracker__list_issues"]}}`)
		ssetest.Want(t, "found", c.said(3), `{"unknown":["tracker__list_issues"],"next":"Nothing is found. Try other words: a verb, such as list or create, and what it is about."}`)
		c.request(4, "tools/call", `{"name":"call_tool","arguments":{"name":"tracker__list_issues"}}`)
		ssetest.Want(t, "called", strings.Join(c.take(), "\n"), `{"id":4,"error":{"code":-32602,"message":"unknown tool \"tracker__list_issues\": look for tools with find_tools"}}`)
	})
}

// The hints of a call come from the newest list, and tools that run as tasks make the view's tools run as such.
func TestSearchReadsHints(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := withList(`{"name":"t","annotations":{"readOnlyHint":true},"execution":{"taskSupport":"optional"}}`)
		v, err := compose.New(members("f", f), compose.Options{Name: "team", Search: true})
		ssetest.Must(t, err)
		c := open(t, v)
		c.take()
		c.request(2, "tools/list", "{}")
		ssetest.WantText(t, "list", strings.Join(c.take(), "\n"), `"execution":{"taskSupport":"optional"}`)
		f.set(func(f *fake) { f.lists["tools/list"] = `{"tools":[{"name":"t"}]}` })
		f.conn().say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		time.Sleep(time.Second)
		synctest.Wait()
		c.take()
		c.request(3, "tools/call", `{"name":"read_tool","arguments":{"name":"t"}}`)
		ssetest.WantText(t, "no hint any more", strings.Join(c.take(), "\n"), "call this one with call_tool")
	})
}

func TestSearchOptions(t *testing.T) {
	_, err := compose.New(members("f", newFake()), compose.Options{For: "trae", Search: true})
	ssetest.WantText(t, "for", fmt.Sprint(err), "for and search exclude each other")
	v, err := compose.New(members("f", newFake()), compose.Options{Search: true})
	ssetest.Must(t, err)
	ssetest.Want(t, "Searches", fmt.Sprint(v.Searches()), "true")
	for params, want := range map[string]string{
		`{"name":"call_tool","arguments":{"name":"x"}}`:            "x",
		`{"name":"read_tool","arguments":{"name":"x"}}`:            "x",
		`{"name":"find_tools","arguments":{"name":"x"}}`:           "find_tools",
		`{"name":"y","arguments":{"name":"x"}}`:                    "y",
		`{"name":"call_tool","arguments":{"name":"x","Name":"y"}}`: "",
		`{"name":"call_tool"}`:                                     "",
	} {
		m, err := jsonrpc.Parse(jsonrpc.NewRequest("1", "tools/call", json.RawMessage(params)))
		ssetest.Must(t, err)
		ssetest.Want(t, params, v.Called(m), want)
	}
}

func FuzzInnerCall(f *testing.F) {
	for _, params := range []string{
		`{"name":"call_tool","arguments":{"name":"tracker__delete_issue","arguments":{"a":[1]}}}`,
		`{"arguments":{"arguments":"{\"a\":1}","name":"write_note"},"name":"read_tool","_meta":{"progressToken":1}}`,
		`{"name":"find_tools","arguments":{"query":"issue","names":["x"]}}`,
	} {
		f.Add(params)
	}
	f.Fuzz(func(t *testing.T, params string) {
		if _, err := jsonrpc.Parse(jsonrpc.NewRequest("1", "tools/call", json.RawMessage(params))); err != nil {
			t.Skip()
		}
		inBubble(t, func(t *testing.T) {
			tracker, notes := tracker(), notes()
			c := open(t, searching(t, tracker, notes))
			c.request(2, "tools/list", "{}")
			c.take()
			_, _ = tracker.conn().take(), notes.conn().take()
			c.request(3, "tools/call", params)
			if answers, calls := len(c.take()), len(tracker.conn().take())+len(notes.conn().take()); answers+calls != 1 {
				t.Errorf("%d answers and %d calls", answers, calls)
			}
		})
	})
}

// The three tools, and what finding and calling one tool adds, are a small part of the lists of five real servers.
func TestSizeOfTheContext(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var pairs []any
		for _, server := range []string{"everything", "filesystem", "github", "memory", "notion"} {
			list, err := os.ReadFile("../internal/toolsearch/testdata/lists/" + server + ".json")
			ssetest.Must(t, err)
			f := newFake()
			f.lists["tools/list"] = `{"tools":` + string(rawjson.Compact(list)) + `}`
			pairs = append(pairs, server, f)
		}
		size := func(opts compose.Options, params string) int {
			v, err := compose.New(members(pairs...), opts)
			ssetest.Must(t, err)
			c := open(t, v)
			c.take()
			method := "tools/call"
			if params == "{}" {
				method = "tools/list"
			}
			c.request(2, method, params)
			return utf8.RuneCountInString(strings.TrimSuffix(strings.TrimPrefix(strings.Join(c.take(), ""), `{"id":2,"result":`), "}"))
		}
		listed, searched := size(compose.Options{}, "{}"), size(compose.Options{Search: true}, "{}")
		found := size(compose.Options{Search: true}, `{"name":"find_tools","arguments":{"query":"close a bug report"}}`)
		schema := size(compose.Options{Search: true}, `{"name":"find_tools","arguments":{"names":["github__update_issue"]}}`)
		t.Logf("%d characters listed, %d with search; %d of a question, %d of a schema", listed, searched, found, schema)
		if searched+found+schema > listed/10 {
			t.Errorf("%d characters to find and call a tool, of %d", searched+found+schema, listed)
		}
	})
}

// Names are compared with the globs of a client, and the index is asked, while the session is free for other messages:
// there may be thousands of tools.
func TestASearchHoldsUpNothing(t *testing.T) {
	for _, request := range []string{
		`tools/list {}`, `tools/call {"name":"find_tools","arguments":{"query":"issue"}}`,
		`tools/call {"name":"find_tools","arguments":{"names":["write_note"]}}`, `tools/call {"name":"issues"}`,
	} {
		t.Run(request, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var c *client
				asked := 0
				ctx := asker.NewContext(t.Context(), &asker.Asker{Allows: func(string) bool {
					asked++
					answered := make(chan struct{})
					go func() {
						defer close(answered)
						c.request(int64(100+asked), "ping", "{}")
					}()
					<-answered
					return true
				}})
				c = dialWith(ctx, t, searching(t, tracker(), notes()))
				c.initialize()
				c.take()
				method, params, _ := strings.Cut(request, " ")
				c.request(2, method, params)
				if got := strings.Join(c.take(), "\n"); asked == 0 || !strings.Contains(got, `"id":2,`) {
					t.Errorf("asked %d times, got %s", asked, got)
				}
			})
		})
	}
}
