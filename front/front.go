package front

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/throttle"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/peer"
)

// Backend provides the handlers of new connections.
type Backend interface {
	// Accept is called for each new connection, before the client learns its id. It
	// must not block. The transport calls the returned handler with the client's
	// messages and when the connection is over; the handler answers with the
	// connection's methods.
	Accept(c *connstate.Connection) connstate.Handler
}

// Front checks and refuses requests for one transport. It is safe for concurrent use.
type Front struct {
	opts     Options
	refusals *refusals
	limited  *slog.Logger // for what each request may cause
}

// New returns the Front of a transport. It fails when an option is wrong.
func New(opts Options) (*Front, error) {
	opts = opts.WithDefaults()
	return &Front{
		opts: opts, refusals: newRefusals(opts.Logger, opts.Metrics),
		limited: throttle.NewLines().Logger(opts.Logger),
	}, CheckPrefix(opts.Prefix)
}

// Limited returns the logger for what each request may cause.
func (f *Front) Limited() *slog.Logger { return f.limited }

// Guard checks Host and Origin as the transport's own routes do, and passes on to
// next only requests without a body that no web page made a browser send. It logs
// what it refuses, and does not count it.
func (f *Front) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reason, message := f.checkSite(r); reason != "" {
			f.refusals.trace(f, r, http.StatusForbidden, reason, message)
			Reject(w, r, http.StatusForbidden, message)
			return
		}
		if HasBody(r) {
			Reject(w, r, http.StatusBadRequest, ErrBody.Error())
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ErrBody is why a request that needs no body is refused: net/http would keep what
// comes of it, and wait for the rest.
var ErrBody = errors.New("a GET must not have a body")

// SiteAllowed checks Host and Origin, and answers a request that fails.
func (f *Front) SiteAllowed(w http.ResponseWriter, r *http.Request) bool {
	reason, message := f.checkSite(r)
	if reason != "" {
		f.Refuse(w, r, http.StatusForbidden, reason, message)
	}
	return reason == ""
}

// Route is what a transport serves at one path.
type Route struct {
	// Methods are the methods of the route, and CORS those that pages may use.
	Methods, CORS string
	// Transport is what the transport is called.
	Transport string
}

// Admit answers preflights and checks Host, Origin, method and authentication of a
// request. served says whether the route has its method. Admit returns the principal,
// and whether to go on.
func (f *Front) Admit(w http.ResponseWriter, r *http.Request, served bool, route Route) (string, bool) {
	if !f.SiteAllowed(w, r) {
		return "", false
	}
	f.setCORS(w, r, route.CORS)
	if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" && len(f.opts.AllowedOrigins) > 0 {
		w.WriteHeader(http.StatusNoContent)
		return "", false
	}
	if !served {
		w.Header().Set("Allow", route.Methods)
		f.Refuse(w, r, http.StatusMethodNotAllowed, metrics.RejectedMethod, "use "+route.Methods+" here: the transport is "+route.Transport)
		return "", false
	}
	if f.opts.Authenticate == nil {
		return "", true
	}
	principal, err := f.opts.Authenticate(r)
	if err != nil {
		f.challenge(w, r, err)
		return "", false
	}
	return principal, true
}

// Client returns who sends a request that opens a connection of a transport.
func (f *Front) Client(r *http.Request, principal, transport string) connstate.Client {
	return connstate.Client{
		Transport: transport,
		Addr:      f.ClientAddr(r), Principal: principal, UserAgent: strings.Clone(Clip(r.UserAgent())),
		Local: f.IsLocal(r), Header: chosen(f.opts.ForwardHeaders, r.Header),
	}
}

// Passed returns a context with the values that are to be passed on of a request, and with
// its peer; nil if nothing is. An error refuses the request with the status: that of
// Options.RequestContext does, and headers that are too long.
func (f *Front) Passed(r *http.Request, principal string) (ctx context.Context, status int, err error) {
	if !f.opts.PassRequest {
		return nil, 0, nil
	}
	p := &peer.Peer{Principal: principal, Addr: f.ClientAddr(r), Header: chosen(f.opts.RequestHeaders, r.Header)}
	if sizeOf(p.Header) > connstate.MaxContextBytes {
		return nil, http.StatusRequestHeaderFieldsTooLarge, fmt.Errorf("the headers for the server are over %d bytes", connstate.MaxContextBytes)
	}
	ctx = r.Context()
	if own := f.opts.RequestContext; own != nil {
		chosen, err := own(r)
		if err != nil {
			return nil, http.StatusNotFound, err
		}
		if chosen != nil {
			ctx = chosen
		}
	}
	return peer.NewContext(context.WithoutCancel(ctx), p), 0, nil
}

// chosen returns copies of the headers of those names, nil for none.
func chosen(names []string, from http.Header) map[string][]string {
	var kept map[string][]string
	for _, name := range names {
		if values := from.Values(name); len(values) > 0 {
			if kept == nil {
				kept = make(map[string][]string)
			}
			for _, value := range values { // not parts of the whole head
				kept[http.CanonicalHeaderKey(name)] = append(kept[http.CanonicalHeaderKey(name)], strings.Clone(value))
			}
		}
	}
	return kept
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

// CanFlush reports whether a ResponseWriter, or one that it wraps, can flush.
func CanFlush(w http.ResponseWriter) bool {
	for {
		switch t := w.(type) {
		case interface{ FlushError() error }, http.Flusher:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return false
		}
	}
}

// Clip bounds what a client can put into a log line.
func Clip(s string) string { return s[:min(128, len(s))] }
