package httpcheck

import (
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
	"github.com/mcp-sse/mcp-sse/internal/signedid"
	"github.com/mcp-sse/mcp-sse/internal/throttle"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Refuse answers a request with a Denied refusal.
func (f *Checker) Refuse(w http.ResponseWriter, r *http.Request, status int, reason, message string) {
	f.RefuseMessage(w, r, Denied(status, reason, message))
}

// NotFound answers a request for a path that is no route, once it has passed the checks of
// Host and Origin.
func (f *Checker) NotFound(w http.ResponseWriter, r *http.Request, message string) {
	if f.SiteAllowed(w, r) {
		f.Refuse(w, r, http.StatusNotFound, metrics.RejectedNotFound, message)
	}
}

func (f *Checker) count(r *http.Request, reason string) {
	if reason == "" {
		return
	}
	if r.Method == http.MethodPost {
		f.opts.Metrics.PostRejected(reason)
	} else {
		f.opts.Metrics.ConnectionRejected(reason)
	}
}

func (f *Checker) log(r *http.Request, status int, reason, message string) {
	limited, _ := f.refusals.LoadOrStore(reason, throttle.NewLines().Logger(f.opts.Logger))
	limited.(*slog.Logger).Warn("client refused", "reason", reason, "status", status, "method",
		r.Method[:min(16, len(r.Method))],
		"remote", f.ClientAddr(r).String(), "path", shortPath(r.URL.Path), "err", message)
}

// secretPart matches what may be the id of a connection in a path: ids are secrets, and
// have at least 50 characters.
var secretPart = regexp.MustCompile(`[^/]{32,}`)

// shortPath is a path as it may be logged: bounded, and without the whole id of a
// connection.
func shortPath(path string) string {
	short := secretPart.ReplaceAllStringFunc(path[:min(512, len(path))],
		func(id string) string { return signedid.Short(id) + "…" })
	return short[:min(128, len(short))]
}

// Elsewhere returns a handler that answers requests that reach none of several handlers: 404 with what message returns,
// which is called once Host and Origin have been checked, because it may ask an issuer who the sender is. The handler
// checks, logs and counts as f does with its own requests, but uses log and count.
func (f *Checker) Elsewhere(message func(*http.Request) string, log *slog.Logger,
	count *metrics.Metrics) http.Handler {
	opts := f.opts
	opts.Logger, opts.Metrics = log, count
	other := New(opts)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if other.SiteAllowed(w, r) {
			other.Refuse(w, r, http.StatusNotFound, metrics.RejectedNotFound, message(r))
		}
	})
}

// Open opens and logs a connection, under the id of an earlier one unless id is empty. If
// all connections are taken, evict, which may be nil, ends an idle one, and reports whether
// there was one. The registry has counted a refusal.
func (f *Checker) Open(registry *connstate.Registry, client connstate.Client, id string,
	evict func() bool) (connstate.ForTransport, *Refusal) {
	c, err := registry.OpenAs(client, id, evict)
	if err == nil {
		f.LogOpened(c)
		return connstate.ForTransport{Connection: c}, nil
	}
	limit, ok := errors.AsType[*connstate.LimitError](err)
	if !ok {
		return connstate.ForTransport{}, Refused(
			http.StatusInternalServerError, "", "the connection could not be opened")
	}
	f.opts.Logger.Debug("connection refused", "reason", limit.Reason)
	status := http.StatusServiceUnavailable
	if limit.Reason == metrics.RejectedPerIP || limit.Reason == metrics.RejectedRate {
		status = http.StatusTooManyRequests
	}
	why := RefusedWith(status, "", jsonrpc.ReasonError(limit.Message, "server_busy", true))
	why.RetryAfter = limit.RetryAfter
	return connstate.ForTransport{}, why
}

// Refusal is why a request is refused.
type Refusal struct {
	// Status is the HTTP status, and Err the JSON-RPC error in the body, for the request
	// ID; empty if that is unknown.
	Status int
	Err    *jsonrpc.Error
	ID     jsonrpc.ID

	// RetryAfter is how long the client should wait. After 429 and 503 it is a second at least.
	RetryAfter time.Duration

	// Unread says that the body of a POST has not been read to its end.
	Unread bool

	reason string
	logged bool
}

// Denied returns a Refusal with 403, 404 or 405, which is logged too. The body of the request
// is given up.
func Denied(status int, reason, message string) *Refusal {
	why := Refused(status, reason, "%s", message)
	why.Unread, why.logged = true, true
	return why
}

// Refused returns a Refusal that counts under reason, a constant of package metrics.
func Refused(status int, reason, format string, args ...any) *Refusal {
	return RefusedWith(status, reason, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, format, args...))
}

// RefusedWith is Refused with an error of the caller's. Without a reason it is not counted.
func RefusedWith(status int, reason string, e *jsonrpc.Error) *Refusal {
	return &Refusal{Status: status, reason: reason, Err: e}
}

// RefusedBusy is the refusal of work for which the budget has no bytes.
func RefusedBusy(err error) *Refusal {
	e := jsonrpc.ReasonError(err.Error()+": try again later", "server_busy", true)
	return RefusedWith(http.StatusServiceUnavailable, metrics.RejectedBudget, e)
}

// RefuseMessage answers a request that is refused, and counts it.
func (f *Checker) RefuseMessage(w http.ResponseWriter, r *http.Request, why *Refusal) {
	f.count(r, why.reason)
	if why.logged {
		f.log(r, why.Status, why.reason, why.Err.Message)
	}
	if why.Unread || r.Method != http.MethodPost {
		abandonBody(w, r)
	}
	if why.RetryAfter > 0 || why.Status == http.StatusServiceUnavailable || why.Status == http.StatusTooManyRequests {
		seconds := max(1, int64((why.RetryAfter+time.Second-1)/time.Second))
		w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	body := append(jsonrpc.NewError(why.ID, why.Err), '\n')
	httpanswer.WriteJSON(w, r, why.Status, body)
}

// drainTime is how long a client may go on sending a body that nobody reads. A TCP
// connection that is closed at once is reset, and the client may lose the answer.
const drainTime = time.Second

// abandonBody gives up what has not been read of a request's body. Otherwise
// net/http waits for it before it answers, and again before it closes the TCP
// connection. HTTP/2 needs none of this: there it is one stream of many.
func abandonBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 || r.ProtoMajor > 1 {
		return
	}
	w.Header().Set("Connection", "close")
	// Without deadlines the server's own count.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(drainTime))
}
