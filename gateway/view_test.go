package gateway_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// viewWorld is a gateway in front of a view, whose members a, b, c and so on are gateways in front of test servers.
type viewWorld struct {
	t       *testing.T
	front   *gateway.Gateway
	view    *compose.View
	members []compose.Member
	ups     []*server
}

// withView runs a test in fake time with a view of those servers. The gateways of all members have the options, and so
// has the one in front, but without Remember.
func withView(t *testing.T, opts gateway.Settings, ups []*server, test func(t *testing.T, w *viewWorld)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		opts.AnnounceDelay = 100 * time.Millisecond
		w := &viewWorld{t: t, ups: ups}
		inFront := opts
		inFront.Remember = nil
		for i, up := range ups {
			opts.Name = string(rune('a' + i))
			if opts.Registry != nil { // they serve together
				inFront.Prefix, opts.Prefix = "/mcp/team", "/mcp/"+opts.Name
			}
			g, err := gateway.NewWith(up, opts)
			must(t, err)
			w.members = append(w.members, compose.Member{Name: opts.Name, Upstream: g})
		}
		var err error
		w.view, err = compose.New(w.members, compose.Options{Name: "team"})
		must(t, err)
		inFront.Name = "team"
		w.front, err = gateway.NewWith(w.view, inFront)
		must(t, err)
		defer w.end()
		test(t, w)
	})
}

// end shuts down the gateway in front, and then those of the members. Nothing may be left.
func (w *viewWorld) end() {
	for _, c := range w.front.Registry().All() {
		c.Close("test over")
	}
	err := <-shutdown(w.front, time.Minute)
	held := metric(w.t, w.front, "mcp_sse_held_bytes")
	for i := range w.members {
		g := w.member(i)
		equal(w.t, "connections of the member "+w.members[i].Name, g.Connections(), 0)
		err = errors.Join(err, <-shutdown(g, time.Minute))
		held += metric(w.t, g, "mcp_sse_held_bytes")
		equal(w.t, "sessions that are left", w.ups[i].open(), 0)
	}
	equal(w.t, "error", err, nil)
	equal(w.t, "bytes are held after the end", held, 0)
}

// member returns the gateway of a member.
func (w *viewWorld) member(i int) *gateway.Gateway { return w.members[i].Upstream.(*gateway.Gateway) }

// learned has the memory of each member know its server.
func (w *viewWorld) learned() {
	w.t.Helper()
	for i, up := range w.ups {
		learned(w.t, w.member(i), up)
	}
}

// wantStarts expects that each server has been started so often.
func (w *viewWorld) wantStarts(when string, want ...int) {
	w.t.Helper()
	synctest.Wait()
	var got []int
	for _, up := range w.ups {
		got = append(got, up.starts())
	}
	equal(w.t, "starts "+when, got, want)
}

// open opens a connection of a client that initializes itself.
func (w *viewWorld) open(capabilities string) *peer {
	w.t.Helper()
	p := connect(w.t, w.front, plain)
	p.post(initialize("0", "2025-11-25", capabilities), initialized)
	p.want(`0 {"capabilities":*`)
	return p
}

// withTools is a server with those tools. It answers a call with the number of the session and the tool's name.
func withTools(names ...string) *server {
	listed := lists(map[string]string{"tools/list": toolList(names...)})
	const declared = `{"tools":{"listChanged":true}}`
	return &server{capabilities: declared, handle: func(s *serverSession, m *jsonrpc.Message) bool {
		if m.Method != "tools/call" {
			return listed(s, m)
		}
		name, _ := m.Param("name").Text()
		s.say(string(jsonrpc.NewResult(m.ID, []byte(called(s.n, name)))))
		return true
	}}
}

// called is the result of a call of a tool of withTools.
func called(session int, tool string) string {
	return fmt.Sprintf(`{"session":%d,"tool":%q}`, session, tool)
}

// toolList is the result of a list of tools.
func toolList(names ...string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = fmt.Sprintf(`{"name":%q}`, name)
	}
	return `{"tools":[` + strings.Join(all, ",") + `]}`
}

// call is a request to call a tool.
func call(id, tool string) string { return asking(id, "tools/call", `{"name":"`+tool+`"}`) }

const toolsChanged = "notifications/tools/list_changed"

// A client that narrows a view gets the tools by their final names. A server's own name is no way around that, neither
// before the first list nor after it.
func TestNarrowingOfAView(t *testing.T) {
	for _, c := range []struct{ tools, list, own, final string }{
		{"a__read_*", toolList("a__read_x"), "error -32602", "answered"},
		{"read_*", `{"tools":[]}`, "error -32602", "error -32602"},
		{"*read_x", toolList("a__read_x"), "answered", "answered"},
	} {
		ups := []*server{withTools("read_x", "delete_all"), withTools("y")}
		withView(t, gateway.Settings{}, ups, func(t *testing.T, w *viewWorld) {
			srv := pipetest.Serve(w.front, nil, nil)
			defer srv.Stop()
			var session []string
			post := func(body string) string {
				res, err := srv.Client.Do(ssetest.Request(t.Context(), http.MethodPost,
					"http://localhost/mcp?tools="+c.tools, body, session...))
				must(t, err)
				defer res.Body.Close()
				answer, err := io.ReadAll(res.Body)
				must(t, err)
				if session == nil {
					session = []string{"Mcp-Session-Id", res.Header.Get("Mcp-Session-Id")}
				}
				return string(answer)
			}
			wantCall := func(when, tool, want string) {
				t.Helper()
				text := map[string]string{"answered": called(1, "read_x"), "error -32602": "-32602"}[want]
				wantText(t, c.tools+": "+tool+" "+when, post(call("2", tool)), text)
			}
			post(initialize("0", "2025-11-25", `{"roots":{}}`))
			time.Sleep(time.Second) // the view has read the lists of its members: a server's own name needs them
			wantCall("before a list", "delete_all", "error -32602")
			wantCall("before a list", "read_x", c.own)
			wantText(t, c.tools, post(request("1", "tools/list")), c.list)
			wantCall("after a list", "read_x", c.own)
			wantCall("after a list", "a__read_x", c.final)
			wantCall("after a list", "delete_all", "error -32602")
			wantCall("after a list", "a__delete_all", "error -32602")
		})
	}
}

// viewClient sends a request with a name in its params, and more behind it, and returns the answer.
type viewClient func(id, method, name, more string) (answer string)

// viewClients are clients of each transport.
var viewClients = map[string]func(t *testing.T, c *http.Client) viewClient{
	"sse": func(t *testing.T, c *http.Client) viewClient {
		stream := ssetest.Open(t, c, "http://localhost/sse", nil)
		t.Cleanup(stream.Close)
		exchange := func(id, msg string) string {
			e, err := stream.Call(msg, id)
			must(t, err)
			return e.Data
		}
		exchange("0", initialize("0", "2025-11-25", `{"roots":{}}`))
		return func(id, method, name, more string) string {
			return exchange(id, asking(id, method, `{"name":"`+name+`"`+more+`}`))
		}
	},
	"streamable": func(t *testing.T, c *http.Client) viewClient {
		_, header := postTo(t, c, initialize("0", "2025-11-25", `{"roots":{}}`))
		session := []string{"Mcp-Session-Id", header.Get("Mcp-Session-Id")}
		return func(id, method, name, more string) string {
			body, _ := postTo(t, c, asking(id, method, `{"name":"`+name+`"`+more+`}`), session...)
			return body
		}
	},
	"2026-07-28": func(t *testing.T, c *http.Client) viewClient {
		const meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientInfo":{"name":"peer","version":"0"},` +
			`"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}`
		return func(id, method, name, more string) string {
			body, _ := postTo(t, c, asking(id, method, `{"name":"`+name+`"`+more+meta+`}`),
				"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Mcp-Name", name)
			return body
		}
	},
}

// Clients of each transport list the tools of all members from memory. The server of a member starts with the first
// call of one of its tools.
func TestViewOnEachTransport(t *testing.T) {
	for name, ask := range viewClients {
		t.Run(name, func(t *testing.T) {
			ups := []*server{withTools("read", "write"), withTools("search")}
			withView(t, remembering(), ups, func(t *testing.T, w *viewWorld) {
				w.learned()
				srv := pipetest.Serve(w.front, nil, nil)
				defer srv.Stop()
				send := ask(t, srv.Client)
				wantText(t, "the list", send("1", "tools/list", "", ""),
					strings.Trim(toolList("a__read", "a__write", "b__search"), "{}"))
				time.Sleep(5 * time.Second)
				w.wantStarts("for lists", 1, 1)
				wantText(t, "a call of the first member", send("2", "tools/call", "a__write", ""), `"session":2,"tool":"write"`)
				w.wantStarts("after a call", 2, 1)
				wantText(t, "a call of the second member", send("3", "tools/call", "b__search", ""), `"session":2,"tool":"search"`)
				w.wantStarts("after two calls", 2, 2)
				wantText(t, "a call of an unknown tool", send("4", "tools/call", "c__read", ""), "-32602", `unknown tool`)
			})
		})
	}
}

// guiding returns a server with one tool, which says those instructions.
func guiding(tool, instructions string) *server {
	u := withTools(tool)
	standard := u.handle
	u.handle = func(s *serverSession, m *jsonrpc.Message) bool {
		if m.Method != "initialize" {
			return standard(s, m)
		}
		s.say(string(jsonrpc.NewResult(m.ID, fmt.Appendf(nil, `{"protocolVersion":"2025-11-25","capabilities":%s,`+
			`"serverInfo":{"name":"s","version":"1"},"instructions":%q}`, u.capabilities, instructions))))
		return true
	}
	return u
}

// A client of MCP 2026-07-28 discovers a view at once while its servers boot: its name, what its members can do, and
// their instructions. That starts nothing.
func TestDiscoverAtAView(t *testing.T) {
	ups := []*server{guiding("read", "Read first."), guiding("search", "Search last.")}
	withView(t, remembering(), ups, func(t *testing.T, w *viewWorld) {
		w.learned()
		for _, up := range ups {
			up.dial = slow(8 * time.Second)
		}
		p := w.open(`{"roots":{}}`)
		p.post(call("1", "a__read"))
		w.wantStarts("for a call", 2, 1)
		srv := pipetest.Serve(w.front, nil, nil)
		defer srv.Stop()
		began := time.Now()
		answer, _ := postTo(t, srv.Client, asking("2", "server/discover", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientInfo":{"name":"peer","version":"0"},"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}`),
			"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "server/discover")
		wantText(t, "the answer", answer, `"supportedVersions":["2026-07-28"`, `"capabilities":{"tools":{"listChanged":true}}`,
			`"io.modelcontextprotocol/serverInfo":{"name":"team","version":`, `"instructions":"# a\n\nRead first.\n\n# b\n\nSearch last."`)
		equal(t, "time that it has taken", time.Since(began), time.Duration(0))
		time.Sleep(time.Second)
		w.wantStarts("after the answer", 2, 1)
		time.Sleep(8 * time.Second)
		p.want("1 " + called(2, "read"))
	})
}

// postTo posts a message, and returns the answer with its header.
func postTo(t *testing.T, c *http.Client, body string, header ...string) (string, http.Header) {
	t.Helper()
	res, err := c.Do(ssetest.Request(t.Context(), http.MethodPost, "http://localhost/mcp", body, header...))
	must(t, err)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	must(t, err)
	return string(answer), res.Header
}

// A client of 2026-07-28 that listens, and has listed nothing, is told when a list of the view changes.
func TestListenersOfAView(t *testing.T) {
	withView(t, gateway.Settings{}, []*server{withTools("x", "y")}, func(t *testing.T, w *viewWorld) {
		srv := pipetest.Serve(w.front, nil, nil)
		defer srv.Stop()
		const params = `{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientInfo":{"name":"peer","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}}`
		res, err := srv.Client.Do(ssetest.Request(t.Context(), http.MethodPost, "http://localhost/mcp",
			asking("1", "subscriptions/listen", params), "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen"))
		must(t, err)
		defer res.Body.Close()
		events := bufio.NewReader(res.Body)
		for _, want := range []string{"notifications/subscriptions/acknowledged", toolsChanged} {
			e, err := ssetest.ReadAny(events)
			must(t, err)
			wantText(t, "event", e.Data, want)
			time.Sleep(10 * time.Second)
			w.members[0].Exclude = []string{"x"}
			must(t, w.view.Replace(w.members, compose.Options{Name: "team"}))
		}
	})
}

// A member that boots for 8 s, and one that is dead, cost their own tools alone: the first list waits for 5 s, and no
// other one waits. Clients are told when such a member has its tools.
func TestMembersThatBootOrAreDead(t *testing.T) {
	booting, dead := withTools("y"), withTools("z")
	booting.dial = slow(8 * time.Second)
	var isRepaired atomic.Bool
	dead.dial = func(context.Context, int) error {
		if isRepaired.Load() {
			return nil
		}
		return errNoServer
	}
	withView(t, gateway.Settings{}, []*server{withTools("x"), booting, dead}, func(t *testing.T, w *viewWorld) {
		first := w.open(`{"roots":{}}`)
		first.post(request("1", "tools/list"), call("2", "a__x"), call("3", "c__z"))
		wantSorted(first, "2 "+called(1, "x"), "3 member_unavailable retryable=true")
		time.Sleep(5 * time.Second)
		first.want("1 " + toolList("a__x"))
		second := w.open(`{"roots":{}}`)
		second.post(request("1", "tools/list"))
		second.want("1 " + toolList("a__x"))
		second.post(call("2", "b__y"))
		time.Sleep(4 * time.Second) // its boot for the first client ends
		first.want(toolsChanged)
		first.post(request("4", "tools/list"), call("5", "b__y"))
		first.want("4 "+toolList("a__x", "b__y"), "5 "+called(1, "y"))
		time.Sleep(6 * time.Second) // that for the second one
		wantSorted(second, "2 member_unavailable retryable=true", toolsChanged)

		isRepaired.Store(true)
		time.Sleep(5 * time.Minute)
		for _, p := range []*peer{first, second} {
			p.want(toolsChanged)
			p.post(request("6", "tools/list"), call("7", "c__z"))
			time.Sleep(time.Second)
			p.want("6 "+toolList("a__x", "b__y", "c__z"), "7 {*")
		}
	})
}

// A member whose session is lost keeps its tools, and its next call has a new session. Nothing of that reaches another
// member.
func TestLossOfAMember(t *testing.T) {
	withView(t, gateway.Settings{}, []*server{withTools("x"), withTools("y")}, func(t *testing.T, w *viewWorld) {
		p := w.open(`{}`)
		time.Sleep(time.Second)
		p.post(call("1", "a__x"), call("2", "b__y"))
		wantSorted(p, "1 "+called(1, "x"), "2 "+called(1, "y"))
		w.ups[1].session(t, 1).die()
		time.Sleep(time.Minute)
		p.take()
		p.post(request("3", "tools/list"), call("4", "a__x"), call("5", "b__y"))
		wantSorted(p, "3 "+toolList("a__x", "b__y"), "4 "+called(1, "x"), "5 "+called(2, "y"))
	})
}

// questioner is a server whose tool asks the client twice, and another one that reports progress until it is cancelled.
func questioner() *server {
	u := withTools("ask", "work")
	standard := u.handle
	u.handle = func(s *serverSession, m *jsonrpc.Message) bool {
		tool, _ := m.Param("name").Text()
		switch {
		case tool == "ask":
			s.say(asking(`"q"`, "elicitation/create", `{"message":"Sure?","requestedSchema":{}}`))
			s.say(asking(`7`, "sampling/createMessage", `{"messages":[]}`))
		case tool == "work":
			s.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`,
				m.Token.Value))
		default:
			return standard(s, m)
		}
		return true
	}
	return u
}

// Questions of two members that use the same ids reach the client under ids of their own, and each answer goes to the
// member that has asked. Progress has the client's token. A cancellation reaches the member that has the request.
func TestMessagesBothWaysThroughAView(t *testing.T) {
	withView(t, gateway.Settings{}, []*server{questioner(), questioner()}, func(t *testing.T, w *viewWorld) {
		p := w.open(`{"elicitation":{},"sampling":{}}`)
		time.Sleep(time.Second)
		for i, name := range []string{"a", "b"} {
			p.post(call(fmt.Sprintf("1%d", i), name+"__ask"))
			synctest.Wait()
			p.mu.Lock()
			wantText(t, "the question of "+name, string(p.got[0].Data), `"message":"`+name+`: Sure?"`)
			p.mu.Unlock()
			p.want("request elicitation/create", "request sampling/createMessage")
		}
		equal(t, "questions", len(p.ids), 4)
		for i, id := range p.ids {
			p.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"n":%d}}`, id, i))
		}
		synctest.Wait()
		for i, up := range w.ups {
			up.session(t, 1).wantSent(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":"q","result":{"n":%d}}`, 2*i),
				fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"result":{"n":%d}}`, 2*i+1))
		}

		p.post(callWith(`"w"`, "b__work", `"progressToken":"mine"`))
		synctest.Wait()
		p.mu.Lock()
		wantText(t, "progress", string(p.got[0].Data), `"progressToken":"mine"`)
		p.mu.Unlock()
		p.want("notifications/progress")
		p.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"w"}}`)
		synctest.Wait()
		equal(t, "cancellations of the first member", w.ups[0].session(t, 1).count("notifications/cancelled"), 0)
		asked := w.ups[1].session(t, 1)
		equal(t, "the id of the cancellation", string(asked.message(t, "notifications/cancelled").RequestID.Value),
			string(asked.lastCall(t).ID))
		time.Sleep(2 * time.Minute)
		for _, m := range p.take() {
			if strings.HasPrefix(m, `"w"`) {
				t.Errorf("the client got %s, an answer to a request that it has cancelled", m)
			}
		}
	})
}

// A client of 2026-07-28 answers questions inside its calls. One that a member asks outside of its own calls becomes part
// of no call at another member: the member gets an error. One that it asks inside a call is part of that.
func TestQuestionOutsideOfTheCallsOfItsMember(t *testing.T) {
	busy := withTools("work")
	standard := busy.handle
	busy.handle = func(s *serverSession, m *jsonrpc.Message) bool {
		if m.Method != "tools/call" {
			return standard(s, m)
		}
		time.AfterFunc(10*time.Second, func() { standard(s, m) })
		return true
	}
	withView(t, gateway.Settings{}, []*server{questioner(), busy}, func(t *testing.T, w *viewWorld) {
		srv := pipetest.Serve(w.front, nil, nil)
		defer srv.Stop()
		callOf := func(name string) string {
			answer, _ := postTo(t, srv.Client, asking("1", "tools/call", `{"name":"`+name+`","_meta":{`+
				`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"peer","version":"0"},`+
				`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{}}}}`),
				"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", name)
			return answer
		}
		time.AfterFunc(5*time.Second, func() {
			w.ups[0].session(t, 1).say(asking(`"late"`, "elicitation/create", `{"message":"Sure?","requestedSchema":{}}`))
		})
		wantText(t, "the call of the other member", callOf("b__work"), `"tool":"work"`, `"resultType":"complete"`)
		wantText(t, "what the member that asks has got", w.ups[0].session(t, 1).last(), `"id":"late","error":{"code":-32601`)
		wantText(t, "its own call", callOf("a__ask"), `"resultType":"input_required"`, `"message":"a: Sure?"`)
	})
}

// lastCall returns the last call of a tool that the session got.
func (s *serverSession) lastCall(t testing.TB) *jsonrpc.Message {
	t.Helper()
	all := s.messages()
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Method == "tools/call" {
			return all[i]
		}
	}
	t.Fatal("the session got no call")
	return nil
}

// Other rules hold for open connections: for lists, and for calls. A call that is under way ends well. The rules of the
// view, and those of the gateway of a member, can change.
func TestReloadOfTheRulesOfAView(t *testing.T) {
	busy := withTools("x", "y")
	standard := busy.handle
	busy.handle = func(s *serverSession, m *jsonrpc.Message) bool {
		if name, _ := m.Param("name").Text(); name == "y" {
			time.AfterFunc(10*time.Second, func() { standard(s, m) })
			return true
		}
		return standard(s, m)
	}
	withView(t, gateway.Settings{}, []*server{busy, withTools("z")}, func(t *testing.T, w *viewWorld) {
		p := w.open(`{}`)
		p.post(request("1", "tools/list"), call("2", "a__y"))
		time.Sleep(time.Second)
		p.want("1 " + toolList("a__x", "a__y", "b__z"))

		w.members[0].Exclude = []string{"y"}
		must(t, w.view.Replace(w.members, compose.Options{Name: "team"}))
		time.Sleep(time.Second)
		p.want(toolsChanged)
		p.post(request("3", "tools/list"), call("4", "a__y"))
		p.want("3 "+toolList("a__x", "b__z"), "4 error -32602")
		time.Sleep(10 * time.Second)
		p.want("2 " + called(1, "y"))

		nothing := &compose.Selection{Include: []string{}}
		must(t, w.member(1).Reconfigure(nil, gateway.Options{Name: "b", Select: nothing}))
		time.Sleep(time.Second)
		p.want(toolsChanged)
		p.post(request("5", "tools/list"), call("6", "b__z"))
		p.want("5 "+toolList("a__x"), "6 error -32602")

		must(t, w.view.Replace(w.members[:1], compose.Options{Name: "team"}))
		time.Sleep(time.Second)
		p.want(toolsChanged) // names have no prefix any more
		p.post(request("7", "tools/list"), call("8", "x"))
		p.want("7 "+toolList("x"), "8 "+called(1, "x"))
		equal(t, "connections of the member that has left", w.member(1).Connections(), 0)
		w.wantStarts("after reloads", 1, 1)
	})
}

// With its client, the connections to all members end.
func TestNothingIsLeftOfAClientOfAView(t *testing.T) {
	withView(t, gateway.Settings{}, []*server{withTools("x"), withTools("y")}, func(t *testing.T, w *viewWorld) {
		for range 3 {
			p := w.open(`{}`)
			p.post(call("1", "b__y"))
			time.Sleep(time.Second)
			p.want("1 {*")
			p.c.Close(connstate.ClosedClient)
			time.Sleep(time.Second)
			equal(t, "connections of members", w.member(0).Connections()+w.member(1).Connections(), 0)
			equal(t, "sessions of members", w.ups[0].open()+w.ups[1].open(), 0)
		}
	})
}

// Operators see each call once in the audit log, with the member and the name that its server knows, also if the call
// came before the list of tools was known. The connections of members are below those of the view, metrics and the
// status page have the state of each member, and the spans of members are below those of the view.
func TestWhatOperatorsSeeOfAView(t *testing.T) {
	rec, provider := newTraces()
	var audit bytes.Buffer
	opts := gateway.Settings{Options: gateway.Options{
		Audit: ssetest.Logger(&audit), TracerProvider: provider, Registry: metrics.NewRegistry(),
	}}
	boots, dead := withTools("search"), withTools("z")
	boots.dial = slow(time.Second)
	dead.dial = failing(1000)
	withView(t, opts, []*server{withTools("x"), boots, dead}, func(t *testing.T, w *viewWorld) {
		gateways := []*gateway.Gateway{w.front, w.member(0), w.member(1), w.member(2)}
		all, err := gateway.NewServers(gateways...)
		must(t, err)
		series := func(member, state string) float64 {
			labels := fmt.Sprintf("{member=%q,server=\"team\",state=%q}", member, state)
			return seriesOf(t, w.front, "mcp_sse_view_members")[labels]
		}
		equal(t, "a member before its first client is unused", series("a", "unused"), 1)

		p := w.open(`{}`)
		p.post(call("1", "b__search"), call("2", "a__x"), call("3", "a__unknown"))
		time.Sleep(2 * time.Second)
		wantSorted(p, "1 "+called(1, "search"), "2 "+called(1, "x"), "3 error -32602")
		lines := strings.Split(strings.TrimSpace(audit.String()), "\n")
		slices.SortFunc(lines, func(a, b string) int { return cmp.Compare(fieldOf(a, "tool"), fieldOf(b, "tool")) })
		var got []string
		for _, line := range lines {
			var fields []string
			for _, key := range []string{"server", "tool", "member", "memberTool", "outcome"} {
				fields = append(fields, fieldOf(line, key))
			}
			got = append(got, strings.Join(fields, " "))
		}
		want := []string{"team a__unknown   -32602", "team a__x a x ok", "team b__search b search ok"}
		equal(t, "the audit log", got, want)

		for member, state := range map[string]string{"a": "listed", "b": "listed", "c": "failing"} {
			for _, one := range []string{"listed", "late", "failing", "unused"} {
				want := 0.0
				if one == state {
					want = 1
				}
				equal(t, "series of "+member+" for "+one, series(member, one), want)
			}
		}
		asks(t, all.Admin(), "/status/servers/team", 200, `<span class="mark listed">listed</span>`,
			`href="../../status/servers/c">c</a>`, `<span class="mark failing">failing</span>`, "<dd>view ")
		asks(t, all.Admin(), "/status", 200, "<dt>Connections</dt><dd><b>1</b>")

		var inFront gateway.ServerSnapshot
		members := map[string]string{}
		for _, one := range all.Snapshot() {
			if one.Server == "team" {
				inFront = one
			} else {
				members[one.Server] = one.ID
				equal(t, "the connection in front of that of "+one.Server, one.Front, p.c.ShortID())
			}
		}
		for _, m := range inFront.Members {
			equal(t, "the connection of "+m.Server, m.ID, members[m.Server])
		}
		equal(t, "connections of members", len(inFront.Members), 3)

		atMember := rec.spansNamed(trace.SpanKindServer, "tools/call search")
		ofView := rec.spansNamed(trace.SpanKindClient, "tools/call b__search")
		if len(atMember) != 1 || len(ofView) != 1 || atMember[0].Parent().SpanID() != ofView[0].SpanContext().SpanID() {
			t.Errorf("spans of the member: %v, want one below that of the view, %v", atMember, ofView)
		}
	})
}

// The audit log has the server that got the call, not one of a list that another client got: two servers have a tool of
// one name, and one client alone may use the first.
func TestAuditHasTheServerOfTheCall(t *testing.T) {
	var audit bytes.Buffer
	opts := gateway.Settings{Options: gateway.Options{
		Audit:        ssetest.Logger(&audit),
		Authenticate: func(r *http.Request) (string, error) { return r.Header.Get("User"), nil },
	}}
	withView(t, opts, []*server{withTools("search"), withTools("search")}, func(t *testing.T, w *viewWorld) {
		for i := range w.members {
			w.members[i].Prefix = new("")
		}
		w.members[0].Allow = func(ctx context.Context) bool { return asker.FromContext(ctx).Principal == "alice" }
		must(t, w.view.Replace(w.members, compose.Options{Name: "team"}))
		srv := pipetest.Serve(w.front, nil, nil)
		defer srv.Stop()
		sessions := map[string]string{}
		post := func(user, msg string) {
			_, header := postTo(t, srv.Client, msg, "User", user, "Mcp-Session-Id", sessions[user])
			sessions[user] = cmp.Or(sessions[user], header.Get("Mcp-Session-Id"))
		}
		for _, user := range []string{"bob", "alice"} { // her list is the newest
			post(user, initialize("0", "2025-11-25", `{}`))
			post(user, request("1", "tools/list"))
		}
		for _, user := range []string{"alice", "bob"} {
			post(user, call("2", "search"))
		}
		var got []string
		for line := range strings.Lines(audit.String()) {
			got = append(got, fieldOf(line, "principal")+" "+fieldOf(line, "member")+" "+fieldOf(line, "memberTool"))
		}
		equal(t, "the audit log", got, []string{"alice a search", "bob b search"})
	})
}

// fieldOf returns the value of an attribute of a line of a log; empty if it has none.
func fieldOf(line, key string) string {
	_, rest, _ := strings.Cut(line, " "+key+"=")
	value, _, _ := strings.Cut(rest, " ")
	return value
}

// A client has a member as long as its newest token allows it: one with more opens the link, one with less ends it
// before the request that brings it is routed, and a check of the token that finds less ends it within ten seconds.
func TestMembersFollowTheToken(t *testing.T) {
	var isGood atomic.Bool
	isGood.Store(true)
	opts := gateway.Settings{Options: gateway.Options{Reauthenticate: true, Authenticate: func(r *http.Request) (string, error) {
		return "alice", nil
	}}}
	withView(t, opts, []*server{withTools("read"), withTools("search")}, func(t *testing.T, w *viewWorld) {
		w.members[0].Allow = func(ctx context.Context) bool {
			return asker.FromContext(ctx).Credentials() == "Bearer strong" && isGood.Load()
		}
		must(t, w.view.Replace(w.members, compose.Options{Name: "team"}))
		srv := pipetest.Serve(w.front, nil, nil)
		defer srv.Stop()
		_, header := postTo(t, srv.Client, initialize("0", "2025-11-25", `{}`), "Authorization", "Bearer weak")
		send := func(token, msg string) string {
			t.Helper()
			answer, _ := postTo(t, srv.Client, msg, "Mcp-Session-Id", header.Get("Mcp-Session-Id"), "Authorization", "Bearer "+token)
			return answer
		}
		list := func(token string, want ...string) {
			t.Helper()
			wantText(t, "the list of the "+token+" token", send(token, asking("1", "tools/list", "{}")), strings.Trim(toolList(want...), "{}"))
		}
		list("weak", "b__search")
		list("strong", "a__read", "b__search")
		wantText(t, "a call", send("strong", call("2", "a__read")), `"tool":"read"`)
		wantText(t, "a call with the weak token", send("weak", call("3", "a__read")), `unknown tool`)
		equal(t, "connections of the member", w.member(0).Connections(), 0)
		list("strong", "a__read", "b__search")
		isGood.Store(false)
		time.Sleep(11 * time.Second)
		equal(t, "connections of the member after a check", w.member(0).Connections(), 0)
		list("strong", "b__search")
		isGood.Store(true)
		time.Sleep(11 * time.Second)
		list("strong", "a__read", "b__search")
	})
}

// A request whose body comes while one with a stronger token opens a server uses nothing of that server, on each
// transport with sessions.
func TestRequestsHaveTheServersOfTheirOwnToken(t *testing.T) {
	for _, transport := range []string{"streamable", "sse"} {
		t.Run(transport, func(t *testing.T) {
			opts := gateway.Settings{Options: gateway.Options{Reauthenticate: true, Authenticate: func(r *http.Request) (string, error) {
				return "alice", nil
			}}}
			withView(t, opts, []*server{withTools("read"), withTools("search")}, func(t *testing.T, w *viewWorld) {
				w.members[0].Allow = func(ctx context.Context) bool {
					return asker.FromContext(ctx).Credentials() == "Bearer strong"
				}
				must(t, w.view.Replace(w.members, compose.Options{Name: "team"}))
				srv := pipetest.Serve(w.front, nil, nil)
				defer srv.Stop()
				at, session := "http://localhost/mcp", ""
				answered := func(answer string) string { return answer }
				post := func(token string, body io.Reader) string {
					r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at, body)
					must(t, err)
					for name, value := range map[string]string{"Accept": "application/json, text/event-stream", "Content-Type": "application/json",
						"Authorization": "Bearer " + token, "Mcp-Session-Id": session} {
						r.Header.Set(name, value)
					}
					res, err := srv.Client.Do(r)
					must(t, err)
					defer res.Body.Close()
					session = cmp.Or(session, res.Header.Get("Mcp-Session-Id"))
					answer, err := io.ReadAll(res.Body)
					must(t, err)
					return string(answer)
				}
				if transport == "sse" {
					stream := ssetest.Open(t, srv.Client, "http://localhost/sse", http.Header{"Authorization": {"Bearer strong"}})
					defer stream.Close()
					at = stream.Post
					answered = func(string) string {
						e, err := stream.Until(`"id":2`)
						must(t, err)
						return e.Data
					}
				}
				post("strong", strings.NewReader(initialize("0", "2025-11-25", `{}`)))
				body, slow := io.Pipe()
				answer := make(chan string)
				go func() { answer <- post("weak", body) }()
				_, err := slow.Write([]byte(`{"jsonrpc":"2.0",`))
				must(t, err)
				time.Sleep(time.Second)
				post("strong", strings.NewReader(request("1", "tools/list")))
				_, err = slow.Write([]byte(strings.TrimPrefix(call("2", "a__read"), `{"jsonrpc":"2.0",`)))
				must(t, err)
				must(t, slow.Close())
				wantText(t, "the call", answered(<-answer), `unknown tool`)
			})
		})
	}
}

// A view without a name and a logger has those of the gateway in front, so that a mistake in a rule is not silent.
func TestViewHasNameAndLoggerOfItsGateway(t *testing.T) {
	for name, tc := range map[string]struct {
		front     gateway.Options
		view      compose.Options
		want, log string
	}{
		"by the gateway":     {gateway.Options{Name: "front"}, compose.Options{}, `"serverInfo":{"name":"front"`, " server=front"},
		"by its title":       {gateway.Options{Title: "Front"}, compose.Options{}, `"serverInfo":{"name":"Front"`, " server=Front"},
		"by nothing":         {gateway.Options{}, compose.Options{}, `"serverInfo":{"name":"mcp-sse"`, ""},
		"its name, no other": {gateway.Options{Name: "front"}, compose.Options{Name: "own", Version: "7"}, `"serverInfo":{"name":"own","version":"7"}`, " server=front"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log ssetest.Output
				view, err := compose.New([]compose.Member{
					{Name: "a", Upstream: withTools("t"), Selection: compose.Selection{Include: []string{"T"}}},
				}, tc.view)
				must(t, err)
				tc.front.Logger = ssetest.Logger(&log)
				g, err := gateway.New(view, tc.front)
				must(t, err)
				defer func() { must(t, <-shutdown(g, time.Minute)) }()
				p := connect(t, g, plain)
				p.post(initialize("1", "2025-11-25", emptyDeclared), initialized, `{"jsonrpc":"2.0","id":"2","method":"tools/list"}`)
				time.Sleep(time.Minute)
				synctest.Wait()
				events := p.received()
				ssetest.WantText(t, "initialize", string(events[len(events)-2].Data), tc.want)
				ssetest.WantText(t, "log", log.String(), `msg="rule meets nothing"`+tc.log+` member=a rule="include \"T\""`)
				p.c.Close("test over")
			})
		})
	}
}
