package stateless

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
)

// VisitTimeout bounds how long a request waits for a login, once its person has agreed to visit the address for that:
// the agreement comes before the login.
const VisitTimeout = 20 * time.Second

// Visit is what the person of a client has answered to the wish that it visits addresses.
type Visit string

// The answers to such a wish. A client of a session gives none.
const (
	VisitUnknown Visit = ""
	VisitAgreed  Visit = "accept"
	VisitRefused Visit = "decline" // in whichever way
)

const (
	// visitKey begins the keys of the requests for visits. No server has them.
	visitKey = "mcp-sse-visit-"
	// metaVisit is the member of _meta by which the gateway tells the upstream what the person has answered. A server
	// with sessions gets it too, and makes nothing of it.
	metaVisit = "io.github.mcp-sse/visit"
)

// VisitRequests returns the requests by which a client has its person visit addresses, by the data of an error with
// mcp.CodeElicitationRequired, and the addresses.
func VisitRequests(data json.RawMessage) (requests json.RawMessage, addresses []string) {
	requests = json.RawMessage("{}")
	list, _ := rawjson.Member(data, "elicitations")
	rawjson.Each(list, func(params json.RawMessage) {
		if params[0] != '{' || len(addresses) >= MaxInputs {
			return
		}
		address, _ := rawjson.MemberText(params, "url")
		addresses = append(addresses, address)
		params = rawjson.SetMember(params, json.RawMessage(`"url"`), "mode")
		requests = rawjson.SetMember(requests, InputRequest(mcp.MethodElicit, params),
			visitKey+strconv.Itoa(len(addresses)))
	})
	return requests, addresses
}

// TakeVisit returns params without the answers to VisitRequests, and what the person has answered: it has agreed if it
// has agreed to all.
func TakeVisit(params json.RawMessage) (json.RawMessage, Visit) {
	responses, ok := rawjson.Member(params, "inputResponses")
	var answers map[string]json.RawMessage
	if !ok || json.Unmarshal(responses, &answers) != nil {
		return params, VisitUnknown
	}
	visit := VisitUnknown
	for key, answer := range answers {
		if !strings.HasPrefix(key, visitKey) {
			continue
		}
		if action, _ := rawjson.MemberText(answer, "action"); action != string(VisitAgreed) {
			visit = VisitRefused
		} else if visit == VisitUnknown {
			visit = VisitAgreed
		}
		responses = rawjson.RemoveMember(responses, key)
	}
	switch {
	case visit == VisitUnknown:
		return params, visit
	case IsEmpty(responses):
		return rawjson.RemoveMember(params, "inputResponses"), visit
	}
	return rawjson.SetMember(params, responses, "inputResponses"), visit
}

// MarkVisit returns params that tell the upstream what the person has answered.
func MarkVisit(params json.RawMessage, visit Visit) json.RawMessage {
	if visit == VisitUnknown {
		return params
	}
	meta := rawjson.SetMember(objectMember(params, "_meta"), rawjson.Quote(string(visit)), metaVisit)
	return rawjson.SetMember(params, meta, "_meta")
}

// UnmarkVisit is the inverse of MarkVisit.
func UnmarkVisit(params json.RawMessage) (json.RawMessage, Visit) {
	visit, ok := rawjson.MemberText(params, "_meta", metaVisit)
	if !ok {
		return params, VisitUnknown
	}
	return CutMeta(params, metaVisit), Visit(visit)
}
