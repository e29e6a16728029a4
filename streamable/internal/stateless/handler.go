package stateless

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Handler serves the requests of MCP 2026-07-28. It is safe for concurrent use.
//
// It has no goroutine of its own. Its connections end like those of other transports:
// when the gateway closes them, and otherwise when no request has used them for
// Options.ConnectionTimeout.
type Handler struct {
	front    *front.Front
	backend  front.Backend
	registry *connstate.Registry
	opts     Options
	pool     *pool
	held     *held
}

// New returns a Handler that opens its connections in registry.
func New(f *front.Front, backend front.Backend, registry *connstate.Registry, o Options) *Handler {
	h := &Handler{front: f, backend: backend, registry: registry, opts: o.withDefaults()}
	h.pool = newPool(h)
	h.held = newHeld(h.opts.InputTimeout, 4*h.opts.MaxCalls)
	return h
}

// ServePOST serves the message in a POST that has been admitted and read. principal is
// who was authenticated, and stream says that the client prefers results on a stream. It
// returns when the response is over.
func (h *Handler) ServePOST(w http.ResponseWriter, r *http.Request, principal string, m *jsonrpc.Message, stream bool) {
	a := newReply(w, r, m.ID, &h.opts)
	a.streams = stream
	why := h.serve(a, principal, m)
	switch {
	case why == nil:
	case a.stream != nil:
		a.fail(why.Status, why.Err)
	default:
		why.ID = m.ID
		h.front.RefuseMessage(w, r, why)
	}
}

// serve serves a message, or says why it is refused.
func (h *Handler) serve(a *reply, principal string, m *jsonrpc.Message) *front.Refusal {
	switch m.Kind {
	case jsonrpc.Notification: // over HTTP, no notification of this version has a meaning
		a.w.WriteHeader(http.StatusAccepted)
		return nil
	case jsonrpc.Request:
	default:
		return front.Refused(http.StatusBadRequest, metrics.PostInvalidRequest, "a client sends no responses: send the answers with the request again")
	}
	q, why := parseRequest(m, principal)
	if why == nil {
		why = checkHeaders(a.r.Header, q)
	}
	if why == nil {
		why = h.checkVersion(q)
	}
	if why != nil {
		return why
	}
	var status int
	var err error
	if q.passed, status, err = h.front.Passed(a.r, principal); err != nil {
		return front.Refused(status, metrics.PostBadRequest, "%v", err)
	}
	switch {
	case removed(m.Method):
		return methodNotFound(m.Method)
	case m.Method == mcp.MethodDiscover:
		return h.discover(a, q)
	case m.Method == mcp.MethodListen:
		return h.listen(a, q)
	}
	return h.call(a, q)
}

func methodNotFound(method string) *front.Refusal {
	return refused(http.StatusNotFound, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %.64s", method))
}

// removed reports whether this version no longer has a method.
func removed(method string) bool {
	switch method {
	case mcp.MethodInitialize, mcp.MethodPing, mcp.MethodSetLevel, mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		return true
	}
	// Tasks of 2025-11-25 are another thing than the extension of this version.
	return strings.HasPrefix(method, "tasks/")
}

// checkVersion refuses requests of other versions.
func (h *Handler) checkVersion(q *request) *front.Refusal {
	if q.version == mcp.VersionStateless {
		return nil
	}
	e := jsonrpc.Errorf(mcp.CodeUnsupportedVersion, "protocol version %.32q is not supported", q.version)
	e.Data = struct {
		Supported []string `json:"supported"`
		Requested string   `json:"requested"`
	}{h.versions(), q.version[:min(64, len(q.version))]}
	return refused(http.StatusBadRequest, e)
}

// versions are the versions that the endpoint serves.
func (h *Handler) versions() []string {
	return append([]string{mcp.VersionStateless}, h.opts.LegacyVersions...)
}

// discover answers server/discover with what the server has said of itself.
func (h *Handler) discover(a *reply, q *request) *front.Refusal {
	l, why := h.connect(a, q, false)
	if l == nil {
		return why
	}
	defer h.pool.release(l, false)
	result := json.RawMessage("{}")
	set := func(name string, value json.RawMessage) { result = jsonrpc.SetMember(result, value, name) }
	versions, _ := json.Marshal(h.versions()) // strings always have a JSON form
	set("supportedVersions", versions)
	capabilities, ok := jsonrpc.Member(l.result, "capabilities")
	if !ok || capabilities[0] != '{' {
		capabilities = json.RawMessage("{}")
	}
	set("capabilities", jsonrpc.RemoveMember(capabilities, "tasks"))
	if instructions, ok := jsonrpc.Member(l.result, "instructions"); ok {
		set("instructions", instructions)
	}
	a.result(l.complete(q.Method, result))
	return nil
}
