package statelessclient

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/closed"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/idle"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/multiplex/sharing"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/stateless"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// pooledConn is a connection of the pool, and the requests on it.
type pooledConn struct {
	h     *Handler
	key   string
	group *group

	// Guarded by pool.mu:
	use  idle.Use // by requests; over: the connection is not in the pool, and ends with the last one
	busy bool     // an exclusive call is among them

	// open and initialize set these before they close ready.
	ready      chan struct{}          // closed when the handshake is over
	c          connstate.ForTransport // empty: it could not be opened
	stopExpiry func()                 // the timer of expire
	refusal    *httpcheck.Refusal     // why it cannot be used
	result     json.RawMessage        // of initialize
	caps       json.RawMessage        // that the client has declared
	// stateless says that the server takes requests of this version as they are.
	stateless bool

	// turn is for the one request of the handler's own that is under way: none may overtake
	// another.
	turn  *semaphore.Weighted
	level sharing.Level // the lowest that a call has asked for; 0: none has; turn guards it

	mu        sync.Mutex // guards what follows, and the calls and listeners
	lastID    int64
	calls     map[jsonrpc.ID]*pooledCall       // not answered, by their ids on the connection
	listeners map[*pooledCall]stateless.Filter // of subscriptions/listen, with what they listen for
	resources sharing.Subscriptions[*pooledCall]
}

func newPooledConn(key string, g *group) *pooledConn {
	return &pooledConn{
		key: key, group: g, ready: make(chan struct{}), turn: semaphore.NewWeighted(1),
		calls: make(map[jsonrpc.ID]*pooledCall), listeners: make(map[*pooledCall]stateless.Filter),
	}
}

// errEnded is the error of a request that the server has not got.
var errEnded = sessionEnded(true)

func sessionEnded(retryable bool) *jsonrpc.Error {
	return jsonrpc.ReasonError("the session with the server has ended", "session_lost", retryable)
}

// open opens the connection, and begins its handshake.
func (pc *pooledConn) open(h *Handler, client connstate.Client, q *request) {
	pc.h, pc.caps = h, q.meta.Capabilities
	c, refusal := h.checks.Open(h.registry, client, "", h.pool.evict)
	if refusal != nil {
		pc.refuse(refusal)
		return
	}
	pc.c = c
	pc.stopExpiry = httpcheck.Repeat(h.opts.IdleTimeout, pc.expire)
	c.DeliverTo(pc.deliver)
	c.OnClose(pc.closed)
	if h.opts.Cluster == nil { // else the other replicas send the input here
		c.OnDrain(func() { h.suspended.cancel(pc) })
	}
	c.SawFirstByte() // there is no stream to wait for
	c.SawVersion(q.meta.Version)
	handler := h.backend.Accept(c.Connection)
	c.Bind(handler)
	go pc.initialize(q.meta.Initialize(), handler) // ends with the answer, and with the connection
}

func (pc *pooledConn) initialize(params json.RawMessage, handler connstate.Handler) {
	m, err := pc.callServer(context.Background(), mcp.MethodInitialize, params)
	switch {
	case err != nil: // it was closed meanwhile
		pc.refuse(refused(http.StatusServiceUnavailable, errEnded))
		return
	case m.Result() == nil:
		pc.c.Close(connstate.ClosedServer)
		pc.refuse(refused(http.StatusOK, stateless.ErrorOf(m.Error())))
		return
	}
	pc.result = m.Result()
	if known, ok := handler.(httpcheck.Stateless); ok {
		pc.stateless = known.Stateless()
	}
	pc.post(jsonrpc.NewNotification(mcp.MethodInitialized, nil), nil, nil)
	close(pc.ready)
}

// refuse ends the handshake of a connection that cannot be used.
func (pc *pooledConn) refuse(why *httpcheck.Refusal) {
	pc.refusal = why
	pc.h.pool.remove(pc)
	close(pc.ready)
}

// awaitReady waits for the end of the handshake, and returns why the request cannot be
// served.
func (pc *pooledConn) awaitReady(a *reply, q *request) *httpcheck.Refusal {
	for {
		select {
		case <-pc.ready:
			if err := pc.refusal; err != nil {
				return err
			}
			if err := pc.c.CheckBudget(q.Message); err != nil {
				return httpcheck.RefusedBusy(err)
			}
			return nil
		default:
		}
		if !a.wait(pc.ready, nil) {
			return gone
		}
	}
}

func (pc *pooledConn) declares(names ...string) bool {
	return mcp.Declares(pc.result, append([]string{"capabilities"}, names...)...)
}

// info returns the server's name for itself; nil: it has none.
func (pc *pooledConn) info() json.RawMessage {
	info, _ := rawjson.Member(pc.result, "serverInfo")
	return info
}

// post passes a message to the backend as the client's, with the headers of the client's POST.
// It reports false if the message is invalid.
func (pc *pooledConn) post(message []byte, ctx context.Context, header http.Header) bool {
	m, err := jsonrpc.Parse(message)
	if err != nil {
		return false
	}
	m.Context = ctx
	pc.c.SetParent(m, header)
	pc.c.Observe(m, "")
	pc.c.Receive(m)
	return true
}

// isOver reports whether the connection is closed. Code that adds a call or a subscription must check it while it holds
// mu: if the connection is not over then, closed runs later, and ends what was added.
func (pc *pooledConn) isOver() bool { return closed.Is(pc.c.Done()) }

// addCall enters a request, which send then sends. It reports false once the connection is
// over.
func (pc *pooledConn) addCall(k *pooledCall) bool {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	if pc.isOver() {
		return false
	}
	pc.lastID++
	k.pc, k.id = pc, jsonrpc.NumberID(pc.lastID)
	pc.calls[k.id] = k
	return true
}

func (pc *pooledConn) send(k *pooledCall, params json.RawMessage, ctx context.Context, header http.Header) {
	// A method may be too long once it is quoted anew.
	if !pc.post(jsonrpc.NewRequest(k.id, k.method, params), ctx, header) {
		pc.answered(k.id, jsonrpc.NewError(k.id,
			jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "the request cannot be passed on")))
	}
}

// callServer sends a request of the handler's own and waits for the answer. It fails when ctx
// ends or the connection is over.
func (pc *pooledConn) callServer(ctx context.Context, method string, params json.RawMessage) (*jsonrpc.Message, error) {
	k := newCall(method)
	k.own = true
	if !pc.addCall(k) {
		return nil, errEnded
	}
	pc.send(k, params, pc.c.Client().Context, nil)
	select {
	case <-k.changed: // the answer: nobody else tells it anything
		return k.answer, nil
	case <-ctx.Done():
		k.cancel("no longer needed")
		return nil, ctx.Err()
	}
}

// inTurn runs do, which asks the server something, when nothing else does. do must end
// with its context, which lasts at most askTime.
func (pc *pooledConn) inTurn(ctx context.Context, do func(context.Context) error) error {
	waiting, cancel := context.WithTimeout(ctx, 2*askTime)
	defer cancel()
	if err := pc.turn.Acquire(waiting, 1); err != nil {
		return err
	}
	defer pc.turn.Release(1)
	ctx, cancel = context.WithTimeout(ctx, askTime)
	defer cancel()
	return do(ctx)
}

// logFrom has the server send log messages of that level and above. If it refuses, there are
// none.
func (pc *pooledConn) logFrom(level sharing.Level) {
	_ = pc.inTurn(context.Background(), func(ctx context.Context) error {
		if pc.level != 0 && pc.level <= level || !pc.declares("logging") {
			return nil
		}
		pc.level = level
		_, err := pc.callServer(ctx, mcp.MethodSetLevel, json.RawMessage(`{"level":"`+level.String()+`"}`))
		return err
	})
}

// mirrored returns the mirrored arguments of a tool. If they are not known, the server is
// asked for its tools, once for all calls that wait for it. If that does not work, no
// arguments are checked: the server refuses the call, if it knows the tool.
func (pc *pooledConn) mirrored(tool string) []stateless.Param {
	tools := &pc.group.tools
	params, known := tools.Mirrored(tool)
	if known || !pc.declares("tools") {
		return params
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTime) // others may wait for it too
	defer cancel()
	tools.List(func(params json.RawMessage) (*jsonrpc.Message, error) {
		return pc.callServer(ctx, mcp.MethodListTools, params)
	})
	params, _ = tools.Mirrored(tool)
	return params
}

// answered takes the answer to a request of the connection.
func (pc *pooledConn) answered(id jsonrpc.ID, response []byte) {
	m := parseAnswer(response)
	pc.mu.Lock()
	k := pc.calls[id]
	if k == nil {
		pc.mu.Unlock()
		return
	}
	delete(pc.calls, id)
	if k.endLocked(callAnswered) {
		k.answer = m
		if !k.own {
			k.queueLocked(len(response))
		}
	}
	asks := k.open
	k.open = nil
	k.signal()
	pc.mu.Unlock()
	for _, a := range asks { // the server no longer needs them
		pc.refuseAsk(a.id, "the call is over")
	}
	if !k.own {
		pc.h.pool.putBack(pc, k.exclusive)
	}
}

// parseAnswer returns the message of a response, which the gateway has made or checked.
func parseAnswer(response []byte) *jsonrpc.Message {
	m, err := jsonrpc.Parse(response)
	if err != nil || m.Kind != jsonrpc.Response {
		e := jsonrpc.ReasonError("the server's answer cannot be used", "invalid_response", false)
		m, _ = jsonrpc.Parse(jsonrpc.NewError(jsonrpc.Null, e))
	}
	return m
}

// closed ends what is on a connection that has been closed.
func (pc *pooledConn) closed() {
	pc.stopExpiry()
	pc.h.pool.remove(pc)
	pc.mu.Lock()
	var open []jsonrpc.ID
	for id := range pc.calls {
		open = append(open, id)
	}
	for k := range pc.listeners {
		k.endListen()
	}
	pc.mu.Unlock()
	for _, id := range open {
		pc.answered(id, jsonrpc.NewError(id, sessionEnded(!pc.c.Committed(id))))
	}
	pc.h.registry.Remove(pc.c.Connection)
	pc.h.checks.LogClosed(pc.c.Connection)
}
