package statelessserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// Each kind of unusable answer fails its own request, and no other.
func TestBrokenAnswersFailTheirRequestAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(p *post)
		want   []string
	}{
		"connection cut": {func(p *post) { panic(http.ErrAbortHandler) }, []string{"response_lost", `"retryable":false`}},
		"stream cut": {func(p *post) {
			p.event(`{"jsonrpc":"2.0","method":"notifications/message","params":{}}`)
			panic(http.ErrAbortHandler)
		}, []string{"response_lost", `"retryable":false`}},
		"header mismatch": {func(p *post) { p.fail(400, `{"code":-32020,"message":"Mcp-Name"}`) },
			[]string{`{"code":-32603,"message":"the server refused the headers of the request: Mcp-Name","data":{"reason":"header_mismatch","retryable":false}}`}},
		"missing capability": {func(p *post) {
			p.fail(400, `{"code":-32021,"message":"m","data":{"requiredCapabilities":{"sampling":{},"elicitation":{}}}}`)
		}, []string{`"message":"the server needs capabilities that the client has not declared: elicitation, sampling"`,
			`"data":{"reason":"missing_capability","retryable":false,"requiredCapabilities":{"sampling":{},"elicitation":{}}}`}},
		"unknown type":   {func(p *post) { p.result(`{"resultType":"task","task":{}}`) }, []string{"invalid_response", "task"}},
		"not JSON":       {func(p *post) { p.json(200, `{{`) }, []string{"invalid_response"}},
		"too long":       {func(p *post) { p.result(`"` + strings.Repeat("x", 2<<20) + `"`) }, []string{"over the limit"}},
		"unknown method": {func(p *post) { p.fail(404, `{"code":-32601,"message":"what?"}`) }, []string{`"error":{"code":-32601,"message":"what?"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStateless(t, discovered, func(p *post) {
				if p.param("name") == `"good"` {
					p.result(`{}`)
					return
				}
				tc.answer(p)
			})
			s.Send(toolCall("1", "bad"))
			for {
				got, _ := s.Recv()
				if strings.Contains(got, "notifications/") {
					continue
				}
				if !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"error":`) {
					t.Fatalf("got %.200s", got)
				}
				ssetest.WantText(t, "answer", got, tc.want...)
				break
			}
			s.Send(toolCall("2", "good"))
			s.want(`{"jsonrpc":"2.0","id":2,"result":{}}`)
		})
	}
}

// A server of this version says as JSON-RPC what it does not find.
func TestServerThatIsGoneEndsTheSession(t *testing.T) {
	for want, answer := range map[string]func(p *post){
		"no longer speaks": func(p *post) { p.fail(400, `{"code":-32022,"message":"m","data":{"supported":["2025-11-25"]}}`) },
		"answered 404":     func(p *post) { http.Error(p.w, "page not found", http.StatusNotFound) },
		"answered 405":     func(p *post) { http.Error(p.w, "not here", http.StatusMethodNotAllowed) },
		"502":              func(p *post) { p.w.WriteHeader(http.StatusBadGateway) },
	} {
		s := newStateless(t, discovered, answer)
		s.Send(toolCall("1", "a"))
		s.wantEnd(want)
	}
}
