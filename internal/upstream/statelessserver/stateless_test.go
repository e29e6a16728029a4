package statelessserver_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/upstreamtest"
)

func TestInitializeOpensNothingAtAStatelessServer(t *testing.T) {
	s := newStateless(t, discovered, func(p *post) { p.result(`{}`) })
	s.Send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}`)
	s.want(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"1"}}}`)
	s.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	s.Send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	s.Send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	s.want(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	s.mu.Lock()
	defer s.mu.Unlock()
	ssetest.Want(t, "requests to the server", len(s.posts), 1)
}

func TestEachRequestSaysWhoAsks(t *testing.T) {
	s := newStateless(t, discovered, func(p *post) { p.result(`{"resultType":"complete","n":1.50, "ttlMs":3}`) })
	s.initialize(`{"sampling":{},"tasks":{}}`)
	s.Send(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"sum", "arguments":{"n":9007199254740993},"_meta":{"progressToken":1.50}},"extra":1}`)
	s.want(`{"jsonrpc":"2.0","id":"a","result":{"n":1.50, "ttlMs":3}}`)
	p := s.seen("tools/call")[0]
	want := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sum", "arguments":{"n":9007199254740993},"_meta":{"progressToken":1.50,` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"sampling":{}},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}},"extra":1}`
	ssetest.Want(t, "message to the server", string(p.m.Raw()), want)
	for name, want := range map[string]string{
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "sum",
		"Accept": "application/json, text/event-stream", "Content-Type": "application/json",
	} {
		ssetest.Want(t, "header "+name, p.r.Header.Get(name), want)
	}
}

func TestLogLevelTravelsWithEachRequest(t *testing.T) {
	s := newStateless(t, discovered, func(p *post) {
		p.event(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
		p.event(`{"jsonrpc":"2.0","id":$ID,"result":{}}`)
	})
	s.initialize(`{}`)
	s.Send(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}`)
	s.want(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	s.Send(toolCall("2", "a"))
	s.GetsOf("2", `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
	s.want(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	if got := s.seen("tools/call")[0].meta("logLevel"); got != `"info"` || len(s.seen("logging/setLevel")) != 0 {
		t.Errorf("the level is %s, and logging/setLevel was sent %d times", got, len(s.seen("logging/setLevel")))
	}
}

// A server that leaves the response open after the answer cannot keep it open.
func TestProgressComesBeforeTheAnswerWithItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStateless(t, discovered, func(p *post) {
			p.event(``)
			p.event(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + p.param("_meta", "progressToken") + `,"progress":0.50}}`)
			p.event(`{"jsonrpc":"2.0","id":77,"result":{}}`)          // nobody's
			p.event(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`) // servers must not
			p.event(`{"jsonrpc":"2.0","id":$ID,"result":{"done":1e3}}`)
			<-p.r.Context().Done()
		})
		s.Send(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":"tok"}}}`)
		s.GetsOf("5", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":0.50}}`)
		s.want(`{"jsonrpc":"2.0","id":5,"result":{"done":1e3}}`)
		time.Sleep(2 * time.Second)
		if s.seen("tools/call")[0].r.Context().Err() == nil {
			t.Error("the response is still open")
		}
	})
}

func TestPingTellsWhetherTheServerAnswers(t *testing.T) {
	hang := make(chan struct{})
	var once bool
	s := newStateless(t, discovered, func(p *post) {
		ssetest.Want(t, "method", p.m.Method, "server/discover")
		if once {
			<-hang
		}
		once = true
		p.fail(400, `{"code":-32022,"message":"whatever it says, it is there"}`)
	})
	defer close(hang)
	s.Send(upstreamtest.Ping)
	s.want(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	s.Send(upstreamtest.Ping)
	s.Send(`{"jsonrpc":"2.0","id":2,"method":"tasks/list"}`)
	s.WantError("2", "-32601") // comes at once; the ping does not
}

func TestCancelledClosesTheResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStateless(t, discovered, func(p *post) {
			if p.m.Method == "tools/list" {
				p.result(`{"tools":[]}`)
				return
			}
			<-p.r.Context().Done()
		})
		s.Send(toolCall("1", "slow"))
		synctest.Wait()
		s.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		synctest.Wait()
		if s.seen("tools/call")[0].r.Context().Err() == nil || len(s.seen("notifications/cancelled")) > 0 {
			t.Error("the response is open, or notifications/cancelled was sent")
		}
		s.Send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
		s.want(`{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}`) // and no answer to 1
	})
}

func TestLegacyMethodsAreNotFound(t *testing.T) {
	s := newStateless(t, discovered, func(p *post) { t.Errorf("the server got %s", p.m.Method) })
	for _, call := range []string{
		`"tasks/get"`, `"tasks/result"`, `"server/discover"`, `"subscriptions/listen"`, `"näh"`, `"tools/call","params":{"name":"a","task":{}}`,
	} {
		s.Send(`{"jsonrpc":"2.0","id":1,"method":` + call + `}`)
		s.WantError("1", "-32601")
	}
	for _, call := range []string{`"tools/call","params":{}`, `"resources/read","params":{"uri":1}`, `"tools/list","params":[1]`} {
		s.Send(`{"jsonrpc":"2.0","id":1,"method":` + call + `}`)
		s.WantError("1", "-32602")
	}
}

func TestToolsWithInvalidHeadersAreNotListed(t *testing.T) {
	s := newStateless(t, discovered, func(p *post) {
		p.result(`{"tools":[{"name":"bad","inputSchema":{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}},{"name":"good"}],"resultType":"complete"}`)
	})
	s.Send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	s.want(`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"good"}]}}`)
	_ = s.Conn.Close()
	if logs := s.logs.String(); strings.Count(logs, "tool=bad") != 1 || !strings.Contains(logs, "level=WARN") {
		t.Errorf("the log says %s", logs)
	}
}

// annotatedTools is a server that wants an argument of a tool as a header, and
// hands its tools out in two pages.
func annotatedTools(p *post) {
	switch {
	case p.m.Method == "tools/list" && p.param("cursor") == "":
		p.result(`{"tools":[{"name":"other"}],"nextCursor":"p2"}`)
	case p.m.Method == "tools/list":
		p.result(`{"tools":[{"name":"sum","inputSchema":{"properties":{"n":{"type":"string","x-mcp-header":"N"}}}}]}`)
	case p.r.Header.Get("Mcp-Param-N") != "eins":
		p.fail(400, `{"code":-32020,"message":"missing Mcp-Param-N"}`)
	default:
		p.result(`{"ok":true}`)
	}
}

const annotatedCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sum","arguments":{"n":"eins"}}}`

func TestToolThatWasNeverListedIsListedAfterAHeaderMismatch(t *testing.T) {
	s := newStateless(t, discovered, annotatedTools)
	s.Send(annotatedCall)
	s.want(`{"jsonrpc":"2.0","id":1,"result":{"ok":true}}`)
	calls := s.seen("tools/call")
	if len(calls) != 2 || calls[0].m.ID == calls[1].m.ID || len(s.seen("tools/list")) != 2 {
		t.Errorf("the tool was called %d times, listed %d times", len(calls), len(s.seen("tools/list")))
	}
	s.Send(annotatedCall)
	s.want(`{"jsonrpc":"2.0","id":1,"result":{"ok":true}}`)
	ssetest.Want(t, "calls of the tool", len(s.seen("tools/call")), 3)
}
