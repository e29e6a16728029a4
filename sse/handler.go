package sse

import (
	"errors"
	"net/http"
	"strings"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/front"
)

// Handler serves the transport. It is an http.Handler, safe for concurrent use.
type Handler struct {
	*front.Front
	opts     Options
	backend  front.Backend
	registry *connstate.Registry
	engine   *engine
	messages string // what the paths of messages begin with
	path     string // of the stream
}

// New returns a Handler that opens its connections in registry. It fails when
// an option is wrong.
func New(backend front.Backend, registry *connstate.Registry, opts Options) (*Handler, error) {
	opts = opts.withDefaults()
	f, err := front.New(opts.Options)
	if err = errors.Join(err, checkDialect(string(opts.Dialect))); err != nil {
		return nil, err
	}
	return &Handler{
		Front: f, opts: opts, backend: backend, registry: registry, engine: newEngine(opts.WriteTimeout, opts.Metrics),
		path: opts.Prefix + "/sse", messages: opts.Prefix + "/sse/",
	}, nil
}

// ServeHTTP serves GET /sse and POST /sse/{id}/message under the prefix, or with
// SinglePath both at any path.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.opts.SinglePath {
		h.serveSinglePath(w, r)
		return
	}
	if id, ok := messageID(h.messages, r.URL.Path); ok {
		h.serveMessage(w, r, id)
		return
	}
	switch {
	case r.URL.Path == h.path:
		h.serveStream(w, r)
	case h.SiteAllowed(w, r):
		h.NotFound(w, r)
	}
}

// messageID returns the id of the connection in the path of a message for it, which
// begins with prefix.
func messageID(prefix, path string) (id string, ok bool) {
	rest, inside := strings.CutPrefix(path, prefix)
	id, message := strings.CutSuffix(rest, "/message")
	return id, inside && message && id != "" && !strings.Contains(id, "/")
}

// serveSinglePath takes a POST for a message, and all else for the stream.
func (h *Handler) serveSinglePath(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost || r.Header.Get("Access-Control-Request-Method") == http.MethodPost {
		h.serveMessage(w, r, r.URL.Query().Get(connectionParam))
		return
	}
	h.serveStream(w, r)
}

// connectionParam is the query parameter with the id of a connection, in an endpoint with
// a single path.
const connectionParam = "connectionId"

// admit checks a request whatever the route. It returns the principal, and whether to
// go on.
func (h *Handler) admit(w http.ResponseWriter, r *http.Request, method string) (string, bool) {
	allow := method
	if h.opts.SinglePath {
		allow = http.MethodGet + ", " + http.MethodPost
	}
	return h.Admit(w, r, r.Method == method, front.Route{Methods: allow, CORS: "GET, POST", Transport: "HTTP+SSE"})
}

// streamPath is the path of the stream, for messages.
func (h *Handler) streamPath(r *http.Request) string {
	if h.opts.SinglePath {
		return h.singlePath(r)
	}
	return h.OuterPrefix(r) + h.opts.Prefix + "/sse"
}

// endpoint is the path for the client's POSTs: the prefix that the client sees, and
// our route.
func (h *Handler) endpoint(r *http.Request, id string) string {
	if h.opts.SinglePath {
		return h.singlePath(r) + "?" + connectionParam + "=" + id
	}
	return h.streamPath(r) + "/" + id + "/message"
}

// singlePath is the path of the request as the client sees it. It is empty if it could be
// taken for something else: an endpoint without a path is one at the stream's own.
func (h *Handler) singlePath(r *http.Request) string {
	if path := h.OuterPrefix(r) + r.URL.EscapedPath(); front.SafePath(path) {
		return path
	}
	return ""
}
