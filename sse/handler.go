package sse

import (
	"net/http"
	"strings"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
)

// Handler serves the transport. It is an http.Handler, safe for concurrent use.
type Handler struct {
	*httpcheck.Checker
	opts     Options
	backend  httpcheck.Backend
	registry *connstate.Registry
	engine   *engine
}

// New returns a Handler that opens its connections in registry. It fails when
// an option is wrong.
func New(backend httpcheck.Backend, registry *connstate.Registry, opts Options) (*Handler, error) {
	opts.Options = opts.Options.WithDefaults()
	if err := checkDialect(string(opts.Dialect)); err != nil {
		return nil, err
	}
	return &Handler{
		Checker: httpcheck.New(opts.Options), opts: opts, backend: backend, registry: registry,
		engine: newEngine(opts.WriteTimeout),
	}, nil
}

// With returns a Handler with other options that serves the same connections. Streams that
// are open keep theirs; the WriteTimeout stays.
func (h *Handler) With(opts Options) *Handler {
	next := *h
	next.opts = opts
	next.opts.Options = opts.Options.WithDefaults()
	next.Checker = httpcheck.New(next.opts.Options)
	return &next
}

// ServeHTTP serves the stream at any path, and a message for it at that path with
// /{id}/message, or with SinglePath at the same path: the caller mounts the Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if id := h.MessageFor(r); id == "" {
		h.serveStream(w, r)
	} else if refusal := h.serveMessage(w, r, id); refusal != nil {
		h.RefuseMessage(w, r, refusal)
	}
}

// MessageFor returns the id of the connection that a request has a message for; empty if
// it has none. A request with a message is for no other transport.
func (h *Handler) MessageFor(r *http.Request) (id string) {
	switch {
	case !h.opts.SinglePath:
		_, id = CutMessage(r.URL.Path)
	case r.Method != http.MethodGet && r.URL.RawQuery != "":
		id = r.URL.Query().Get(ConnectionParam)
	}
	return id
}

// CutMessage splits the path of a message into that of the stream and the id of the
// connection. Of any other path it returns the path, and no id.
func CutMessage(path string) (stream, id string) {
	rest, ok := strings.CutSuffix(path, "/message")
	if i := strings.LastIndexByte(rest, '/'); ok && i >= 0 && i+1 < len(rest) {
		return rest[:i], rest[i+1:]
	}
	return path, ""
}

// ConnectionParam is the query parameter with the id of a connection, in an endpoint with
// a single path.
const ConnectionParam = "connectionId"

// admit checks a request whatever the route. It returns the principal, and whether to
// go on.
func (h *Handler) admit(w http.ResponseWriter, r *http.Request, method string) (string, bool) {
	return h.Admit(w, r, httpcheck.Route{Methods: method, CORS: "GET, POST", Transport: "HTTP+SSE"})
}

// streamPath is the path of the stream as the client sees it. It is empty if it could be
// taken for something else.
func (h *Handler) streamPath(r *http.Request) string {
	path := r.URL.EscapedPath()
	if !h.opts.SinglePath {
		path, _ = CutMessage(path)
	}
	path = h.OuterPrefix(r) + path
	if httpcheck.SafePath(path) {
		return path
	}
	return ""
}

// endpoint is the path for the client's POSTs. With SinglePath and without a path it is at
// the stream's own.
func (h *Handler) endpoint(r *http.Request, id string) string {
	if h.opts.SinglePath {
		return h.streamPath(r) + "?" + ConnectionParam + "=" + id
	}
	return strings.TrimSuffix(h.streamPath(r), "/") + "/" + id + "/message"
}
