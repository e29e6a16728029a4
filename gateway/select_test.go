package gateway_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// offering is a server with two tools, prompts, resources and templates each. Only "keep" and its kind are selected by
// keeping.
func offering() *server {
	answers := lists(map[string]string{
		"tools/list":               `{"tools":[ {"name":"keep" , "annotations":{"readOnlyHint":true}},{"name":"drop"}] ,"nextCursor":"2"}`,
		"prompts/list":             `{"prompts":[{"name":"drop"},{"name":"keep"}]}`,
		"resources/list":           `{"resources":[{"uri":"keep:1","name":"drop"},{"uri":"drop:1","name":"keep"}]}`,
		"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"keep:{a}"},{"uriTemplate":"drop:{a}"}]}`,
	})
	return &server{capabilities: withLists, handle: func(s *serverSession, m *jsonrpc.Message) bool {
		if m.Param("cursor").Value != nil { // the second page of the tools
			s.say(string(jsonrpc.NewResult(m.ID, []byte(`{"tools":[{"name":"drop2"}]}`))))
			return true
		}
		return answers(s, m)
	}}
}

var keeping = &compose.Selection{Exclude: []string{"dr*"}, Prompts: []string{"keep"}, Resources: []string{"keep:*"}}

// wantSorted is want of events that may come in any order. They are compared in that of their texts.
func wantSorted(p *peer, want ...string) {
	p.t.Helper()
	got := p.take()
	slices.Sort(got)
	p.compare(got, want)
}

// asking is a request with params.
func asking(id, method, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`
}

// What a selection leaves out is in no list, whether a session answers or memory, and what stays keeps its bytes. A
// request that names it has the error of an unknown name, and starts no server. All else passes.
func TestSelectionHoldsForListsAndCalls(t *testing.T) {
	u, with := offering(), remembering()
	with.Select = keeping
	inFakeTime(t, u, with, func(t *testing.T, g *gateway.Gateway) {
		requests := []string{request("1", "tools/list"), request("2", "prompts/list"), request("3", "resources/list"), request("4", "resources/templates/list")}
		answers := []string{
			`1 {"tools":[{"name":"keep" , "annotations":{"readOnlyHint":true}}] ,"nextCursor":"2"}`, `2 {"prompts":[{"name":"keep"}]}`,
			`3 {"resources":[{"uri":"keep:1","name":"drop"}]}`, `4 {"resourceTemplates":[{"uriTemplate":"keep:{a}"}]}`,
		}
		first := connect(t, g, plain)
		first.post(initialize("0", "2025-11-25", `{"roots":{}}`))
		first.post(requests...)
		time.Sleep(time.Second)
		wantSorted(first, append([]string{"0 {*"}, answers...)...)
		first.c.Close(connstate.ClosedClient)

		p := returns(t, g)
		p.post(requests...)
		p.want(answers...)
		for id, c := range [][2]string{
			{"tools/call", `{"name":"drop"}`}, {"tools/call", `{"name":5}`}, {"tools/call", `{}`},
			{"prompts/get", `{"name":"drop"}`}, {"completion/complete", `{"ref":{"type":"ref/prompt","name":"drop"}}`},
			{"completion/complete", `{"ref":{"type":"ref/resource","uri":"drop:{a}"}}`},
		} {
			p.post(asking(string('1'+byte(id)), c[0], c[1]))
			p.want(string('1'+byte(id)) + " error -32602")
		}
		p.post(asking("7", "resources/read", `{"uri":"drop:1"}`), asking("8", "resources/subscribe", `{"uri":"drop:1"}`))
		p.want("7 error -32002", "8 error -32002")
		p.post(asking("9", "subscriptions/listen", `{"notifications":{"resourceSubscriptions":["drop:1"]}}`))
		p.want("9 error -32601")
		// A parser that ignores case, or takes the first of two, would read another name.
		for _, params := range []string{`{"name":"drop","name":"keep"}`, `{"name":"keep","Name":"drop"}`} {
			p.post(asking("1", "tools/call", params))
			p.want("1 error -32600")
		}
		p.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"keep"},"Params":{"name":"drop"}}`)
		p.want("1 error -32600")
		p.post(`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"drop"}}`)
		p.post(`{"jsonrpc":"2.0","method":"notifications/x","Method":"tools/call","params":{"name":"drop"}}`)
		p.want()
		equal(t, "notifications dropped", metric(t, g, "mcp_sse_messages_dropped_total"), 2)
		equal(t, "starts", u.starts(), 1)

		// Memory has the whole list.
		whole := with.Options
		whole.Select = nil
		must(t, g.Reconfigure(u, whole))
		p.take()
		p.post(request("2", "prompts/list"))
		p.want(`2 {"prompts":[{"name":"drop"},{"name":"keep"}]}`)
		must(t, g.Reconfigure(u, with.Options))
		p.take()
		equal(t, "starts", u.starts(), 1)

		for _, c := range [][2]string{
			{"tools/call", `{"name":"keep"}`}, {"prompts/get", `{"name":"keep"}`}, {"resources/read", `{"uri":"keep:9"}`},
			{"completion/complete", `{"ref":{"type":"ref/prompt","name":"keep"}}`}, {"completion/complete", `{"ref":{}}`},
			{"completion/complete", `{"ref":{"type":"ref/resource","uri":"keep:{a}"}}`}, {"vendor/x", `{"name":"drop"}`},
		} {
			p.post(asking("1", c[0], c[1]))
			p.want(answered("1", 2, c[0]))
		}
	})
}

// A call of a tool that is chosen by its hints needs them. A list has them, whoever asked for it, or memory.
func TestCallByHints(t *testing.T) {
	u, with := offering(), remembering()
	with.Select = &compose.Selection{Only: compose.OnlyReadOnly}
	with.Remember.Dir = ssetest.PrivateDir(t)
	keep, drop := asking("1", "tools/call", `{"name":"keep"}`), asking("2", "tools/call", `{"name":"drop"}`)
	inFakeTime(t, u, with, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(initialize("0", "2025-11-25", `{"roots":{}}`), keep)
		wantSorted(p, "0 {*", "1 error -32602") // nobody knows the hints
		p.post(request("3", "tools/list"))
		time.Sleep(time.Second)
		p.take()
		p.post(keep, drop)
		wantSorted(p, "1 {*", "2 error -32602")
		other := connect(t, g, plain)
		other.post(keep)
		time.Sleep(time.Second)
		other.want("1 {*")
	})
	inFakeTime(t, offering(), with, func(t *testing.T, g *gateway.Gateway) { // after a restart
		p := connect(t, g, plain)
		p.post(initialize("0", "2025-11-25", `{"roots":{}}`), keep, drop)
		time.Sleep(time.Second)
		wantSorted(p, "0 {*", answered("1", 1, "tools/call"), "2 error -32602")
	})
}

// Memory does not take the place of hints that the server has listed since: a tool that is left out by them stays so.
func TestOldHintsInMemory(t *testing.T) {
	var isReadOnly atomic.Bool
	isReadOnly.Store(true)
	u := &server{capabilities: withLists, handle: func(s *serverSession, m *jsonrpc.Message) bool {
		if m.Method != "tools/list" {
			return false
		}
		const tool = `{"tools":[{"name":"x","annotations":{"readOnlyHint":%t}}]}`
		s.say(string(jsonrpc.NewResult(m.ID, fmt.Appendf(nil, tool, isReadOnly.Load()))))
		return true
	}}
	with := remembering()
	with.Select = &compose.Selection{Only: compose.OnlyReadOnly}
	inFakeTime(t, u, with, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(initialize("0", "2025-11-25", `{"roots":{}}`), initialized)
		p.post(request("1", "tools/list"))
		time.Sleep(time.Second)
		p.post(call("2", "x"))
		wantSorted(p, "0 {*", "1 {*", answered("2", 1, "tools/call"))
		isReadOnly.Store(false)
		p.post(asking("3", "tools/list", `{"cursor":"1"}`)) // a page is not answered from memory
		time.Sleep(time.Second)
		p.post(call("4", "x"))
		wantSorted(p, `3 {"tools":[]}`, "4 error -32602")
		p.post(call("5", "unknown")) // memory is asked
		time.Sleep(time.Second)
		p.want("5 error -32602")
		p.post(call("6", "x"))
		p.want("6 error -32602")
	})
}

// Every transport has the selection.
func TestSelectionOnEachTransport(t *testing.T) {
	const listed = `"tools":[{"name":"keep" , "annotations":{"readOnlyHint":true}}]`
	call := asking("2", "tools/call", `{"name":"drop"}`)
	url, client, g := serve(t, offering(), gateway.Options{Select: keeping})
	t.Run("sse", func(t *testing.T) {
		c := ssetest.Open(t, client, url+"/sse", nil)
		defer c.Close()
		c.WantAnswer(t, request("1", "tools/list"), "1", listed)
		c.WantAnswer(t, call, "2", `"code":-32602,"message":"unknown tool \"drop\""`)
	})
	post := func(t *testing.T, body string, header ...string) string {
		r, err := client.Do(ssetest.Request(t.Context(), http.MethodPost, url+"/mcp", body, header...))
		must(t, err)
		defer r.Body.Close()
		got, err := io.ReadAll(r.Body)
		must(t, err)
		return string(got)
	}
	t.Run("streamable", func(t *testing.T) {
		ssetest.WantText(t, "list", post(t, request("1", "tools/list")), listed)
		ssetest.WantText(t, "call", post(t, call), `"code":-32602`)
	})
	t.Run("2026-07-28", func(t *testing.T) {
		const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
		ask := func(method, name, params string) string {
			return post(t, asking("1", method, params), "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Mcp-Name", name)
		}
		ssetest.WantText(t, "list", ask("tools/list", "", `{`+meta+`}`), listed, `"cacheScope":"private"`)
		ssetest.WantText(t, "call", ask("tools/call", "drop", `{"name":"drop",`+meta+`}`), `"code":-32602`)
		ssetest.WantText(t, "read", ask("resources/read", "drop:1", `{"uri":"drop:1",`+meta+`}`), `"code":-32602`)
	})
	t.Run("stdio", func(t *testing.T) {
		var out bytes.Buffer
		must(t, g.ServeStdio(t.Context(), strings.NewReader(request("1", "tools/list")+"\n"+call+"\n"), &out, 0))
		ssetest.WantText(t, "answers", out.String(), listed, `"code":-32602`)
	})
}

// A reload with another selection holds for open connections, which are told of the lists that it concerns.
func TestReloadOfASelection(t *testing.T) {
	u, with := offering(), gateway.Options{}
	inFakeTime(t, u, with, func(t *testing.T, g *gateway.Gateway) {
		p := connectReady(t, g)
		reload := func(s *compose.Selection, changed ...string) {
			t.Helper()
			with.Select = s
			must(t, g.Reconfigure(u, with))
			p.want(changed...)
		}
		tools, prompts, resources := "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed"
		reload(keeping, tools, prompts, resources)
		p.post(request("1", "prompts/list"))
		p.want(`1 {"prompts":[{"name":"keep"}]}`)
		reload(&compose.Selection{Exclude: []string{"dr*"}, Prompts: []string{"drop"}, Resources: []string{"keep:*"}}, prompts)
		p.post(request("1", "prompts/list"))
		p.want(`1 {"prompts":[{"name":"drop"}]}`)
		reload(&compose.Selection{Only: compose.OnlyReadOnly, Prompts: []string{"drop"}, Resources: []string{}}, tools, resources)
		p.post(request("1", "resources/list"))
		p.want(`1 {"resources":[]}`)
		reload(nil, tools, prompts, resources)
		p.post(asking("1", "tools/call", `{"name":"drop"}`))
		p.want(answered("1", 1, "tools/call"))
		equal(t, "starts", u.starts(), 1)
		with.Select = &compose.Selection{Include: []string{"["}}
		ssetest.WantText(t, "a selection that cannot be read", g.Reconfigure(u, with), `Select: include: the glob "["`)
		synctest.Wait()
	})
}

// A rule that meets nothing of a list is usually a typing error: the log has it once, also over a reload.
func TestRuleThatMeetsNothingIsInTheLog(t *testing.T) {
	var log bytes.Buffer
	opts := gateway.Options{Select: &compose.Selection{Include: []string{"kep*", "keep"}}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	u := offering()
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		for range 2 {
			p := connectReady(t, g)
			p.deliver(request("1", "tools/list"))
			equal(t, "warnings before the end of the list", strings.Count(log.String(), "rule meets nothing"), g.Connections()-1)
			p.deliver(asking("2", "tools/list", `{"cursor":"2"}`))
			p.take()
			if g.Connections() == 1 {
				must(t, g.Reconfigure(u, opts))
			}
		}
	})
	equal(t, "warnings", strings.Count(log.String(), `level=WARN msg="rule meets nothing" rule="include \"kep*\""`), 1)
}
