package front

import (
	"errors"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// HeaderVersion carries the protocol version that a client has negotiated.
const HeaderVersion = "Mcp-Protocol-Version"

// Refusal is why a POST is refused.
type Refusal struct {
	// Status is the HTTP status, and Err the JSON-RPC error in the body, for the request
	// ID; empty if that is unknown.
	Status int
	Err    *jsonrpc.Error
	ID     jsonrpc.ID

	reason string
	unread bool // the body has not been read to its end
}

// Refused returns a Refusal that counts under reason, a constant of package metrics.
func Refused(status int, reason, format string, args ...any) *Refusal {
	return &Refusal{Status: status, reason: reason, Err: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, format, args...)}
}

// RefusedWith is Refused with an error of the caller's.
func RefusedWith(status int, reason string, e *jsonrpc.Error) *Refusal {
	return &Refusal{Status: status, reason: reason, Err: e}
}

// busyRetry is the Retry-After of requests that are refused because of the budget.
const busyRetry = time.Second

// RefusedBusy is the refusal of work for which the budget has no bytes.
func RefusedBusy(err error) *Refusal {
	e := jsonrpc.ReasonError(err.Error()+": try again later", "server_busy", true)
	return &Refusal{Status: http.StatusServiceUnavailable, reason: metrics.PostBudget, Err: e}
}

// RefuseMessage answers a POST that is refused, and counts it.
func (f *Front) RefuseMessage(w http.ResponseWriter, r *http.Request, why *Refusal) {
	f.opts.Metrics.PostRejected(why.reason)
	if why.unread {
		AbandonBody(w, r)
	}
	if why.Status == http.StatusServiceUnavailable {
		SetRetryAfter(w, busyRetry)
	}
	rejectRequest(w, why.Status, why.ID, why.Err)
}

// RefuseUnread is RefuseMessage for a POST whose body has not been read.
func (f *Front) RefuseUnread(w http.ResponseWriter, r *http.Request, why *Refusal) {
	why.unread = true
	f.RefuseMessage(w, r, why)
}

// LogOpened logs a new connection.
func (f *Front) LogOpened(c *connstate.Connection) {
	client := c.Client()
	f.opts.Logger.Info("connection opened", "connectionId", c.ShortID(), "transport", client.Transport,
		"remote", client.Addr.String(), "userAgent", Clip(client.UserAgent), "principal", Clip(client.Principal))
}

// LogClosed logs a connection that is closed.
func (f *Front) LogClosed(c *connstate.Connection) {
	start := c.Start()
	attrs := []any{
		"connectionId", c.ShortID(), "transport", c.Client().Transport, "reason", c.Reason(), "duration", time.Since(c.Opened()),
		"reached", start.Reached.String(), "attempts", start.Attempts, "failures", start.Failures,
	}
	if last := start.LastFailure; last != nil {
		attrs = append(attrs, "lastFailure", last.Phase+" "+last.Reason)
	}
	f.opts.Logger.Info("connection closed", attrs...)
}

// RefuseConnection answers a request for which the registry opens no connection.
func (f *Front) RefuseConnection(w http.ResponseWriter, r *http.Request, err error) {
	limit, ok := errors.AsType[*connstate.LimitError](err)
	if !ok {
		Reject(w, r, http.StatusInternalServerError, "the connection could not be opened")
		return
	}
	status := http.StatusTooManyRequests
	switch limit.Reason {
	case metrics.RejectedMaxConnections, metrics.RejectedBudget, metrics.RejectedDraining:
		status = http.StatusServiceUnavailable
	}
	f.opts.Logger.Debug("connection refused", "reason", limit.Reason)
	SetRetryAfter(w, limit.RetryAfter)
	Reject(w, r, status, limit.Message)
}

// ParseMessage returns the message in a body.
func ParseMessage(body []byte) (*jsonrpc.Message, *Refusal) {
	m, err := jsonrpc.Parse(body)
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		reason := metrics.PostInvalidRequest
		if e.Code == jsonrpc.CodeParseError {
			reason = metrics.PostInvalidJSON
		}
		return nil, &Refusal{Status: http.StatusBadRequest, reason: reason, Err: e}
	}
	if m.Kind == jsonrpc.Response && m.ID == jsonrpc.Null {
		return nil, Refused(http.StatusBadRequest, metrics.PostInvalidRequest, "the id of a response must not be null")
	}
	return m, nil
}

func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	t, params, err := mime.ParseMediaType(contentType)
	suffixed := strings.HasPrefix(t, "application/") && strings.HasSuffix(t, "+json")
	if err != nil || t != "application/json" && !suffixed {
		return false
	}
	charset, ok := params["charset"]
	return !ok || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8")
}
