package streamable

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/streamable/internal/statelessclient"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// streamAfter is how long a POST waits for its answers before its response becomes a
// stream, so that the client can come back for them.
const streamAfter = 500 * time.Millisecond

// Claims reports whether a request to an address that also serves HTTP+SSE is for this
// transport: all but a GET that names no session. The MCP-Protocol-Version of such a GET
// tells nothing, as clients of HTTP+SSE send it when they open their stream again, nor does
// its Last-Event-ID; only versions without HTTP+SSE do.
func Claims(r *http.Request) bool {
	return r.Method != http.MethodGet || r.Header.Get(headerSession) != "" ||
		isModern(r.Header.Get(httpcheck.HeaderVersion))
}

// Handler serves the transport. It is an http.Handler, safe for concurrent use.
type Handler struct {
	*httpcheck.Checker
	*sharedState
	opts        Options
	backend     httpcheck.Backend
	registry    *connstate.Registry
	modern      *statelessclient.Handler // for clients without sessions
	streamAfter time.Duration
}

// sharedState is what a Handler shares with those that With makes of it.
type sharedState struct {
	reopening sync.Mutex // held while a session is reopened; Accept does not block
	store     store

	mu       sync.Mutex                               // guards what follows
	sessions map[*connstate.Connection]*streamSession // whose id a client may know
	idle     idleSessions
}

// New returns a Handler that opens its connections in registry.
func New(backend httpcheck.Backend, registry *connstate.Registry, opts Options) *Handler {
	opts = opts.withDefaults()
	f := httpcheck.New(opts.Options)
	return &Handler{
		Checker: f, opts: opts, backend: backend, registry: registry, streamAfter: streamAfter,
		modern: statelessclient.New(f, backend, registry, opts.modern()),
		sharedState: &sharedState{store: store{limit: opts.MaxKeptBytes, count: registry.CountKept},
			sessions: make(map[*connstate.Connection]*streamSession)},
	}
}

// With returns a Handler with other options that serves the same sessions. Sessions and
// responses that are open keep theirs; MaxKeptBytes stays.
func (h *Handler) With(opts Options) *Handler {
	next := *h
	next.opts = opts.withDefaults()
	next.Checker = httpcheck.New(next.opts.Options)
	next.modern = h.modern.With(next.Checker, next.opts.modern())
	return &next
}

// AwaitsInput reports whether a call waits for input under a request state.
func (h *Handler) AwaitsInput(state string) bool { return h.modern.AwaitsInput(state) }

// ServerReplaced tells that the backend reaches another server from now on.
func (h *Handler) ServerReplaced() { h.modern.ServerReplaced() }

// ServeHTTP serves POST, GET and DELETE at any path: the caller mounts the Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	principal, ok := h.Admit(w, r, route(r))
	if !ok {
		return
	}
	q := &request{w: w, r: r, principal: principal, id: r.Header.Get(headerSession),
		version: r.Header.Get(httpcheck.HeaderVersion)}
	q.c = h.connection(q)
	if q.c != nil {
		h.Renew(connstate.ForTransport{Connection: q.c}, r)
	}
	var refusal *httpcheck.Refusal
	if q.c != nil {
		refusal = h.CheckNarrow(q.c, r)
	}
	switch {
	case refusal != nil:
	case r.Method == http.MethodPost:
		refusal = h.servePost(q)
	case r.Method == http.MethodGet:
		refusal = h.serveGet(q)
	default:
		refusal = h.serveDelete(q)
	}
	if refusal != nil {
		h.RefuseMessage(w, q.r, refusal)
	}
}

// request is an HTTP request that has passed the checks of package internal/httpcheck.
type request struct {
	w           http.ResponseWriter
	r           *http.Request
	principal   string
	id, version string                // the headers of the session and of the protocol version
	body        []byte                // of a POST
	c           *connstate.Connection // the principal's with that id; nil: none is open
}

// answer returns the writer of the answer to a request.
func (h *Handler) answer(q *request, form httpanswer.Form) *httpanswer.Writer {
	return httpanswer.New(q.w, q.r, form, h.opts.WriteTimeout)
}

// connection returns the connection that a request names, nil if the principal has none
// that is open.
func (h *Handler) connection(q *request) *connstate.Connection {
	if c, ok := h.registry.Find(q.id); ok && c.Client().Principal == q.principal {
		return c
	}
	return nil
}

// forward sends a request to the replica that holds its session, or to another one if the
// session leaves this one or has just ended. It reports false if this process has to answer.
func (h *Handler) forward(q *request) bool {
	return h.opts.Cluster != nil && (q.c == nil || q.c.Leaving()) && h.IsForeign(q.r, h.registry, q.id, q.principal) &&
		h.Forward(q.w, q.r, httpcheck.Forward{
			ID: q.id, Principal: q.principal, Body: q.body, Resumes: !h.opts.RequireInitialize,
		})
}

// route returns what a request may use: clients without sessions have only POST (MCP
// 2026-07-28, transports), and so has a GET that names none.
func route(r *http.Request) httpcheck.Route {
	route := httpcheck.Route{Methods: "GET, POST, DELETE", CORS: "GET, POST, DELETE", Transport: "Streamable HTTP"}
	if r.Header.Get(headerSession) == "" && isModern(r.Header.Get(httpcheck.HeaderVersion)) || !Claims(r) {
		route.Methods = http.MethodPost
	}
	return route
}

// open makes a session for a request, in the state that says how it was opened: sessionUsed under the id of an earlier
// one, which the request names.
func (h *Handler) open(q *request, ctx context.Context, opened sessionState) (*streamSession, *httpcheck.Refusal) {
	client := h.Client(q.r, q.principal, connstate.TransportStreamable)
	client.Quiet, client.Dialect, client.Context = true, connstate.EventMessage, ctx
	var refusal *httpcheck.Refusal
	if client.Narrow, refusal = h.Narrow(q.r); refusal != nil {
		return nil, refusal
	}
	c, refusal := h.Open(h.registry, client, q.id, h.evict)
	if refusal != nil {
		return nil, refusal
	}
	s := &streamSession{h: h, c: c, release: h.Adopt(h.registry, c.ID()), state: opened,
		calls: make(map[jsonrpc.ID]*stream), streams: make(map[int64]*stream)}
	s.use.Enter()
	if q.id != "" {
		s.earlier = time.Now().UnixMicro()
		s.last = s.earlier
	}
	c.DeliverTo(s.deliver)
	c.OnClose(s.endStreams)
	c.SawFirstByte()
	c.Bind(h.backend.Accept(c.Connection))
	allowed, _ := s.allowed()
	s.stopExpiry = httpcheck.Repeat(allowed, s.expire)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sessions[c.Connection] = s
	return s, nil
}

// enter returns the session of a connection, and counts the request in it: the caller must
// call releaseRequest. It returns nil if c is nil, of another transport, or about to end.
func (h *Handler) enter(c *connstate.Connection) *streamSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[c]
	if s == nil || !s.use.Enter() {
		return nil
	}
	return s
}

// remove forgets a session that is over, and that no request uses.
func (h *Handler) remove(s *streamSession) {
	h.mu.Lock()
	delete(h.sessions, s.c.Connection)
	h.mu.Unlock()
	s.stopExpiry()
	s.release()
	h.store.forget(s) // not before: a response may still read from it
	h.registry.Remove(s.c.Connection)
	h.LogClosed(s.c.Connection)
}
