package stateless

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/internal/deadline"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// held are the calls that wait for their clients' input.
type held struct {
	sealer
	timeout time.Duration
	most    int // calls of one client

	mu     sync.Mutex // guards what follows
	calls  map[string]*heldCall
	counts map[key]int
	due    deadline.Set[*heldCall]
}

// heldCall is a call that waits for input.
type heldCall struct {
	deadline.Entry[*heldCall]
	*call
	id     string // empty until the call is held for the first time
	rounds int    // including the current one
	digest digest
}

func newHeld(timeout time.Duration, most int) *held {
	h := &held{
		sealer: newSealer(), timeout: timeout, most: most,
		calls: make(map[string]*heldCall), counts: make(map[key]int),
	}
	h.due = deadline.NewSet[*heldCall](h.expire)
	return h
}

// put holds a call until it is taken or its time is up, and returns its request state. It
// reports false if the client has too many.
func (h *held) put(k *heldCall) (state string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.counts[k.l.key] >= h.most || len(h.calls) >= maxHeld {
		return "", false
	}
	h.counts[k.l.key]++
	h.calls[k.id] = k
	h.due.Put(&k.Entry, k, h.due.Now()+h.timeout)
	return h.seal(claims{Call: k.id, Round: k.rounds, Digest: k.digest}), true
}

// take returns the call that a request state is about. It fails unless this is the
// latest state of the call, and the request the one of the call. It calls digest only
// for such a state: the digest of a request costs much more than a look at its state.
func (h *held) take(state string, digest func() digest) (*heldCall, error) {
	c, err := h.open(state)
	if err != nil {
		return nil, err
	}
	if h.find(c) == nil || !bytes.Equal(c.Digest, digest()) {
		return nil, errState
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.findLocked(c)
	if k == nil { // another request has taken it meanwhile
		return nil, errState
	}
	h.removeLocked(k)
	return k, nil
}

// find returns the call of which these are the latest claims, nil for none.
func (h *held) find(c claims) *heldCall {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.findLocked(c)
}

func (h *held) findLocked(c claims) *heldCall {
	if k := h.calls[c.Call]; k != nil && k.rounds == c.Round {
		return k
	}
	return nil
}

func (h *held) removeLocked(k *heldCall) {
	delete(h.calls, k.id)
	h.due.Drop(&k.Entry)
	if h.counts[k.l.key]--; h.counts[k.l.key] == 0 {
		delete(h.counts, k.l.key)
	}
}

// expire cancels the calls whose clients have not come back.
func (h *held) expire() {
	h.mu.Lock()
	due := h.due.Due()
	for _, e := range due {
		h.removeLocked(e.Owner)
	}
	h.mu.Unlock()
	for _, e := range due {
		e.Owner.cancel("the client has not given its input in time")
	}
}

// cancel cancels the calls on a connection that is about to close: their clients come back
// to another gateway, if at all.
func (h *held) cancel(l *link) {
	var calls []*heldCall
	h.mu.Lock()
	for _, k := range h.calls {
		if k.l == l {
			calls = append(calls, k)
			h.removeLocked(k)
		}
	}
	h.mu.Unlock()
	for _, k := range calls {
		k.cancel("the gateway is shutting down")
	}
}

// askClient ends the response with the server's requests, and holds the call.
func (h *Handler) askClient(a *reply, q *request, k *heldCall) {
	if k.id == "" {
		k.id, k.digest = rand.Text(), q.digest()
	}
	if k.rounds++; k.rounds > maxRounds {
		k.cancel("too many rounds of input")
		a.fail(http.StatusOK, jsonrpc.ReasonError("the server asked for input more than "+strconv.Itoa(maxRounds)+" times", "input_rounds", false))
		return
	}
	requests := k.show()
	state, ok := h.held.put(k)
	if !ok {
		k.cancel("too many calls wait for input")
		a.fail(http.StatusOK, jsonrpc.ReasonError("too many calls of this client wait for input", "input_busy", true))
		return
	}
	a.result(k.l.signed(inputRequired(requests, state)))
	if a.err != nil { // it has not got the state; one that has may be gone as well
		if k, err := h.held.take(state, func() digest { return k.digest }); err == nil {
			k.cancel("the client has closed the response")
		}
	}
}

// inputRequired returns the result that asks for input. Without a state, the client sends
// the request again as if for the first time.
func inputRequired(requests json.RawMessage, state string) json.RawMessage {
	result := json.RawMessage(`{"resultType":"` + mcp.ResultInput + `"}`)
	result = jsonrpc.SetMember(result, requests, "inputRequests")
	if state != "" {
		result = jsonrpc.SetMember(result, json.RawMessage(strconv.Quote(state)), "requestState")
	}
	return result
}

// show returns the open requests of the server, by the keys that the client answers with.
func (k *call) show() json.RawMessage {
	k.l.mu.Lock()
	defer k.l.mu.Unlock()
	requests := json.RawMessage("{}")
	for _, a := range k.open {
		a.shown = true
		requests = jsonrpc.SetMember(requests, inputRequest(a.method, a.params), a.key)
	}
	return requests
}

// inputRequest returns a request of the server as a client of this version knows it.
func inputRequest(method string, params json.RawMessage) json.RawMessage {
	r := json.RawMessage(`{"method":` + strconv.Quote(method) + `}`)
	if params != nil {
		r = jsonrpc.SetMember(r, params, "params")
	}
	return r
}

// inputResponses returns the answers in a request, by their keys.
func inputResponses(q *request) (map[string]json.RawMessage, *front.Refusal) {
	raw, ok := jsonrpc.Member(q.Params(), "inputResponses")
	if !ok {
		return nil, nil
	}
	if raw[0] != '{' {
		return nil, invalidParams("params.inputResponses must be an object")
	}
	answers := make(map[string]json.RawMessage)
	d := json.NewDecoder(bytes.NewReader(raw))
	_, _ = d.Token() // the brace; the message is valid JSON
	for d.More() {
		key, _ := d.Token()
		name, _ := key.(string)
		var answer json.RawMessage
		switch err := d.Decode(&answer); {
		case err != nil || answer[0] != '{':
			return nil, invalidParams("params.inputResponses: the answer %.32q must be an object", name)
		case len(answers) >= maxAnswers:
			return nil, invalidParams("params.inputResponses has more than %d answers", maxAnswers)
		}
		answers[name] = answer
	}
	return answers, nil
}

// resume passes a client's answers to the server, and returns the call that goes on.
func (h *Handler) resume(q *request, state json.RawMessage, answers map[string]json.RawMessage) (*heldCall, *front.Refusal) {
	text, _ := jsonrpc.Text(state)
	k, err := h.held.take(text, q.digest)
	if err != nil {
		return nil, invalidParams("%v", err)
	}
	for id, answer := range k.settle(answers) {
		k.l.post(jsonrpc.NewResult(id, jsonrpc.Compact(answer)))
	}
	return k, nil
}

// settle removes the requests of the server that a client has answered, and returns the
// answers. The client is asked for the others again.
func (k *call) settle(answers map[string]json.RawMessage) map[jsonrpc.ID]json.RawMessage {
	k.l.mu.Lock()
	defer k.l.mu.Unlock()
	settled := make(map[jsonrpc.ID]json.RawMessage)
	var open []*ask
	for _, a := range k.open {
		if answer, ok := answers[a.key]; ok {
			settled[a.id] = answer
			continue
		}
		a.shown = false
		open = append(open, a)
	}
	k.open = open
	return settled
}

// askURLs answers a request to which the server wants the client to visit addresses first
// (MCP 2025-11-25, URLElicitationRequiredError). The call is over: the client sends the
// same request again.
func (l *link) askURLs(a *reply, q *request, e *jsonrpc.Error) {
	data, _ := e.Data.(json.RawMessage)
	list, _ := jsonrpc.Member(data, "elicitations")
	requests, n := json.RawMessage("{}"), 0
	jsonrpc.Each(list, func(params json.RawMessage) {
		if params[0] != '{' || n >= maxAsks {
			return
		}
		n++
		params = jsonrpc.SetMember(jsonrpc.RemoveMember(params, "elicitationId"), json.RawMessage(`"url"`), "mode")
		requests = jsonrpc.SetMember(requests, inputRequest(mcp.MethodElicit, params), "url-"+strconv.Itoa(n))
	})
	switch {
	case n == 0 || !asksInput(q.Method):
		e.Code = jsonrpc.CodeInternalError
		a.fail(http.StatusOK, e)
	case !q.declares("elicitation", "url"):
		a.fail(http.StatusBadRequest, missingCapability(json.RawMessage(`{"elicitation":{"url":{}}}`)))
	default:
		a.result(l.signed(inputRequired(requests, "")))
	}
}
