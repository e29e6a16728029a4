package stateless_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/stateless"
)

// The answers to visits are taken out of a request, and one that is not yes is no.
func TestTakeVisit(t *testing.T) {
	for _, one := range []struct {
		responses, rest string // the params but for their name
		visit           stateless.Visit
	}{
		{``, ``, stateless.VisitUnknown},
		{`,"inputResponses":{}`, `,"inputResponses":{}`, stateless.VisitUnknown},
		{`,"inputResponses":[1]`, `,"inputResponses":[1]`, stateless.VisitUnknown},
		{`,"inputResponses":{"url-1":{"action":"accept"}}`, `,"inputResponses":{"url-1":{"action":"accept"}}`, stateless.VisitUnknown},
		{`,"inputResponses":{"mcp-sse-visit-1":{"action":"accept"}}`, ``, stateless.VisitAgreed},
		{`,"inputResponses":{"mcp-sse-visit-1":{"action":"decline"}}`, ``, stateless.VisitRefused},
		{`,"inputResponses":{"mcp-sse-visit-1":{"action":"cancel"}}`, ``, stateless.VisitRefused},
		{`,"inputResponses":{"mcp-sse-visit-1":{}}`, ``, stateless.VisitRefused},
		{`,"inputResponses":{"mcp-sse-visit-1":{"action":"accept"},"mcp-sse-visit-2":{"action":"accept"}}`, ``, stateless.VisitAgreed},
		{`,"inputResponses":{"mcp-sse-visit-1":{"action":"accept"},"mcp-sse-visit-2":{"action":"cancel"}}`, ``, stateless.VisitRefused},
		{`,"inputResponses":{"a":{"action":"decline"},"mcp-sse-visit-1":{"action":"accept"}}`, `,"inputResponses":{"a":{"action":"decline"}}`, stateless.VisitAgreed},
	} {
		rest, visit := stateless.TakeVisit(json.RawMessage(`{"name":"t"` + one.responses + `}`))
		ssetest.Want(t, one.responses, fmt.Sprintf("%s %q", rest, visit), fmt.Sprintf(`{"name":"t"%s} %q`, one.rest, one.visit))
	}
}

// UnmarkVisit is the inverse of MarkVisit.
func TestMarksOfVisits(t *testing.T) {
	for _, params := range []string{`{"name":"t"}`, `{"name":"t","_meta":{"a":1}}`} {
		for _, visit := range []stateless.Visit{stateless.VisitUnknown, stateless.VisitAgreed, stateless.VisitRefused} {
			got, of := stateless.UnmarkVisit(stateless.MarkVisit(json.RawMessage(params), visit))
			ssetest.Want(t, params, fmt.Sprintf("%s %q", got, of), fmt.Sprintf("%s %q", params, visit))
		}
	}
}

// All visits that fit are asked for, in the mode that says so.
func TestVisitRequests(t *testing.T) {
	requests, addresses := stateless.VisitRequests(json.RawMessage(`{"elicitations":[{"url":"https://a","elicitationId":"e"},1,{"mode":"url","url":"https://b"}]}`))
	ssetest.Want(t, "addresses", fmt.Sprint(addresses), "[https://a https://b]")
	ssetest.Want(t, "requests", string(requests), `{"mcp-sse-visit-1":{"method":"elicitation/create","params":{"url":"https://a","mode":"url"}},`+
		`"mcp-sse-visit-2":{"method":"elicitation/create","params":{"mode":"url","url":"https://b"}}}`)
	requests, addresses = stateless.VisitRequests(json.RawMessage(`{}`))
	ssetest.Want(t, "nothing", fmt.Sprint(string(requests), addresses), "{}[]")
}
