package statelessserver_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/upstreamtest"
)

func TestUnknownResultTypeIsAnErrorOfThatRequest(t *testing.T) {
	s := newStateless(t, discovered, func(p *post) { p.result(`{"resultType":"task","task":{}}`) })
	s.send(toolCall("1", "a"))
	s.wantError("1", "-32603", "invalid_response", "task")
}

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
		"stream without an answer": {func(p *post) { p.event(`{"jsonrpc":"2.0","id":99,"result":{}}`) }, []string{"response_lost"}},
		"empty":                    {func(p *post) { p.json(200, ``) }, []string{"response_lost"}},
		"accepted":                 {func(p *post) { p.w.WriteHeader(http.StatusAccepted) }, []string{"invalid_response", "202"}},
		"html": {func(p *post) {
			p.w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(p.w, "<p>hello")
		}, []string{"invalid_response", "text/html"}},
		"not JSON":          {func(p *post) { p.json(200, `{{`) }, []string{"invalid_response"}},
		"result and error":  {func(p *post) { p.json(200, `{"jsonrpc":"2.0","id":$ID,"result":1,"error":{}}`) }, []string{"invalid_response"}},
		"too long":          {func(p *post) { p.result(`"` + strings.Repeat("x", 2<<20) + `"`) }, []string{"over the limit"}},
		"too long an event": {func(p *post) { p.event(`{"x":"` + strings.Repeat("x", 2<<20) + `"}`) }, []string{"over the limit"}},
		"unauthorized":      {func(p *post) { p.json(401, `{"error":"invalid_token"}`) }, []string{"unauthorized", "401", "configure"}},
		"forbidden":         {func(p *post) { p.w.WriteHeader(403) }, []string{"unauthorized", "403", "configure"}},
		"unknown method":    {func(p *post) { p.fail(404, `{"code":-32601,"message":"what?"}`) }, []string{`"error":{"code":-32601,"message":"what?"}`}},
		"error without id":  {func(p *post) { p.json(400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m"}}`) }, []string{"-32600"}},
		"error of 500":      {func(p *post) { p.fail(500, `{"code":-32603,"message":"broken","data":1.50}`) }, []string{`{"code":-32603,"message":"broken","data":1.50}`}},
		"bad request":       {func(p *post) { http.Error(p.w, "no", 400) }, []string{"request_refused", "400", "no"}},
		"too many": {func(p *post) {
			p.w.Header().Set("Retry-After", "2")
			p.w.WriteHeader(http.StatusTooManyRequests)
		}, []string{"rate_limited", `"retryable":true`, `"retryAfterMs":2000`}},
		"missing capability": {func(p *post) {
			p.fail(400, `{"code":-32021,"message":"m","data":{"requiredCapabilities":{"roots":{}}}}`)
		}, []string{"-32603", "roots"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStateless(t, discovered, func(p *post) {
				if p.param("name") == `"good"` {
					p.result(`{}`)
					return
				}
				tc.answer(p)
			})
			s.send(toolCall("1", "bad"))
			for {
				got, _ := s.next()
				if strings.Contains(got, "notifications/") {
					continue
				}
				if !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"error":`) {
					t.Fatalf("got %.200s", got)
				}
				for _, want := range tc.want {
					if !strings.Contains(got, want) {
						t.Errorf("got %s, want %q in it", got, want)
					}
				}
				break
			}
			s.send(toolCall("2", "good"))
			s.want(`{"jsonrpc":"2.0","id":2,"result":{}}`)
		})
	}
}

func TestServerThatCannotBeReachedEndsTheSession(t *testing.T) {
	s := newStateless(t, discovered, func(*post) {})
	s.server.Close()
	s.send(toolCall("1", "a"))
	s.wantEnd("refused")
	if err := s.conn.Send([]byte(upstreamtest.Ping)); err == nil || errors.Is(err, jsonrpc.ErrBusy) {
		t.Errorf("Send after the end: got %v", err)
	}
}

func TestServerOfAnotherVersionEndsTheSession(t *testing.T) {
	s := newStateless(t, discovered, func(p *post) { p.fail(400, `{"code":-32022,"message":"m","data":{"supported":["2025-11-25"]}}`) })
	s.send(toolCall("1", "a"))
	s.wantError("1", "-32603", "unsupported_version")
	s.wantEnd("no longer speaks")
}

// A server of this version says as JSON-RPC what it does not find.
func TestPlain404EndsTheSession(t *testing.T) {
	for _, code := range []int{http.StatusNotFound, http.StatusMethodNotAllowed} {
		s := newStateless(t, discovered, func(p *post) { http.Error(p.w, "page not found", code) })
		s.send(toolCall("1", "a"))
		s.wantEnd("any more")
	}
}

func TestStatus5xxEndsTheSession(t *testing.T) {
	s := newStateless(t, discovered, func(p *post) { p.w.WriteHeader(http.StatusBadGateway) })
	s.send(toolCall("1", "a"))
	s.wantEnd("502")
}
