package gateway_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcp-sse/mcp-sse/gateway"
)

// A client gets only server requests whose capability it declared.
func TestServersAskOnlyForWhatTheClientDeclares(t *testing.T) {
	const (
		form     = `"elicitation/create","params":{"message":"m","requestedSchema":{}}`
		url      = `"elicitation/create","params":{"mode":"url","message":"m","url":"https://a.example"}`
		sampling = `"sampling/createMessage","params":{"messages":[]}`
		tools    = `"sampling/createMessage","params":{"messages":[],"tools":[]}`
		roots    = `"roots/list"`
	)
	tests := []struct {
		declared, request string
		want              bool
	}{
		{`{}`, form, false},
		{`{}`, roots, false},
		{`{}`, sampling, false},
		{`{"roots":null}`, roots, false},
		{`{"roots":{}}`, roots, true},
		{`{"sampling":{}}`, sampling, true},
		{`{"sampling":{}}`, tools, false},
		{`{"sampling":{"tools":{}}}`, tools, true},
		{`{"elicitation":{}}`, form, true},
		{`{"elicitation":{}}`, url, false},
		{`{"elicitation":{"url":{}}}`, url, true},
		{`{"elicitation":{"url":{}}}`, form, false},
		{`{"elicitation":{"url":{},"form":{}}}`, form, true},
		{`{}`, `"x/unknown"`, true},
	}
	for _, tt := range tests {
		t.Run(tt.declared+" "+tt.request, func(t *testing.T) {
			u := &server{}
			inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
				p := connect(t, g, plain)
				p.post(initialize("0", "2025-11-25", tt.declared), initialized)
				p.want("0 *")
				s := u.session(t, u.starts())
				s.say(`{"jsonrpc":"2.0","id":"s","method":` + tt.request + `}`)
				synctest.Wait()
				if got := len(p.got) == 1; got != tt.want {
					t.Errorf("passed on = %t, want %t", got, tt.want)
				}
				if !tt.want && !strings.Contains(s.last(), `"id":"s","error":{"code":-32601`) {
					t.Errorf("the server got %s, want error -32601", s.last())
				}
			})
		})
	}
}

// The gateway sends no list_changed for a list if the server did not declare it.
func TestListChangedOfSharedSessions(t *testing.T) {
	u := &server{capabilities: `{"tools":{"listChanged":true},"prompts":{}}`}
	inFakeTime(t, u, sharing, func(t *testing.T, g *gateway.Gateway) {
		p, q := connect(t, g, plain), connect(t, g, plain)
		synctest.Wait()
		for _, kind := range []string{"tools", "prompts", "resources"} {
			u.session(t, 1).say(`{"jsonrpc":"2.0","method":"notifications/` + kind + `/list_changed"}`)
		}
		p.want("notifications/tools/list_changed")
		q.want("notifications/tools/list_changed")
	})
}
