package statelessclient

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/stateless"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// suspended are the calls that wait for their clients' input, by their request states: signed
// ids, each of which is good once.
type suspended struct {
	max       int
	clustered bool // input for a connection that drains still comes
	mu        sync.Mutex
	calls     map[string]*pooledCall
}

// putCall keeps a call under its request state until it is taken or its time is up, or returns
// why it is not kept. Once the connection drains outside of a cluster, cancel would not find the call.
func (h *suspended) putCall(k *pooledCall, state string) *jsonrpc.Error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.clustered && k.pc.c.State() == connstate.Draining:
		return jsonrpc.ReasonError(connstate.ErrDraining.Error(), "draining", false)
	case len(h.calls) >= h.max:
		return jsonrpc.ReasonError("too many calls wait for input", "input_busy", true)
	}
	h.calls[state] = k
	k.expiry = time.AfterFunc(inputTimeout, func() {
		if h.takeCall(state, k.principal, k.method) != nil {
			k.cancel("the client has not given its input in time")
		}
	})
	return nil
}

// AwaitsInput reports whether a call waits for input under a request state.
func (h *Handler) AwaitsInput(state string) bool {
	h.suspended.mu.Lock()
	defer h.suspended.mu.Unlock()
	return h.suspended.calls[state] != nil
}

// takeCall returns the call of a principal that a request state is about; nil if there is none.
func (h *suspended) takeCall(state, principal, method string) *pooledCall {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.calls[state]
	if k == nil || k.principal != principal || k.method != method {
		return nil
	}
	k.expiry.Stop()
	delete(h.calls, state)
	return k
}

// cancel cancels the calls on a connection that is about to close: their clients come back
// to another gateway, if at all.
func (h *suspended) cancel(pc *pooledConn) {
	var calls []*pooledCall
	h.mu.Lock()
	for state, k := range h.calls {
		if k.pc == pc {
			k.expiry.Stop()
			delete(h.calls, state)
			calls = append(calls, k)
		}
	}
	h.mu.Unlock()
	for _, k := range calls {
		k.cancel(connstate.ErrDraining.Error())
	}
}

// askClient ends the response with the server's requests, and suspends the call.
func (h *Handler) askClient(a *reply, k *pooledCall) {
	k.rounds++
	if k.rounds > stateless.MaxRounds {
		k.cancel("too many rounds of input")
		a.fail(http.StatusOK, jsonrpc.ReasonError(
			"the server asked for input more than "+strconv.Itoa(stateless.MaxRounds)+" times", "input_rounds", false))
		return
	}
	requests := k.show()
	state := h.registry.IDs().New(k.principal)
	if why := h.suspended.putCall(k, state); why != nil {
		k.cancel(why.Message)
		a.fail(http.StatusOK, why)
		return
	}
	a.result(stateless.Signed(stateless.InputRequired(requests, state), k.pc.info()))
	if a.Err() != nil && h.suspended.takeCall(state, k.principal, k.method) != nil { // the client has not got the state
		k.cancel("the client has closed the response")
	}
}

// show returns the open requests of the server, by the keys that the client answers with.
func (k *pooledCall) show() json.RawMessage {
	k.pc.mu.Lock()
	defer k.pc.mu.Unlock()
	requests := json.RawMessage("{}")
	for _, a := range k.open {
		requests = rawjson.SetMember(requests, a.request, a.key)
	}
	return requests
}

// resume passes a client's answers to the server, and returns the call that goes on; nil if
// there is none with that request state.
func (h *Handler) resume(q *request, state string, answers map[string]json.RawMessage) *pooledCall {
	k := h.suspended.takeCall(state, q.principal, q.Method)
	if k == nil {
		return nil
	}
	for id, answer := range k.takeAnswers(answers) {
		k.pc.post(jsonrpc.NewResult(id, rawjson.Compact(answer)), nil, nil)
	}
	return k
}

// forward sends a request that continues a call to the replica that holds the call. It
// reports false if this process has to answer.
func (h *Handler) forward(a *reply, q *request, state string) bool {
	return h.checks.IsForeign(a.r, h.registry, state, q.principal) &&
		h.checks.Forward(a.w, a.r, httpcheck.Forward{ID: state, Principal: q.principal, Body: q.Raw()})
}

// takeAnswers removes the requests of the server that a client has answered, and returns the
// answers. The client is asked for the others again.
func (k *pooledCall) takeAnswers(answers map[string]json.RawMessage) map[jsonrpc.ID]json.RawMessage {
	k.pc.mu.Lock()
	defer k.pc.mu.Unlock()
	settled := make(map[jsonrpc.ID]json.RawMessage)
	k.open = slices.DeleteFunc(k.open, func(a *ask) bool {
		answer, ok := answers[a.key]
		if ok {
			settled[a.id] = answer
		}
		return ok
	})
	return settled
}

// askURLs answers a request to which the server wants the client to visit addresses first
// (MCP 2025-11-25, URLElicitationRequiredError). The call is over: the client sends the
// same request again. If its person has refused the visit, it gets what the server says, of a tool as text with all
// addresses: to ask again would have no end.
func (pc *pooledConn) askURLs(a *reply, q *request, e *jsonrpc.Error) {
	data, _ := e.Data.(json.RawMessage)
	requests, addresses := stateless.VisitRequests(data)
	_, visit := stateless.TakeVisit(q.Params())
	isRefused := visit == stateless.VisitRefused
	switch {
	case isRefused && q.Method == mcp.MethodCallTool:
		text := e.Message
		for _, address := range addresses {
			if !strings.Contains(text, address) {
				text += "\n" + address
			}
		}
		result, _ := json.Marshal(map[string]any{ // never fails
			"resultType": "complete", "isError": true,
			"content": []map[string]string{{"type": "text", "text": text}},
		})
		a.result(stateless.Signed(result, pc.info()))
	case len(addresses) == 0 || !stateless.AsksInput(q.Method) || isRefused:
		e.Code = jsonrpc.CodeInternalError
		a.fail(http.StatusOK, e)
	case !q.declares("elicitation", "url"):
		a.fail(http.StatusBadRequest, missingCapability(json.RawMessage(`{"elicitation":{"url":{}}}`)))
	default:
		a.result(stateless.Signed(stateless.InputRequired(requests, ""), pc.info()))
	}
}
