package statelessserver_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/stateless"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const form = `{"mode":"form","message":"Name?","requestedSchema":{"type":"object","x":1.50}}`

// input is a result that asks for input; empty parts are left out.
func input(requests, state string) string {
	result := `{"resultType":"input_required"`
	if requests != "" {
		result += `,"inputRequests":` + requests
	}
	if state != "" {
		result += `,"requestState":` + state
	}
	return result + `}`
}

// asked takes a request of the server and returns its id.
func (s *scripted) asked(method, params string, of jsonrpc.ID) jsonrpc.ID {
	s.t.Helper()
	got, request := s.Recv()
	m, err := jsonrpc.Parse([]byte(got))
	if err != nil || m.Kind != jsonrpc.Request || m.Method != method || string(m.Params()) != params || request != of {
		s.t.Fatalf("got %s with request %q\nwant %s %s with %q", got, request, method, params, of)
	}
	return m.ID
}

func TestInputRequiredAsksTheClientAndComesAgain(t *testing.T) {
	s := newStateless(t, discovered, func(p *post) {
		if p.param("inputResponses") == "" {
			p.result(input(`{"who":{"method":"elicitation/create","params":`+form+`},"all":{"method":"roots/list"}}`, `"st\u0061te 1"`))
			return
		}
		p.result(`{"resultType":"complete","content":[]}`)
	})
	s.initialize(`{"elicitation":{},"roots":{}}`)
	s.Send(toolCall("7", "ask"))
	roots := s.asked("roots/list", "", "7")
	who := s.asked("elicitation/create", form, "7")
	if roots == who {
		t.Fatalf("both requests have the id %s", who)
	}
	s.Send(`{"jsonrpc":"2.0","id":` + string(who) + `,"result":{"action":"accept","content":{"n":9007199254740993}}}`)
	s.Send(`{"jsonrpc":"2.0","id":` + string(roots) + `,"result":{"roots":[] }}`)
	s.want(`{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`)
	calls := s.seen("tools/call")
	if len(calls) != 2 || calls[0].m.ID == calls[1].m.ID {
		t.Fatalf("the tool was called %d times, with the ids %s", len(calls), calls[0].m.ID)
	}
	ssetest.Want(t, "inputResponses", calls[1].param("inputResponses"), `{"all":{"roots":[] },"who":{"action":"accept","content":{"n":9007199254740993}}}`)
	ssetest.Want(t, "requestState", calls[1].param("requestState"), `"st\u0061te 1"`)
	if got := calls[1].param("arguments"); got != calls[0].param("arguments") || calls[1].meta("protocolVersion") == "" {
		t.Errorf("the second call has the params %s", calls[1].m.Params())
	}
}

func TestRefusedElicitationIsACancel(t *testing.T) {
	s := newStateless(t, discovered, func(p *post) {
		if p.param("inputResponses") == "" {
			p.result(input(`{"who":{"method":"elicitation/create","params":`+form+`}}`, ""))
			return
		}
		p.result(p.param("inputResponses"))
	})
	s.initialize(`{"elicitation":{}}`)
	s.Send(toolCall("1", "ask"))
	id := s.asked("elicitation/create", form, "1")
	s.Send(`{"jsonrpc":"2.0","id":` + string(id) + `,"error":{"code":-32601,"message":"no"}}`)
	s.want(`{"jsonrpc":"2.0","id":1,"result":{"who":{"action":"cancel"}}}`)
}

func TestRefusedSamplingFailsTheCallAndTakesTheRestBack(t *testing.T) {
	s := newStateless(t, discovered, func(p *post) {
		p.result(input(`{"a":{"method":"sampling/createMessage","params":{}},"b":{"method":"roots/list"}}`, ""))
	})
	s.initialize(`{"sampling":{},"roots":{}}`)
	s.Send(toolCall("1", "ask"))
	sample := s.asked("sampling/createMessage", "{}", "1")
	roots := s.asked("roots/list", "", "1")
	s.Send(`{"jsonrpc":"2.0","id":` + string(sample) + `,"error":{"code":-1,"message":"no","data":1.50}}`)
	s.want(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + string(roots) + `,"reason":"no longer needed"}}`)
	s.want(`{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no","data":1.50}}`)
	s.Send(`{"jsonrpc":"2.0","id":` + string(roots) + `,"result":{"roots":[]}}`) // too late: dropped
	ssetest.Want(t, "calls of the tool", len(s.seen("tools/call")), 1)
}

func TestCancelledCallTakesItsQuestionsBack(t *testing.T) {
	s := newStateless(t, discovered, func(p *post) { p.result(input(`{"b":{"method":"roots/list"}}`, "")) })
	s.initialize(`{"roots":{}}`)
	s.Send(toolCall("1", "ask"))
	roots := s.asked("roots/list", "", "1")
	s.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	s.want(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + string(roots) + `,"reason":"no longer needed"}}`)
}

// A question of a kind that the client has not declared, or that the server must not ask, fails the
// call, and is never sent up.
func TestInputThatMustNotBeAskedForFailsTheCall(t *testing.T) {
	many := make([]string, 0, stateless.MaxInputs+1)
	for i := range stateless.MaxInputs + 1 {
		many = append(many, strconv.Quote("k"+strconv.Itoa(i))+`:{"method":"roots/list"}`)
	}
	for name, tc := range map[string]struct{ method, result, want string }{
		"not declared":          {"tools/call", input(`{"a":{"method":"roots/list"},"b":{"method":"sampling/createMessage","params":{}}}`, ""), "not declared"},
		"not a client's method": {"tools/call", input(`{"a":{"method":"ping"}}`, ""), "not declared"},
		"neither":               {"tools/call", input("", ""), "without saying for which"},
		"not an object":         {"tools/call", input(`[1]`, ""), "not an object"},
		"too many":              {"tools/call", input(`{`+strings.Join(many, ",")+`}`, ""), "more than"},
		"of another method":     {"tools/list", input(`{"a":{"method":"roots/list"}}`, ""), "tools/list"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStateless(t, discovered, func(p *post) { p.result(tc.result) })
			s.initialize(`{"roots":{}}`)
			s.Send(`{"jsonrpc":"2.0","id":1,"method":"` + tc.method + `","params":{"name":"a"}}`)
			s.WantError("1", "-32603", "invalid_response", tc.want)
		})
	}
}

func TestElicitationByURLGetsTheIDThatClientsNeed(t *testing.T) {
	s := newStateless(t, discovered, func(p *post) {
		if p.param("inputResponses") == "" {
			p.result(input(`{"a":{"method":"elicitation/create","params":{"mode":"url","url":"https://example.com/x"}}}`, ""))
			return
		}
		p.result(`{}`)
	})
	s.initialize(`{"elicitation":{"url":{}}}`)
	s.Send(toolCall("1", "ask"))
	got, _ := s.Recv()
	m, err := jsonrpc.Parse([]byte(got))
	ssetest.Must(t, err)
	id, _ := rawjson.Member(m.Params(), "elicitationId")
	if want := `{"mode":"url","url":"https://example.com/x","elicitationId":` + string(id) + `}`; string(m.Params()) != want || len(id) < 20 {
		t.Errorf("got params %s", m.Params())
	}
	s.Send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"action":"accept"}}`)
	s.want(`{"jsonrpc":"2.0","id":1,"result":{}}`)
}

// Two calls that wait for input at once get their own answers.
func TestInputOfCallsNeverCrosses(t *testing.T) {
	s := newStateless(t, discovered, func(p *post) {
		if p.param("inputResponses") == "" {
			p.result(input(`{"k":{"method":"elicitation/create","params":{"message":`+p.param("name")+`}}}`, p.param("name")))
			return
		}
		p.result(fmt.Sprintf(`{"name":%s,"state":%s,"answer":%s}`, p.param("name"), p.param("requestState"), p.param("inputResponses", "k", "content")))
	})
	s.initialize(`{"elicitation":{}}`)
	const calls = 20
	for i := range calls {
		s.Send(toolCall(strconv.Itoa(i+1), "tool"+strconv.Itoa(i+1)))
	}
	for answered := 0; answered < calls; {
		got, request := s.Recv()
		m, err := jsonrpc.Parse([]byte(got))
		ssetest.Must(t, err)
		name := `"tool` + string(request) + `"`
		if m.Kind == jsonrpc.Request {
			if message, _ := rawjson.Member(m.Params(), "message"); string(message) != name {
				t.Fatalf("request %s was asked %s", request, got)
			}
			s.Send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"action":"accept","content":` + name + `}}`)
			continue
		}
		if want := `{"jsonrpc":"2.0","id":` + string(request) + `,"result":{"name":` + name + `,"state":` + name + `,"answer":` + name + `}}`; got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
		answered++
	}
}
