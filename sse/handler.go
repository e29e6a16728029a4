package sse

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/stack"
	"github.com/mcp-sse/mcp-sse/internal/throttle"
	"github.com/mcp-sse/mcp-sse/peer"
)

// Backend provides the handlers of new connections.
type Backend interface {
	// Accept is called for each new connection, before the client learns its id. It
	// must not block. The Handler calls the returned handler with the client's
	// messages and when the connection is over; it answers with the connection's
	// methods.
	Accept(c *connstate.Connection) connstate.Handler
}

// Handler serves the transport. It is an http.Handler, safe for concurrent use.
type Handler struct {
	opts     Options
	backend  Backend
	registry *connstate.Registry
	engine   *engine
	messages string // what the paths of messages begin with
	path     string // of the stream
	reading  *reading
	refusals *refusals
	limited  *slog.Logger // for what each request may cause
}

// New returns a Handler that opens its connections in registry. It fails when
// an option is wrong.
func New(backend Backend, registry *connstate.Registry, opts Options) (*Handler, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	h := &Handler{
		opts: opts, backend: backend, registry: registry, engine: newEngine(opts.WriteTimeout, opts.Metrics),
		path: opts.Prefix + "/sse", messages: opts.Prefix + "/sse/", reading: newReading(opts.ReadTimeout),
	}
	h.refusals = newRefusals(opts.Logger, opts.Metrics)
	h.limited = throttle.NewLines().Logger(opts.Logger)
	return h, nil
}

// messageID returns the id in the path of a message.
func messageID(prefix, path string) (id string, ok bool) {
	rest, inside := strings.CutPrefix(path, prefix)
	id, message := strings.CutSuffix(rest, "/message")
	return id, inside && message && id != "" && !strings.Contains(id, "/")
}

// ServeHTTP serves GET /sse and POST /sse/{id}/message under the prefix, or with
// SinglePath both at any path.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	stack.Grow() // a TCP connection has a goroutine of its own, whose first request this may be
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
	case h.siteAllowed(w, r):
		h.notFound(w, r)
	}
}

// serveSinglePath takes a POST for a message, and all else for the stream.
func (h *Handler) serveSinglePath(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost || r.Header.Get("Access-Control-Request-Method") == http.MethodPost {
		h.serveMessage(w, r, connectionOf(r.URL.RawQuery))
		return
	}
	h.serveStream(w, r)
}

// connectionParam is the query parameter with the id of a connection, in an endpoint with
// a single path.
const connectionParam = "connectionId"

// connectionOf returns the id of the connection in a query, empty if there is none.
func connectionOf(query string) string {
	id, first := strings.CutPrefix(query, connectionParam+"=")
	if first && !strings.ContainsAny(id, "&;%+") { // as in the endpoint
		return id
	}
	values, _ := url.ParseQuery(query) // what it can read
	return values.Get(connectionParam)
}

// passed returns a context with the values that are to be passed on of a request, and with
// its peer; nil if nothing is. An error refuses the request with the status: that of
// Options.RequestContext does, and headers that are too long.
func (h *Handler) passed(r *http.Request, principal string) (ctx context.Context, status int, err error) {
	if !h.opts.PassRequest {
		return nil, 0, nil
	}
	p := &peer.Peer{Principal: principal, Addr: h.clientAddr(r), Header: chosen(h.opts.RequestHeaders, r.Header)}
	if sizeOf(p.Header) > connstate.MaxContextBytes {
		return nil, http.StatusRequestHeaderFieldsTooLarge, fmt.Errorf("the headers for the server are over %d bytes", connstate.MaxContextBytes)
	}
	ctx = r.Context()
	if f := h.opts.RequestContext; f != nil {
		own, err := f(r)
		if err != nil {
			return nil, http.StatusNotFound, err
		}
		if own != nil {
			ctx = own
		}
	}
	return peer.NewContext(context.WithoutCancel(ctx), p), 0, nil
}

// sizeOf returns the bytes of the names and values of a header.
func sizeOf(h http.Header) (size int) {
	for name, values := range h {
		for _, value := range values {
			size += len(name) + len(value)
		}
	}
	return size
}

// Guard checks Host and Origin as the transport's own routes do, and passes on to
// next only requests without a body that no web page made a browser send. It logs
// what it refuses, and does not count it.
func (h *Handler) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reason, message := h.checkSite(r); reason != "" {
			h.refusals.trace(h, r, http.StatusForbidden, reason, message)
			refuse(w, r, http.StatusForbidden, message)
			return
		}
		if hasBody(r) {
			refuse(w, r, http.StatusBadRequest, errBody.Error())
			return
		}
		next.ServeHTTP(w, r)
	})
}

// siteAllowed checks Host and Origin, and answers a request that fails.
func (h *Handler) siteAllowed(w http.ResponseWriter, r *http.Request) bool {
	reason, message := h.checkSite(r)
	if reason != "" {
		h.refuseClient(w, r, http.StatusForbidden, reason, message)
	}
	return reason == ""
}

// admit answers preflights and checks method, Host, Origin and authentication,
// whatever the route. It returns the principal, and whether to go on.
func (h *Handler) admit(w http.ResponseWriter, r *http.Request, method string) (string, bool) {
	if !h.siteAllowed(w, r) {
		return "", false
	}
	h.setCORS(w, r)
	if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" && h.opts.CORS {
		w.WriteHeader(http.StatusNoContent)
		return "", false
	}
	if r.Method != method {
		if h.opts.SinglePath {
			method = http.MethodGet + ", " + http.MethodPost
		}
		w.Header().Set("Allow", method)
		h.refuseClient(w, r, http.StatusMethodNotAllowed, reasonMethod, "use "+method+" here: the transport is HTTP+SSE")
		return "", false
	}
	if h.opts.Authenticate == nil {
		return "", true
	}
	principal, err := h.opts.Authenticate(r)
	if err != nil {
		h.challenge(w, r, err)
		return "", false
	}
	return principal, true
}

// streamPath is the path of the stream, for messages.
func (h *Handler) streamPath(r *http.Request) string {
	if h.opts.SinglePath {
		return h.singlePath(r)
	}
	return h.outerPrefix(r) + h.opts.Prefix + "/sse"
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
	if path := h.outerPrefix(r) + r.URL.EscapedPath(); safePath(path) {
		return path
	}
	return ""
}

// outerPrefix is the part of the path that did not reach us: what a trusted
// proxy says it removed, and what http.StripPrefix removed.
func (h *Handler) outerPrefix(r *http.Request) string {
	var forwarded string
	if h.opts.TrustForwardedPrefix {
		forwarded = strings.TrimRight(r.Header.Get("X-Forwarded-Prefix"), "/")
		if forwarded != "" && !safePath(forwarded) {
			h.limited.Warn("header ignored: not a path", "header", "X-Forwarded-Prefix")
			forwarded = ""
		}
	}
	requested, _, _ := strings.Cut(r.RequestURI, "?")
	if _, rest, ok := strings.Cut(requested, "://"); ok { // the whole URL: what clients send to a proxy
		_, rest, _ = strings.Cut(rest, "/")
		requested = "/" + rest
	}
	stripped, ok := strings.CutSuffix(requested, r.URL.EscapedPath())
	if !ok || stripped != "" && !safePath(stripped) {
		stripped = ""
	}
	return forwarded + strings.TrimRight(stripped, "/")
}

// safePath reports whether p may be the data of an endpoint event: an absolute path
// that no client can take for another host, of characters that need no escape.
func safePath(p string) bool {
	if !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") || len(p) > 1024 {
		return false
	}
	decoded, err := url.PathUnescape(p) // browsers take %2e for a dot
	if err != nil {
		return false
	}
	for _, segment := range strings.Split(decoded, "/") {
		if segment == "." || segment == ".." {
			return false
		}
	}
	return strings.Trim(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/-._~%!$&'()*+,;=:@") == ""
}
