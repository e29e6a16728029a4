package front

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/throttle"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

const (
	// maxLoggedPath bounds a path in the log.
	maxLoggedPath = 128
	// idLength is how long a part of a path must be to be shortened like the id of
	// a connection: ids are secrets, and have 36 characters.
	idLength = 32
)

// refusals counts and logs the clients that get an error for an answer. The lines
// of each reason are limited by themselves: a client that asks for a wrong path
// again and again must not hide one with a wrong token.
type refusals struct {
	count *metrics.Metrics
	logs  map[string]*slog.Logger // by reason; not changed
}

func newRefusals(log *slog.Logger, count *metrics.Metrics) *refusals {
	r := &refusals{count: count, logs: make(map[string]*slog.Logger)}
	for _, reason := range []string{
		metrics.RejectedHost, metrics.RejectedOrigin, metrics.RejectedAuth, metrics.RejectedNotFound, metrics.RejectedMethod,
		metrics.PostUnknownConnection, metrics.PostClosed,
	} {
		r.logs[reason] = throttle.NewLines().Logger(log)
	}
	return r
}

// refused is called with each request that gets 401, 403, 404 or 405.
func (l *refusals) refused(f *Front, r *http.Request, status int, reason, message string) {
	if r.Method == http.MethodPost {
		l.count.PostRejected(reason)
	} else {
		l.count.ConnectionRejected(reason)
	}
	l.trace(f, r, status, reason, message)
}

// trace logs a refusal.
func (l *refusals) trace(f *Front, r *http.Request, status int, reason, message string) {
	l.logs[reason].Warn("client refused", "reason", reason, "status", status, "method", r.Method[:min(16, len(r.Method))],
		"remote", f.ClientAddr(r).String(), "path", shortPath(r.URL.Path), "err", message)
}

// Refuse answers a request with 403, 404 or 405, and counts and logs that under reason,
// a constant of package metrics.
func (f *Front) Refuse(w http.ResponseWriter, r *http.Request, status int, reason, message string) {
	f.refusals.refused(f, r, status, reason, message)
	Reject(w, r, status, message)
}

// RefuseReceived is Refuse for a request whose body has been read.
func (f *Front) RefuseReceived(w http.ResponseWriter, r *http.Request, status int, reason, message string) {
	f.refusals.refused(f, r, status, reason, message)
	RejectRead(w, status, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s", message))
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

// Elsewhere returns a handler that answers requests that reach none of several
// handlers: 404 with the text told. It checks, logs and counts them as f does with
// its own, but uses log and count.
func (f *Front) Elsewhere(told string, log *slog.Logger, count *metrics.Metrics) http.Handler {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	other := &Front{opts: f.opts, refusals: newRefusals(log, count)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if other.SiteAllowed(w, r) {
			other.Refuse(w, r, http.StatusNotFound, metrics.RejectedNotFound, told)
		}
	})
}
