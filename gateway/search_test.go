package gateway_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// searches has the tools of the view found.
func (w *viewWorld) searches() {
	w.t.Helper()
	must(w.t, w.view.Replace(w.members, compose.Options{Name: "team", Search: true}))
}

// withReader is a server with a tool that only reads, and one that does not say so. Both answer as those of withTools.
func withReader() *server {
	s := withTools()
	calls := s.handle
	listed := lists(map[string]string{"tools/list": `{"tools":[{"name":"read_page","description":"Reads a page.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"drop_page"}]}`})
	s.handle = func(s *serverSession, m *jsonrpc.Message) bool { return listed(s, m) || calls(s, m) }
	return s
}

// Clients of each transport find tools and their schemas from memory, and call them. The server of a member starts
// with the first call of one of its tools.
func TestSearchOnEachTransport(t *testing.T) {
	for name, ask := range viewClients {
		t.Run(name, func(t *testing.T) {
			ups := []*server{withReader(), withTools("search")}
			withView(t, remembering(), ups, func(t *testing.T, w *viewWorld) {
				w.learned()
				w.searches()
				srv := pipetest.Serve(w.front, nil, nil)
				defer srv.Stop()
				send := ask(t, srv.Client)
				list := send("1", "tools/list", "", "")
				wantText(t, "the list", list, `"name":"find_tools"`, `"name":"read_tool"`, `"name":"call_tool"`, "There are 3: of a (2), b (1)")
				if strings.Contains(list, "a__read_page") {
					t.Errorf("the list has a tool of a member: %s", list)
				}
				wantText(t, "found", send("2", "tools/call", "find_tools", `,"arguments":{"query":"show a page"}`), `\"tools\":[{\"name\":\"a__read_page\",\"description\":\"Reads a page.\",\"readOnly\":true}`)
				wantText(t, "schema", send("3", "tools/call", "find_tools", `,"arguments":{"names":["a__read_page"]}`), `\"inputSchema\":{\"type\":\"object\"}`)
				time.Sleep(5 * time.Second)
				w.wantStarts("for searches", 1, 1)
				wantText(t, "refused", send("4", "tools/call", "read_tool", `,"arguments":{"name":"a__drop_page"}`), "-32602")
				w.wantStarts("for a refused call", 1, 1)
				wantText(t, "read", send("5", "tools/call", "read_tool", `,"arguments":{"name":"a__read_page"}`), `"session":2,"tool":"read_page"`)
				w.wantStarts("after a call", 2, 1)
				wantText(t, "called", send("6", "tools/call", "call_tool", `,"arguments":{"name":"b__search","arguments":{"x":1}}`), `"session":2,"tool":"search"`)
				w.wantStarts("after two calls", 2, 2)
				wantText(t, "called by its name", send("7", "tools/call", "a__drop_page", ""), `"session":2,"tool":"drop_page"`)
				wantText(t, "unknown", send("8", "tools/call", "call_tool", `,"arguments":{"name":"c__page"}`), "-32602", `unknown tool \"c__page\": there are a__`)
			})
		})
	}
}

// A client finds and calls no tool that it narrows away, and the three tools stay.
func TestNarrowingOfASearch(t *testing.T) {
	withView(t, gateway.Settings{}, []*server{withReader(), withTools("search")}, func(t *testing.T, w *viewWorld) {
		w.searches()
		srv := pipetest.Serve(w.front, nil, nil)
		defer srv.Stop()
		var session []string
		post := func(body string) string {
			req := ssetest.Request(t.Context(), http.MethodPost, "http://localhost/mcp?tools=*_page", body, session...)
			res, err := srv.Client.Do(req)
			must(t, err)
			defer res.Body.Close()
			if session == nil {
				session = []string{"Mcp-Session-Id", res.Header.Get("Mcp-Session-Id")}
			}
			var answer bytes.Buffer
			_, err = answer.ReadFrom(res.Body)
			must(t, err)
			return answer.String()
		}
		post(initialize("0", "2025-11-25", `{}`))
		wantText(t, "the list", post(request("1", "tools/list")), `"name":"find_tools"`, `"name":"call_tool"`, "There are 2: of a (2).")
		found := post(asking("2", "tools/call", `{"name":"find_tools","arguments":{"query":"search a page"}}`))
		wantText(t, "found", found, "a__read_page")
		if strings.Contains(found, "b__search") {
			t.Errorf("found what is narrowed away: %s", found)
		}
		wantText(t, "allowed", post(asking("3", "tools/call", `{"name":"call_tool","arguments":{"name":"a__read_page"}}`)), called(1, "read_page"))
		for _, params := range []string{`{"name":"call_tool","arguments":{"name":"b__search"}}`, `{"name":"b__search"}`, `{"name":"search"}`} {
			wantText(t, params, post(asking("4", "tools/call", params)), "-32602")
		}
		equal(t, "calls of the second server", w.ups[1].starts(), 1) // the view has read its list
		equal(t, "calls", w.ups[1].session(t, 1).count("tools/call"), 0)
	})
}

// The audit log has the tool that is called, and by which tool of the view.
func TestAuditOfASearch(t *testing.T) {
	var audit bytes.Buffer
	opts := gateway.Settings{Options: gateway.Options{Audit: ssetest.Logger(&audit)}}
	withView(t, opts, []*server{withReader(), withTools("y")}, func(t *testing.T, w *viewWorld) {
		w.searches()
		p := w.open(`{}`)
		p.post(request("0", "tools/list"))
		time.Sleep(time.Second)
		for i, params := range []string{
			`{"name":"call_tool","arguments":{"name":"a__drop_page"}}`, `{"name":"find_tools","arguments":{"query":"x"}}`, `{"name":"b__y"}`,
		} {
			p.post(asking(string(rune('1'+i)), "tools/call", params))
			time.Sleep(time.Second)
		}
		synctest.Wait()
		var got []string
		for line := range strings.Lines(audit.String()) {
			var fields []string
			for _, key := range []string{"by", "tool", "member", "memberTool", "outcome"} {
				fields = append(fields, fieldOf(line, key))
			}
			got = append(got, strings.Join(fields, " "))
		}
		equal(t, "the audit log", got, []string{"call_tool a__drop_page a drop_page ok", " find_tools   ok", " b__y b y ok"})
		p.take()
	})
}

// A reload switches the search on and off while a client is there.
func TestReloadOfASearch(t *testing.T) {
	withView(t, gateway.Settings{}, []*server{withReader(), withTools("y")}, func(t *testing.T, w *viewWorld) {
		p := w.open(`{}`)
		p.post(request("1", "tools/list"))
		time.Sleep(time.Second)
		p.take()
		w.searches()
		time.Sleep(time.Second)
		p.want(toolsChanged)
		p.post(asking("2", "tools/call", `{"name":"find_tools","arguments":{"query":"page"}}`))
		time.Sleep(time.Second)
		synctest.Wait()
		p.mu.Lock()
		var answer struct{ Result json.RawMessage }
		must(t, json.Unmarshal(p.got[0].Data, &answer))
		p.mu.Unlock()
		wantText(t, "found", string(answer.Result), "a__read_page")
		p.take()
	})
}
