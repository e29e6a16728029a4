package statelessclient

import (
	"net/http"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/clip"
	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/stateless"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Options configure a Handler.
type Options struct {
	// Options are those of every HTTP transport, with their defaults.
	httpcheck.Options
	// IdleTimeout closes a connection that no request has used for so long.
	IdleTimeout time.Duration
	// SamePeer says that the server sees nothing of the context of a request but the
	// principal, so that requests may share connections although PassRequest is set.
	SamePeer bool
}

const (
	// maxCalls bounds the connections of one client, and so its calls that may need input.
	maxCalls = 16
	// maxSuspended bounds the calls of all clients that wait for input.
	maxSuspended = 4096
	// callWait bounds how long a call waits for a connection of its client.
	callWait = 30 * time.Second
	// inputTimeout bounds how long a call waits for the client's input.
	inputTimeout = 5 * time.Minute
	// settleTime is how long a call waits for more requests of the server after one:
	// servers ask several things at once.
	settleTime = 20 * time.Millisecond
	// askTime bounds how long the handler waits for the answer to a request of its own.
	askTime = 5 * time.Second
	// maxQueued bounds the notifications that wait for one client, in bytes.
	maxQueued = 1 << 20
)

// Handler serves the requests of MCP 2026-07-28. It is safe for concurrent use. Its
// connections end when the gateway closes them, or when no request has used them for
// Options.IdleTimeout.
type Handler struct {
	checks    *httpcheck.Checker
	backend   httpcheck.Backend
	registry  *connstate.Registry
	opts      Options
	pool      *pool
	suspended *suspended
}

// New returns a Handler that opens its connections in registry.
func New(f *httpcheck.Checker, backend httpcheck.Backend, registry *connstate.Registry, o Options) *Handler {
	return &Handler{
		checks: f, backend: backend, registry: registry, opts: o,
		pool:      &pool{maxCalls: maxCalls, groups: make(map[string]*group), freed: make(chan struct{})},
		suspended: &suspended{max: maxSuspended, clustered: o.Cluster != nil, calls: make(map[string]*pooledCall)},
	}
}

// With returns a Handler with other options that uses the same connections.
func (h *Handler) With(f *httpcheck.Checker, o Options) *Handler {
	next := *h
	next.checks, next.opts = f, o
	return &next
}

// ServerReplaced makes later requests use connections that are opened from now on: what is
// known of the server is of another one.
func (h *Handler) ServerReplaced() { h.pool.retire() }

// ServePOST serves the message in a POST that has been admitted and read. principal is
// who was authenticated, and form that of the answer. It returns when the response is over.
func (h *Handler) ServePOST(w http.ResponseWriter, r *http.Request, principal string, m *jsonrpc.Message,
	form httpanswer.Form) {
	a := &reply{Writer: httpanswer.New(w, r, form, h.opts.WriteTimeout), w: w, r: r, id: m.ID, opts: &h.opts}
	if every := h.opts.HeartbeatInterval; every > 0 {
		t := time.NewTicker(every)
		defer t.Stop()
		a.beats = t.C
	}
	switch why := h.serve(a, principal, m); {
	case why == answered:
	case why == nil, why == gone:
		if !a.Written() { // the client is gone, or has half-closed and would read an empty 200
			panic(http.ErrAbortHandler)
		}
	case a.Streams(), why.Status == http.StatusOK:
		a.fail(why.Status, why.Err)
	default:
		answer := *why // a connection has it for all its requests
		answer.ID = m.ID
		h.checks.RefuseMessage(w, r, &answer)
	}
}

// Why a request is not served that gets no answer of the reply.
var (
	answered = &httpcheck.Refusal{} // it has its answer
	gone     = &httpcheck.Refusal{} // its client is gone
)

// serve serves a message, or says why it is refused.
func (h *Handler) serve(a *reply, principal string, m *jsonrpc.Message) *httpcheck.Refusal {
	switch m.Kind {
	case jsonrpc.Notification: // over HTTP, no notification of this version has a meaning
		a.w.WriteHeader(http.StatusAccepted)
		return answered
	case jsonrpc.Request:
	default:
		return httpcheck.Refused(http.StatusBadRequest, metrics.PostInvalidRequest,
			"a client sends no responses: send the answers with the request again")
	}
	q, why := parseRequest(m, principal)
	if why == nil {
		why = checkHeaders(a.r.Header, q)
	}
	if why == nil {
		why = checkVersion(q)
	}
	if why != nil {
		return why
	}
	q.passed, why = h.checks.Passed(a.r, principal)
	if why != nil {
		return why
	}
	switch m.Method {
	case mcp.MethodInitialize, mcp.MethodPing, mcp.MethodSetLevel, mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		return methodNotFound(m.Method)
	case mcp.MethodDiscover:
		return h.discover(a, q)
	case mcp.MethodListen:
		return h.listen(a, q)
	}
	if strings.HasPrefix(m.Method, "tasks/") { // another thing than the tasks extension of this version
		return methodNotFound(m.Method)
	}
	return h.call(a, q)
}

func methodNotFound(method string) *httpcheck.Refusal {
	return refused(http.StatusNotFound, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %.64s", method))
}

func checkVersion(q *request) *httpcheck.Refusal {
	if q.meta.Version == mcp.VersionStateless {
		return nil
	}
	e := jsonrpc.Errorf(mcp.CodeUnsupportedVersion, "protocol version %.32q is not supported", q.meta.Version)
	e.Data = struct {
		Supported []string `json:"supported"`
		Requested string   `json:"requested"`
	}{servedVersions(), clip.Long(q.meta.Version)}
	return refused(http.StatusBadRequest, e)
}

// servedVersions are those that the endpoint serves: of those with sessions, the ones since Streamable
// HTTP.
func servedVersions() []string {
	return append([]string{mcp.VersionStateless}, mcp.VersionsWithInitialize()[1:]...)
}

// discover answers server/discover with what the server has said of itself.
func (h *Handler) discover(a *reply, q *request) *httpcheck.Refusal {
	pc, why := h.connect(a, q, false)
	if why != nil {
		return why
	}
	defer h.pool.putBack(pc, false)
	a.result(stateless.Complete(q.Method, stateless.DiscoverResult(pc.result, servedVersions()), pc.info()))
	return nil
}
