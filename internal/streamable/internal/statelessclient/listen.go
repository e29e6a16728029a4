package statelessclient

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/stateless"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// listen serves subscriptions/listen: a stream of the changes that the client asks for,
// as long as the connection lasts.
func (h *Handler) listen(a *reply, q *request) *httpcheck.Refusal {
	wanted, ok := stateless.ReadFilter(q.Params())
	if !ok {
		return invalidParams("params.notifications must be an object that says what to listen for")
	}
	slices.Sort(wanted.URIs)
	wanted.URIs = slices.Compact(wanted.URIs)
	if a.Form() == httpanswer.FormJSON {
		return httpcheck.Refused(http.StatusNotAcceptable, metrics.PostNotAcceptable,
			"the Accept header must list text/event-stream: changes come on a stream")
	}
	if !a.CanStream() {
		return refused(http.StatusInternalServerError,
			jsonrpc.ReasonError("streaming is not possible here", "no_stream", false))
	}
	pc, why := h.connect(a, q, false)
	if why != nil {
		return why
	}
	defer h.pool.putBack(pc, false)
	k := newCall(q.Method)
	k.pc, k.id = pc, q.ID
	ctx, cancel := context.WithCancel(a.r.Context())
	defer cancel()
	subscribed := make(chan []string)
	go func() { subscribed <- pc.subscribe(ctx, k, wanted) }() // ends with ctx
	h.follow(a, q, k)
	cancel()
	pc.unsubscribe(k, <-subscribed)
	return nil
}

// endListen ends the stream of a subscriptions/listen. The caller holds pooledConn.mu.
func (k *pooledCall) endListen() {
	meta := rawjson.SetMember(json.RawMessage("{}"), json.RawMessage(k.id), mcp.MetaSubscription)
	if k.endLocked(callAnswered) {
		k.answer = parseAnswer(jsonrpc.NewResult(k.id, rawjson.SetMember(json.RawMessage("{}"), meta, "_meta")))
		k.signal()
	}
}

// subscribe enters a listener, and acknowledges what it gets of what it wants: what the
// server has declared, and the resources that the server lets the connection subscribe to.
// It returns the resources that the server may think it subscribes to.
func (pc *pooledConn) subscribe(ctx context.Context, k *pooledCall, wanted stateless.Filter) []string {
	got := wanted.And(stateless.ChangingLists(pc.result))
	var asked []string
	for _, uri := range wanted.URIs {
		if !pc.declares("resources", "subscribe") {
			break
		}
		ok, err := pc.subscribeTo(ctx, k, uri)
		if ok {
			got.URIs = append(got.URIs, uri)
		}
		if ok || err != nil {
			asked = append(asked, uri)
		}
		if err != nil { // nobody waits, or the server does not answer
			break
		}
	}
	pc.enterListener(k, got)
	for _, method := range got.Lists() {
		pc.c.Listen(method)
	}
	return asked
}

// enterListener enters a listener with what it gets, and acknowledges that.
func (pc *pooledConn) enterListener(k *pooledCall, gets stateless.Filter) {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	pc.listeners[k] = gets
	k.addLocked(stateless.Mark(mcp.MethodAcknowledged, gets.Params(), json.RawMessage(k.id)))
	if pc.isOver() { // closed would not find it
		k.endListen()
	}
}

// subscribeTo subscribes a listener to a resource, and reports whether that worked. Only
// the first subscriber to a resource needs the server. It fails if the server does not
// answer in time.
func (pc *pooledConn) subscribeTo(ctx context.Context, k *pooledCall, uri string) (ok bool, err error) {
	err = pc.inTurn(ctx, func(ctx context.Context) error {
		pc.mu.Lock()
		done, tooMany := pc.resources.Subscribe(uri, k)
		pc.mu.Unlock()
		ok = done
		if done || tooMany {
			return nil
		}
		m, err := pc.callServer(ctx, mcp.MethodSubscribe, stateless.URIParams(uri))
		if err != nil || m.Result() == nil {
			return err
		}
		pc.mu.Lock()
		defer pc.mu.Unlock()
		pc.resources.Add(uri, k)
		ok = true
		return nil
	})
	return ok, err
}

// unsubscribe removes a listener, and ends its subscriptions, which are to these
// resources, at the server. A server that does not answer is not told of the others.
func (pc *pooledConn) unsubscribe(k *pooledCall, uris []string) {
	pc.mu.Lock()
	delete(pc.listeners, k)
	_, size := k.takeLocked()
	pc.mu.Unlock()
	pc.c.CountQueued(-size)
	for _, uri := range uris {
		err := pc.inTurn(context.Background(), func(ctx context.Context) error { // its client is gone
			pc.mu.Lock()
			last := pc.resources.Unsubscribe(uri, k)
			pc.mu.Unlock()
			if !last {
				return nil
			}
			_, err := pc.callServer(ctx, mcp.MethodUnsubscribe, stateless.URIParams(uri))
			return err
		})
		if err != nil {
			break
		}
	}
	pc.mu.Lock()
	defer pc.mu.Unlock()
	pc.resources.Leave(k)
}
