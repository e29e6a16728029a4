package stateless

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/internal/deadline"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/multiplex/sharing"
)

// link is a connection of the pool, and the requests on it.
type link struct {
	h     *Handler
	key   key
	owner owner
	group *group

	// Guarded by pool.mu:
	users   int                   // requests that use the connection
	busy    bool                  // an exclusive call is among them
	removed bool                  // it is no longer in the pool
	since   time.Time             // when users became 0
	idle    deadline.Entry[*link] // while users is 0

	// ready is closed when the handshake is over. Before that, its owner, which is the
	// request that took the new link, sets what follows.
	ready   chan struct{}
	single  bool                  // it serves one request
	c       *connstate.Connection // nil: it could not be opened
	refusal *front.Refusal        // why it could not be opened
	result  json.RawMessage       // of initialize; nil: it failed
	fault   *jsonrpc.Message      // the error response to initialize
	caps    json.RawMessage       // that the client has declared

	mu        sync.Mutex // guards what follows
	over      bool
	lastID    int64
	calls     map[jsonrpc.ID]*call // not answered, by their ids on the connection
	asker     *call                // the exclusive call
	listeners map[*listener]struct{}
	levels    sharing.Levels[*call]
	levelLock chan struct{} // has room for the one request that changes the level
	resources sharing.Subscriptions[*listener]
	turns     map[string]chan struct{} // resources whose subscription changes; closed after that
}

func newLink(h *Handler, k key, g *group) *link {
	return &link{
		h: h, key: k, group: g, ready: make(chan struct{}),
		calls: make(map[jsonrpc.ID]*call), levelLock: make(chan struct{}, 1), turns: make(map[string]chan struct{}),
	}
}

// open opens the connection and begins its handshake.
func (l *link) open(client connstate.Client, q *request) {
	c, err := l.h.registry.Open(client)
	if err != nil && l.h.pool.evict(l.owner, err) {
		c, err = l.h.registry.Open(client)
	}
	if err != nil {
		l.refuse(limitRefusal(err))
		return
	}
	l.c, l.caps = c, q.capabilities
	c.SetContext(client.Context)
	c.Divert(l.deliver)
	c.OnClose(l.closed)
	c.OnDrain(func() { l.h.held.cancel(l) })
	l.h.front.LogOpened(c)
	c.SawFirstByte() // there is no stream to wait for
	c.SawVersion(q.version)
	c.Bind(l.h.backend.Accept(c))
	k, err := l.begin(mcp.MethodInitialize, initializeParams(q), client.Context, callOptions{own: true, opening: true})
	if err != nil { // it was closed meanwhile
		l.refuse(refused(http.StatusServiceUnavailable, errEnded))
		return
	}
	l.send(k)
}

// refuse ends the handshake of a connection that cannot be used.
func (l *link) refuse(why *front.Refusal) {
	l.refusal = why
	l.h.pool.remove(l)
	close(l.ready)
}

// initializeParams returns the params of initialize for the client of a request.
func initializeParams(q *request) json.RawMessage {
	info := q.info
	if info == nil {
		info = json.RawMessage(`{"name":"unknown","version":"0"}`)
	}
	params := json.RawMessage(`{"protocolVersion":"` + mcp.VersionNewest + `"}`)
	params = jsonrpc.SetMember(params, withInputKeys(jsonrpc.RemoveMember(q.capabilities, "tasks")), "capabilities")
	return jsonrpc.SetMember(params, info, "clientInfo")
}

// withInputKeys returns capabilities with mcp.InputKeys.
func withInputKeys(capabilities json.RawMessage) json.RawMessage {
	experimental, ok := jsonrpc.Member(capabilities, "experimental")
	if !ok || experimental[0] != '{' {
		experimental = json.RawMessage("{}")
	}
	experimental = jsonrpc.SetMember(experimental, json.RawMessage("{}"), mcp.InputKeys)
	return jsonrpc.SetMember(capabilities, experimental, "experimental")
}

// initialized ends the handshake with the answer to initialize.
func (l *link) initialized(m *jsonrpc.Message) {
	if m.Result() == nil {
		l.fault = m
		close(l.ready)
		return
	}
	l.result = m.Result()
	l.post(jsonrpc.NewNotification(mcp.MethodInitialized, nil))
	close(l.ready)
}

var errEnded = jsonrpc.ReasonError("the session with the server has ended", "session_lost", true)

// awaitReady waits for the end of the handshake, and reports whether the request can be
// served. If not, it returns why, or has answered the request.
func (l *link) awaitReady(a *reply, q *request) (bool, *front.Refusal) {
	if !a.await(l.ready) {
		return false, nil
	}
	switch {
	case l.refusal != nil:
		copied := *l.refusal // it gets the request's id
		return false, &copied
	case l.fault != nil:
		l.close(metrics.ClosedError)
		a.fail(http.StatusOK, errorOf(l.fault.Error()))
		return false, nil
	}
	if err := l.c.Takes(q.Message); err != nil {
		return false, front.RefusedBusy(err)
	}
	return true, nil
}

// post passes a message to the backend as the client's.
func (l *link) post(message []byte) { l.postWith(message, nil) }

func (l *link) postWith(message []byte, ctx context.Context) {
	m, err := jsonrpc.Parse(message)
	if err != nil {
		return // it was made from valid parts
	}
	m.Context = ctx
	l.c.Observe(m, "")
	l.c.Receive(m)
}

// begin enters a request, which send then sends. It fails once the connection is over.
func (l *link) begin(method string, params json.RawMessage, ctx context.Context, o callOptions) (*call, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return nil, errEnded
	}
	l.lastID++
	k := &call{
		callOptions: o, l: l, id: jsonrpc.ID(strconv.FormatInt(l.lastID, 10)), method: method,
		params: params, ctx: ctx, changed: make(chan struct{}, 1),
	}
	l.calls[k.id] = k
	if o.exclusive {
		l.asker = k
	}
	return k, nil
}

func (l *link) send(k *call) { l.postWith(jsonrpc.NewRequest(k.id, k.method, k.params), k.ctx) }

// ask sends a request of the handler's own and waits for the answer. It fails when ctx
// ends or the connection is over.
func (l *link) ask(ctx context.Context, method string, params json.RawMessage) (*jsonrpc.Message, error) {
	k, err := l.begin(method, params, l.c.Client().Context, callOptions{own: true})
	if err != nil {
		return nil, err
	}
	l.send(k)
	for {
		if s := k.take(); s.answer != nil {
			return s.answer, nil
		}
		select {
		case <-k.changed:
		case <-ctx.Done():
			k.cancel("no longer needed")
			return nil, ctx.Err()
		}
	}
}

// answered takes the answer to a request of the connection.
func (l *link) answered(id jsonrpc.ID, response []byte) {
	m := parseAnswer(response)
	l.mu.Lock()
	k := l.calls[id]
	if k == nil {
		l.mu.Unlock()
		return
	}
	delete(l.calls, id)
	l.levels.Leave(k)
	if l.asker == k {
		l.asker = nil
	}
	k.answer = m
	if !k.cancelled && !k.own {
		l.hold(&k.queued, len(response))
	}
	asks := k.open
	k.open = nil
	k.signal()
	l.mu.Unlock()
	for _, a := range asks { // the server no longer needs them
		l.refuseAsk(a.id, "the call is over")
	}
	switch {
	case k.opening:
		l.initialized(m)
	case !k.own:
		l.h.pool.release(l, k.exclusive)
	}
}

// parseAnswer returns the message of a response, which the gateway has made or checked.
func parseAnswer(response []byte) *jsonrpc.Message {
	if r, ok := jsonrpc.ParseReply(response); ok {
		return &r.Message
	}
	m, err := jsonrpc.Parse(response)
	if err != nil || m.Kind != jsonrpc.Response {
		e := jsonrpc.ReasonError("the server's answer cannot be used", "invalid_response", false)
		m, _ = jsonrpc.Parse(jsonrpc.NewError(jsonrpc.Null, e))
	}
	return m
}

// close closes the connection.
func (l *link) close(reason string) {
	if l.c != nil {
		l.c.Close(reason)
	}
}

// closed ends what is on a connection that has been closed.
func (l *link) closed() {
	l.h.pool.remove(l)
	l.mu.Lock()
	l.over = true
	var open []jsonrpc.ID
	for id := range l.calls {
		open = append(open, id)
	}
	for s := range l.listeners {
		s.end()
	}
	l.mu.Unlock()
	for _, id := range open {
		l.answered(id, jsonrpc.NewError(id, errEnded))
	}
	l.h.registry.Remove(l.c)
	l.h.front.LogClosed(l.c)
}

// errorOf returns the error in an error object. Its data stays as it came.
func errorOf(raw json.RawMessage) *jsonrpc.Error {
	var e struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if json.Unmarshal(raw, &e) != nil {
		return errUnreadable
	}
	out := &jsonrpc.Error{Code: e.Code, Message: e.Message}
	if e.Data != nil {
		out.Data = e.Data
	}
	return out
}

var errUnreadable = jsonrpc.Errorf(jsonrpc.CodeInternalError, "the server answered with an unreadable error")
