package front

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Reject answers a request with an HTTP status and a JSON-RPC error body.
func Reject(w http.ResponseWriter, r *http.Request, status int, message string) {
	AbandonBody(w, r)
	RejectRead(w, status, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s", message))
}

// RejectRead is Reject for a request whose body has been read.
func RejectRead(w http.ResponseWriter, status int, e *jsonrpc.Error) {
	rejectRequest(w, status, jsonrpc.Null, e)
}

// rejectRequest is RejectRead for the request with that id; empty if it is unknown.
func rejectRequest(w http.ResponseWriter, status int, id jsonrpc.ID, e *jsonrpc.Error) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(jsonrpc.NewError(id, e), '\n')) // a client that is gone needs no answer
}

// drainTime is how long a client may go on sending a body that nobody reads. A TCP
// connection that is closed at once is reset, and the client may lose the answer.
const drainTime = time.Second

// AbandonBody gives up what has not been read of a request's body. Otherwise
// net/http waits for it before it answers, and again before it closes the TCP
// connection. HTTP/2 needs none of this: there it is one stream of many.
func AbandonBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 || r.ProtoMajor > 1 {
		return
	}
	w.Header().Set("Connection", "close")
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(drainTime)) // without deadlines the server's own count
}

// HasBody reports whether a request has a body, as far as its head tells. On HTTP/2
// a body of unknown length may be empty.
func HasBody(r *http.Request) bool {
	return r.ContentLength > 0 || r.ContentLength < 0 && r.ProtoMajor == 1
}

// SetRetryAfter tells a client how long to wait before another attempt.
func SetRetryAfter(w http.ResponseWriter, wait time.Duration) {
	seconds := max(1, int64((wait+time.Second-1)/time.Second))
	w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
}

// challenge answers a request that is not authenticated, and leaves a trace of it.
func (f *Front) challenge(w http.ResponseWriter, r *http.Request, err error) {
	f.refusals.refused(f, r, http.StatusUnauthorized, metrics.RejectedAuth, authMessage(err))
	Challenge(w, r, err)
}

// Challenge answers a request that Options.Authenticate refused with err: 401, what
// to send (RFC 6750, section 3), and a JSON-RPC error body. The body has the
// message of an AuthError, and nothing of any other error.
func Challenge(w http.ResponseWriter, r *http.Request, err error) {
	value := `Bearer realm="mcp-sse"`
	if r.Header.Get("Authorization") != "" {
		value += `, error="invalid_token"`
	}
	w.Header().Set("WWW-Authenticate", value)
	Reject(w, r, http.StatusUnauthorized, authMessage(err))
}

func authMessage(err error) string {
	if known, ok := errors.AsType[*AuthError](err); ok {
		return known.Message
	}
	return "not authenticated"
}

// WriteAll writes a body, of which the client may take timeout to read 64 KiB. With an
// error it returns the reason, a Closed constant of package metrics.
func WriteAll(w http.ResponseWriter, r *http.Request, body []byte, timeout time.Duration) (reason string, err error) {
	control := http.NewResponseController(w)
	reason, err = NewDeadline(control, timeout, r).Write(w, body, nil)
	_ = control.SetWriteDeadline(time.Time{}) // the TCP connection may serve other requests
	return reason, err
}
