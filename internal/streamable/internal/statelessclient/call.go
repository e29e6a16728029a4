package statelessclient

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/multiplex/sharing"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/stateless"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// pooledCall is a request on a connection, from addCall to its answer, or a subscriptions/listen,
// which the server does not get.
type pooledCall struct {
	method    string
	principal string
	level     sharing.Level // of the log messages that the client wants; 0: none
	own       bool          // it is the handler's own
	exclusive bool          // it has the connection to itself among such calls
	asks      bool          // the server may ask the client something

	pc      *pooledConn
	id      jsonrpc.ID    // on the connection; of a subscriptions/listen the client's
	changed chan struct{} // has room for one: there is something to take

	rounds int         // of input; the request that serves the call counts them
	expiry *time.Timer // while the call waits for input; guarded by suspended.mu

	// Guarded by pooledConn.mu:
	state   callState        // moved by endLocked alone
	answer  *jsonrpc.Message // once the state is callAnswered
	notes   [][]byte         // notifications that wait for the client
	queued  int              // bytes that wait, an answer included
	open    []*ask           // requests of the server that are not answered
	asked   int              // requests of the server, ever
	lastAsk time.Time
}

// callState is whether somebody still waits for the answer to a call. It ends once: an answer that comes after
// callCancelled changes nothing.
type callState uint8

const (
	callOpen      callState = iota // it has no answer, and its client waits, or may come back with input
	callCancelled                  // nobody waits for its answer, which may still come
	callAnswered                   // its answer is there
)

// endLocked moves a call that is open to how it has ended. It reports false if it has ended before.
func (k *pooledCall) endLocked(how callState) bool {
	if k.state != callOpen {
		return false
	}
	k.state = how
	return true
}

func newCall(method string) *pooledCall {
	return &pooledCall{method: method, changed: make(chan struct{}, 1)}
}

// ask is a request of the server to the client.
type ask struct {
	id      jsonrpc.ID
	key     string          // the client's name for it
	request json.RawMessage // as the client gets it
}

func (h *Handler) call(a *reply, q *request) *httpcheck.Refusal {
	answers, why := q.inputResponses()
	if why != nil {
		return why
	}
	state, _ := q.Param("requestState").Text()
	k := h.resume(q, state, answers)
	if k == nil {
		if state != "" && h.forward(a, q, state) {
			return answered
		}
		k, why = h.send(a, q)
		if why != nil {
			return why
		}
	}
	if !h.follow(a, q, k) {
		k.cancel("the client has closed the response")
	}
	return nil
}

// send sends a request to the server, on a connection of its client.
func (h *Handler) send(a *reply, q *request) (*pooledCall, *httpcheck.Refusal) {
	k := newCall(q.Method)
	k.principal, k.level = q.principal, q.logLevel
	k.asks = stateless.AsksInput(q.Method) &&
		(q.declares("elicitation") || q.declares("sampling") || q.declares("roots"))
	k.exclusive = k.asks || q.logLevel != 0 && stateless.AsksInput(q.Method)
	pc, why := h.connect(a, q, k.exclusive)
	if why != nil {
		return nil, why
	}
	if why := pc.prepare(a, q, k); why != nil {
		h.pool.putBack(pc, k.exclusive)
		return nil, why
	}
	params, visit := stateless.TakeVisit(q.Params()) // the server has not asked for it
	if !pc.stateless {
		params = stateless.WithoutMeta(params)
	}
	pc.send(k, stateless.MarkVisit(params, visit), q.passed, a.r.Header)
	return k, nil
}

// prepare checks what only the server knows, and enters the call.
func (pc *pooledConn) prepare(a *reply, q *request, k *pooledCall) *httpcheck.Refusal {
	if q.Param("requestState").Value != nil && !pc.stateless {
		return invalidParams("requestState is not what this server gave out")
	}
	if q.Method == mcp.MethodCallTool {
		name, _ := q.Param("name").Text()
		for _, p := range pc.mirrored(name) {
			if why := checkArgument(a.r.Header, p, q); why != nil {
				return why
			}
		}
	}
	if k.level != 0 && !pc.stateless {
		pc.logFrom(k.level)
	}
	if a.isOver() { // it may have waited for the server
		return gone
	}
	if !pc.addCall(k) {
		return refused(http.StatusOK, errEnded)
	}
	return nil
}

// follow writes what comes of a call, until it is answered or needs input. It reports false
// if the client goes before.
func (h *Handler) follow(a *reply, q *request, k *pooledCall) bool {
	writing := 0
	defer func() { k.pc.c.CountQueued(-writing) }()
	for {
		k.pc.c.CountQueued(-writing)
		k.pc.mu.Lock()
		var notes [][]byte
		notes, writing = k.takeLocked()
		state, answer := k.state, k.answer
		asked := len(k.open) > 0
		settle := settleTime - time.Since(k.lastAsk)
		k.pc.mu.Unlock()
		for _, n := range notes {
			a.Message("", n)
		}
		var settled <-chan time.Time
		switch {
		case state == callAnswered:
			k.reply(a, q, answer)
			return true
		case asked && settle <= 0:
			h.askClient(a, k)
			return true
		case asked:
			settled = time.After(settle)
		}
		if !a.wait(k.changed, settled) {
			return false
		}
	}
}

// cancel cancels a request at the server. Its answer may still come.
func (k *pooledCall) cancel(reason string) {
	k.pc.mu.Lock()
	now := k.endLocked(callCancelled)
	asks := k.open
	k.open = nil
	_, size := k.takeLocked()
	k.pc.mu.Unlock()
	k.pc.c.CountQueued(-size)
	if !now {
		return
	}
	for _, a := range asks {
		k.pc.refuseAsk(a.id, "the call was cancelled")
	}
	params := fmt.Appendf(nil, `{"requestId":%s,"reason":%q}`, k.id, reason)
	k.pc.post(jsonrpc.NewNotification(mcp.MethodCancelled, params), nil, nil)
}

func (k *pooledCall) reply(a *reply, q *request, m *jsonrpc.Message) {
	if result := m.Result(); result != nil {
		if q.Method == mcp.MethodListTools {
			k.pc.group.tools.NotePage(q.Params(), result)
		}
		if _, typed := rawjson.Member(result, "resultType"); !typed || !k.pc.stateless {
			result = stateless.Complete(q.Method, result, k.pc.info())
		}
		a.result(result)
		return
	}
	e := stateless.ErrorOf(m.Error())
	data, _ := e.Data.(json.RawMessage)
	required, ok := stateless.RequiredCapabilities(data)
	switch {
	case e.Code == jsonrpc.CodeMethodNotFound:
		a.fail(http.StatusNotFound, e)
	case e.Code == mcp.CodeElicitationRequired:
		k.pc.askURLs(a, q, e)
	case e.Code == mcp.CodeResourceNotFound:
		e.Code = jsonrpc.CodeInvalidParams
		a.fail(http.StatusOK, e)
	// They would speak of the client's own request.
	case e.Code == mcp.CodeHeaderMismatch, e.Code == mcp.CodeUnsupportedVersion:
		e.Code = jsonrpc.CodeInternalError
		a.fail(http.StatusOK, e)
	case ok:
		a.fail(http.StatusBadRequest, missingCapability(required))
	default:
		a.fail(http.StatusOK, e)
	}
}

func missingCapability(required json.RawMessage) *jsonrpc.Error {
	e := jsonrpc.Errorf(mcp.CodeMissingCapability, "the server needs capabilities that the client has not declared")
	e.Data = struct {
		Required json.RawMessage `json:"requiredCapabilities"`
	}{required}
	return e
}
