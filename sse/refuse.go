package sse

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/throttle"
	"github.com/mcp-sse/mcp-sse/metrics"
)

const (
	// refusalEvery is the least time between two log lines about clients that are
	// refused for one reason, after refusalBurst at once.
	refusalEvery = 30 * time.Second
	refusalBurst = 3
	// maxLoggedPath bounds a path in the log.
	maxLoggedPath = 128
	// idLength is how long a part of a path must be to be shortened like the id of
	// a connection: ids are secrets, and have 36 characters.
	idLength = 32
)

// Counter counts what is refused; *metrics.Metrics does.
type Counter interface {
	// ConnectionRejected counts a request that is not a POST.
	ConnectionRejected(reason string)
	// PostRejected counts a POST.
	PostRejected(reason string)
}

// refusals counts and logs the clients that get an error for an answer. The lines
// of each reason are limited by themselves: a client that asks for a wrong path
// again and again must not hide one with a wrong token.
type refusals struct {
	log   *slog.Logger
	count Counter
	lines map[string]*throttle.Line // by reason; not changed
}

func newRefusals(log *slog.Logger, count Counter) *refusals {
	r := &refusals{log: log, count: count, lines: make(map[string]*throttle.Line)}
	for _, reason := range []string{
		reasonHost, reasonOrigin, reasonAuth, reasonNotFound, reasonMethod,
		metrics.PostUnknownConnection, metrics.PostClosed,
	} {
		r.lines[reason] = throttle.NewLine(refusalEvery, refusalBurst)
	}
	return r
}

// refused is called with each request that gets 401, 403, 404 or 405.
func (f *refusals) refused(h *Handler, r *http.Request, status int, reason, message string) {
	if r.Method == http.MethodPost {
		f.count.PostRejected(reason)
	} else {
		f.count.ConnectionRejected(reason)
	}
	f.trace(h, r, status, reason, message)
}

// trace logs a refusal.
func (f *refusals) trace(h *Handler, r *http.Request, status int, reason, message string) {
	if suppressed, due := f.lines[reason].Due(); due {
		f.log.Warn("client refused", "reason", reason, "status", status, "method", r.Method[:min(16, len(r.Method))],
			"remote", h.clientAddr(r).String(), "path", shortPath(r.URL.Path), "err", message, "suppressed", suppressed)
	}
}

// refuseClient answers a request with 403, 404 or 405, and leaves a trace of it.
func (h *Handler) refuseClient(w http.ResponseWriter, r *http.Request, status int, reason, message string) {
	h.refusals.refused(h, r, status, reason, message)
	refuse(w, r, status, message)
}

// shortPath is a path as it may be logged: bounded, and without the whole id of a
// connection.
func shortPath(path string) string {
	parts := strings.Split(path[:min(4*maxLoggedPath, len(path))], "/")
	for i, part := range parts {
		if len(part) >= idLength {
			parts[i] = part[:8] + "…"
		}
	}
	short := strings.Join(parts, "/")
	return short[:min(maxLoggedPath, len(short))]
}

// notFound answers a request for a path that is no route.
func (h *Handler) notFound(w http.ResponseWriter, r *http.Request) {
	stream := h.streamPath(r)
	message := "no such route: this gateway serves GET " + stream + " and POST " + stream + "/{id}/message" + h.prefixHint(r.URL.Path)
	h.refuseClient(w, r, http.StatusNotFound, reasonNotFound, message)
}

// prefixHint says what to do about a path that is a route under another prefix;
// "" for other paths.
func (h *Handler) prefixHint(path string) string {
	prefix, ok := strings.CutSuffix(path, "/sse")
	if at := strings.LastIndex(path, "/sse/"); !ok && at >= 0 {
		prefix = path[:at]
		_, ok = messageID(prefix+"/sse/", path)
	}
	switch {
	case !ok || prefix == h.opts.Prefix || len(prefix) > maxLoggedPath || CheckPrefix(prefix) != nil:
		return ""
	case prefix == "":
		return "; the option prefix is " + h.opts.Prefix + ", and this path comes without it: does a proxy strip it?"
	}
	return "; if clients use this path through a proxy, set the option prefix to " + prefix
}

// Elsewhere returns a handler that answers requests that reach none of several
// handlers: 404 with the text told. It checks, logs and counts them as h does with
// its own, but uses log and count.
func (h *Handler) Elsewhere(told string, log *slog.Logger, count Counter) http.Handler {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	other := &Handler{opts: h.opts, refusals: newRefusals(log, count)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if other.siteAllowed(w, r) {
			other.refuseClient(w, r, http.StatusNotFound, reasonNotFound, told)
		}
	})
}
