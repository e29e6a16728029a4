package httpcheck

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/caller"
	"github.com/mcp-sse/mcp-sse/internal/clip"
	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/throttle"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// HeaderVersion carries the protocol version that a client has negotiated.
const HeaderVersion = "Mcp-Protocol-Version"

// Backend provides the handlers of new connections.
type Backend interface {
	// Accept is called for each new connection, before the client learns its id. It
	// must not block. The transport calls the returned handler with the client's
	// messages and when the connection is over; the handler answers with the
	// connection's methods.
	Accept(c *connstate.Connection) connstate.Handler
}

// Stateless is a Handler that knows whether the server of its connection is one of MCP
// 2026-07-28, which takes requests of that version as they are.
type Stateless interface {
	connstate.Handler
	// Stateless reports whether it is. It is known once initialize is answered.
	Stateless() bool
}

// Checker checks and refuses requests for one transport. It is safe for concurrent use.
type Checker struct {
	opts    Options
	limited *slog.Logger // for what each request may cause
	// refusals has a *slog.Logger for each reason to refuse, with a limit of its own: a client
	// that asks for a wrong path again and again must not hide one with a wrong token.
	refusals     sync.Map
	unknownProxy sync.Once // the warning about one
}

// New returns the Checker of a transport.
func New(opts Options) *Checker {
	opts = opts.WithDefaults()
	return &Checker{opts: opts, limited: throttle.NewLines().Logger(opts.Logger)}
}

// Guard checks Host and Origin as the transport's own routes do, and passes on to
// next only requests without a body that no web page made a browser send. It logs
// what it refuses, and does not count it.
func (f *Checker) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var why *Refusal
		if reason, message := f.checkSite(r); reason != "" {
			f.log(r, http.StatusForbidden, reason, message)
			why = Refused(http.StatusForbidden, "", "%s", message)
		} else if HasBody(r) {
			why = Refused(http.StatusBadRequest, "", "%v", ErrBody)
		} else {
			next.ServeHTTP(w, r)
			return
		}
		why.Unread = true
		f.RefuseMessage(w, r, why)
	})
}

// SiteAllowed checks Host and Origin, and answers a request that fails.
func (f *Checker) SiteAllowed(w http.ResponseWriter, r *http.Request) bool {
	reason, message := f.checkSite(r)
	if reason != "" {
		f.Refuse(w, r, http.StatusForbidden, reason, message)
	}
	return reason == ""
}

// PageAllowed is SiteAllowed for a page without secrets or effects: when a browser opens it by a link
// of another site, its Host alone is checked.
func (f *Checker) PageAllowed(w http.ResponseWriter, r *http.Request) bool {
	opened := r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Sec-Fetch-Dest") == "document"
	if !opened {
		return f.SiteAllowed(w, r)
	}
	reason, message := f.checkHost(r)
	if reason != "" {
		f.Refuse(w, r, http.StatusForbidden, reason, message)
	}
	return reason == ""
}

// Route is what a transport serves at one path.
type Route struct {
	// Methods are the methods of the route, empty for all, and CORS those that pages may
	// use: lists with commas, as in headers.
	Methods, CORS string
	// Transport is what the transport is called.
	Transport string
}

// Admit answers preflights and checks Host, Origin, method and authentication of a
// request. It returns the principal, and whether to go on. A request that another replica
// forwards has passed all this there.
func (f *Checker) Admit(w http.ResponseWriter, r *http.Request, route Route) (string, bool) {
	if principal, ok := IsForwarded(r); ok {
		return principal, true
	}
	if !f.SiteAllowed(w, r) {
		return "", false
	}
	f.setCORS(w, r, route.CORS)
	if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" &&
		len(f.opts.AllowedOrigins) > 0 {
		w.WriteHeader(http.StatusNoContent)
		return "", false
	}
	if route.Methods != "" && !slices.Contains(strings.Split(route.Methods, ", "), r.Method) {
		w.Header().Set("Allow", route.Methods)
		f.Refuse(w, r, http.StatusMethodNotAllowed, metrics.RejectedMethod,
			"use "+route.Methods+" here: the transport is "+route.Transport)
		return "", false
	}
	if f.opts.LocalOnly != nil && byProxy(r) && f.opts.LocalOnly() {
		f.Refuse(w, r, http.StatusForbidden, metrics.RejectedAuth,
			"a proxy has brought this request, and the login of a person on this machine is for this machine alone")
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

// Client returns who sends a request that opens a connection of a transport. The first time
// that a proxy near by is not trusted, Client logs what to set.
func (f *Checker) Client(r *http.Request, principal string, transport connstate.Transport) connstate.Client {
	header, _ := chosen(f.opts.ForwardHeaders, r.Header)
	version := r.Header.Get(HeaderVersion)
	if !mcp.HasInitialize(version) {
		version = ""
	}
	addr, proxied := f.ClientAddr(r), byProxy(r) && !f.trusted(peerOf(r))
	// One of strangers is not ours to trust.
	if _, forwarded := IsForwarded(r); !forwarded && proxied && (addr.IsLoopback() || addr.IsPrivate()) {
		f.unknownProxy.Do(func() {
			f.opts.Logger.Warn("proxy not trusted: its clients count as one address, set trusted-proxies", "proxy",
				addr.String())
		})
	}
	return connstate.Client{
		Transport: transport, Addr: addr, Local: f.IsLocal(r), Proxied: proxied, Principal: principal,
		Credentials: f.Credentials(r),
		Version:     strings.Clone(version), UserAgent: strings.Clone(clip.Long(r.UserAgent())), Header: header,
	}
}

// Passed returns a context with the request's values and peer for the server; nil if the
// server gets neither. It refuses the request when Options.RequestContext fails or the
// headers for the server are too long.
func (f *Checker) Passed(r *http.Request, principal string) (context.Context, *Refusal) {
	if !f.opts.PassRequest {
		return nil, nil
	}
	header, size := chosen(f.opts.RequestHeaders, r.Header)
	if size > connstate.MaxContextBytes {
		return nil, Refused(http.StatusRequestHeaderFieldsTooLarge, metrics.RejectedBadRequest,
			"the headers for the server are over %d bytes", connstate.MaxContextBytes)
	}
	ctx := r.Context()
	if own := f.opts.RequestContext; own != nil {
		switch chosen, err := own(r); {
		case err != nil:
			return nil, Refused(http.StatusNotFound, metrics.RejectedBadRequest, "%v", err)
		case chosen != nil:
			ctx = chosen
		}
	}
	p := &caller.Caller{Principal: principal, Addr: f.ClientAddr(r), Header: header}
	return caller.NewContext(context.WithoutCancel(ctx), p), nil
}

// chosen returns copies of the headers of those names, nil for none, and their size.
func chosen(names []string, from http.Header) (kept http.Header, size int) {
	for _, name := range names {
		for _, value := range from.Values(name) {
			if kept == nil {
				kept = make(http.Header)
			}
			kept.Add(name, strings.Clone(value)) // not a part of the whole head
			size += len(name) + len(value)
		}
	}
	return kept, size
}

// CheckStream refuses a request for a stream that has a body, or whose ResponseWriter
// cannot flush.
func (f *Checker) CheckStream(w http.ResponseWriter, r *http.Request) *Refusal {
	switch {
	case HasBody(r):
		return Refused(http.StatusBadRequest, metrics.RejectedBadRequest, "%v", ErrBody)
	case !httpanswer.CanFlush(w):
		f.limited.Error("stream impossible: a middleware hides http.Flusher and has no Unwrap method")
		return Refused(http.StatusInternalServerError, metrics.RejectedBadRequest,
			"streaming is not possible here: a middleware hides http.Flusher; give its ResponseWriter an Unwrap method")
	}
	return nil
}

// levelOf returns the level of the lines about a connection of a transport. Of each client, the gateway in front of it
// writes them at level info.
func levelOf(transport connstate.Transport) slog.Level {
	if transport == connstate.TransportInProcess {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// LogOpened logs a connection that is open.
func (f *Checker) LogOpened(c *connstate.Connection) {
	client := c.Client()
	attrs := []any{
		"connectionId", c.ShortID(), "transport", client.Transport,
		"remote", client.Addr.String(), "userAgent", clip.Long(client.UserAgent),
	}
	if client.Principal != "" {
		attrs = append(attrs, "principal", clip.Long(client.Principal))
	}
	f.opts.Logger.Log(context.Background(), levelOf(client.Transport), "connection opened", attrs...)
}

// LogClosed logs a connection that is closed.
func (f *Checker) LogClosed(c *connstate.Connection) {
	s, failures := c.Snapshot(), 0
	for _, n := range s.Failures {
		failures += n
	}
	attrs := []any{
		"connectionId", c.ShortID(), "transport", s.Transport, "reason", s.Reason, "duration", time.Since(s.Opened),
		"requests", s.RequestsDone, "errors", s.RequestsFailed,
		"reached", s.Reached.String(), "attempts", s.Attempts, "failures", failures,
	}
	if last := s.LastFailure; last != nil {
		attrs = append(attrs, "lastFailure", last.Phase+" "+last.Reason)
	}
	f.opts.Logger.Log(context.Background(), levelOf(s.Transport), "connection closed", attrs...)
}
