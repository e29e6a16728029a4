package stateless

import (
	"net/http"
	"time"

	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// call serves a request that goes to the server.
func (h *Handler) call(a *reply, q *request) *front.Refusal {
	given, why := inputResponses(q)
	if why != nil {
		return why
	}
	if state, ok := jsonrpc.Member(q.Params(), "requestState"); ok {
		k, why := h.resume(q, state, given)
		if why != nil {
			return why
		}
		h.follow(a, q, k)
		return nil
	}
	o := callOptions{asks: q.mayAsk(), level: q.logLevel}
	o.exclusive = o.asks || o.level != 0 && asksInput(q.Method)
	l, why := h.connect(a, q, o.exclusive)
	if l == nil {
		return why
	}
	k, why := l.prepare(a, q, o)
	if k == nil {
		h.pool.release(l, o.exclusive)
		return why
	}
	k.given = given
	l.send(k)
	h.follow(a, q, &heldCall{call: k})
	return nil
}

// prepare checks what only the server knows, and enters the call. Without one it returns
// why, or has answered the request.
func (l *link) prepare(a *reply, q *request, o callOptions) (*call, *front.Refusal) {
	ctx := a.r.Context()
	if q.Method == mcp.MethodCallTool {
		if why := l.checkArguments(ctx, a.r.Header, q); why != nil {
			return nil, why
		}
		if a.over() { // it may have waited for a list of the tools
			return nil, nil
		}
	}
	k, err := l.begin(q.Method, q.plainParams(), q.passed, o)
	if err != nil {
		a.fail(http.StatusOK, errEnded)
		return nil, nil
	}
	if o.level != 0 {
		l.setLevel(ctx, k)
	}
	return k, nil
}

// follow writes what comes of a call, until it is answered, needs input, or the client
// goes.
func (h *Handler) follow(a *reply, q *request, k *heldCall) {
	beats, stop := a.beats()
	defer stop()
	for {
		s := k.take()
		for _, n := range s.notes {
			a.event(n)
		}
		var settled <-chan time.Time
		switch {
		case s.answer != nil:
			k.l.answer(a, q, s.answer, k.lacks())
			return
		case s.asked && s.settle == 0:
			h.askClient(a, q, k)
			return
		case s.asked:
			settled = time.After(s.settle)
		}
		a.flush()
		if a.over() {
			k.cancel("the client has closed the response")
			return
		}
		select {
		case <-k.changed:
		case <-settled:
		case <-beats:
			a.beat()
		case <-a.r.Context().Done():
		}
	}
}
