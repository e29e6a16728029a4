package exchange

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/mcp-sse/mcp-sse/internal/details"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/unreached"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Reasons of the errors that requests to a remote server get, in data.reason.
const (
	// ReasonUnauthorized is known to the handshake, as metrics.ReasonDenied.
	ReasonUnauthorized = "unauthorized"
	ReasonRefused      = "request_refused"
	reasonRateLimited  = "rate_limited"
	reasonBusy         = "server_busy"
	ReasonLost         = "response_lost"
	reasonInvalid      = "invalid_response"
)

// ErrorData is the data of the errors that requests to a remote server get.
type ErrorData struct {
	Reason    string `json:"reason"`
	Retryable bool   `json:"retryable"`
	// Status is the HTTP status code; 0: there was none.
	Status int `json:"status,omitempty"`
	// RetryAfterMs is the pause that the server asked for; 0: none.
	RetryAfterMs int64 `json:"retryAfterMs,omitempty"`
	// RequiredCapabilities are those that the client would have to declare; nil: unknown.
	RequiredCapabilities json.RawMessage `json:"requiredCapabilities,omitempty"`
	// NeedsLogin says that a person has to log in at the server.
	NeedsLogin bool `json:"needsLogin,omitempty"`
	// Link is the address in the message at which a person logs in, for the client alone; empty: there is none.
	Link string `json:"link,omitempty"`
	// Details are what the server says of it, for those who may know; nil: nothing.
	Details *details.Words `json:"details,omitempty"`
}

// NewError returns an error with code -32603 and data.
func NewError(data ErrorData, format string, args ...any) *jsonrpc.Error {
	e := jsonrpc.Errorf(jsonrpc.CodeInternalError, format, args...)
	e.Data = data
	return e
}

// DataOf returns the data of an error of NewError; zero for any other error.
func DataOf(err error) ErrorData {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return ErrorData{}
	}
	data, _ := e.Data.(ErrorData)
	return data
}

// Doubtful reports whether the error of a request leaves open whether the server is still
// there: its response broke off, or was a 5xx, which a proxy may have written.
func Doubtful(err error) bool {
	data := DataOf(err)
	return data.Reason == ReasonLost || data.Status >= 500
}

// LostResponse returns the error of a request whose response broke off with err, or
// ended without the answer if err is nil.
func LostResponse(err error) *jsonrpc.Error {
	why := "the response ended without it"
	if err != nil {
		why = PlainCause(err)
	}
	return NewError(ErrorData{Reason: ReasonLost}, "the server's answer was lost: %s", why)
}

// InvalidResponse returns the error of a request whose response cannot be used.
func InvalidResponse(format string, args ...any) *jsonrpc.Error {
	return NewError(ErrorData{Reason: reasonInvalid}, "the server's answer cannot be used: "+format, args...)
}

// Busy returns the error of a request that was not sent because the session has too many.
func Busy() *jsonrpc.Error {
	return NewError(ErrorData{Reason: reasonBusy, Retryable: true}, "%s", jsonrpc.ErrBusy)
}

// notAnAnswer returns the error for a successful response that holds no messages.
func notAnAnswer(resp *http.Response) *jsonrpc.Error {
	if resp.StatusCode != http.StatusOK {
		return InvalidResponse("it is an empty %s", Status(resp))
	}
	return InvalidResponse("it is neither JSON nor an event stream, but %.64q: check the address",
		resp.Header.Get("Content-Type"))
}

// TooLong returns why a session ends whose server sent a message over the limit.
func (e *Endpoint) TooLong() error {
	return fmt.Errorf("the server sent a %w of %d bytes", jsonrpc.ErrTooLong, e.Limit)
}

// LostSession returns why a session ends whose server cannot be reached.
func LostSession(err error) error {
	return fmt.Errorf("the server cannot be reached: %s", PlainCause(err))
}

// PlainCause says why a request failed without naming an address: for clients.
func PlainCause(err error) string {
	if of, ok := errors.AsType[*requestError](err); ok {
		err = of.err
	}
	if why := unreached.Why(err); why != "" {
		return why
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns.Err
	}
	return err.Error()
}

// ErrorCode returns the code of an error response; 0 if m is nil or has none.
func ErrorCode(m *jsonrpc.Message) int {
	if m == nil {
		return 0
	}
	member, _ := rawjson.Member(m.Error(), "code")
	var code int
	_ = json.Unmarshal(member, &code) // leaves 0, which is no code
	return code
}
