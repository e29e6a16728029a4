package exchange

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Reasons of the errors that requests to a remote server get, in data.reason.
const (
	reasonUnauthorized = "unauthorized"
	ReasonRefused      = "request_refused"
	reasonRateLimited  = "rate_limited"
	ReasonLost         = "response_lost"
	reasonInvalid      = "invalid_response"
)

var (
	// ErrForgotten ends a session that its server no longer knows.
	ErrForgotten = errors.New("the server has forgotten the session")
	// ErrAnswered stops the reading of a response after the answer.
	ErrAnswered = errors.New("the request is answered")
)

// maxErrorText bounds how much of a plain-text body is passed on.
const maxErrorText = 200

// ErrorData is the data of the errors that requests to a remote server get.
type ErrorData struct {
	Reason    string `json:"reason"`
	Retryable bool   `json:"retryable"`
	// Status is the HTTP status code; 0: there was none.
	Status int `json:"status,omitempty"`
	// RetryAfterMs is when repeating makes sense, as far as the server said it.
	RetryAfterMs int64 `json:"retryAfterMs,omitempty"`
}

// NewError returns an error response with data that says why.
func NewError(data ErrorData, format string, args ...any) *jsonrpc.Error {
	e := jsonrpc.Errorf(jsonrpc.CodeInternalError, format, args...)
	e.Data = data
	return e
}

// LostResponse returns the error of a request whose response did not come.
func LostResponse(why string) *jsonrpc.Error {
	return NewError(ErrorData{Reason: ReasonLost}, "the server's answer was lost: %s", why)
}

// InvalidResponse returns the error of a request whose response cannot be used.
func InvalidResponse(format string, args ...any) *jsonrpc.Error {
	return NewError(ErrorData{Reason: reasonInvalid}, "the server's answer cannot be used: "+format, args...)
}

// TooLong returns the error of a request whose response is over the limit.
func TooLong(limit int) *jsonrpc.Error {
	return InvalidResponse("it is over the limit of %d bytes", limit)
}

// NotAnAnswer returns the error for a successful response that holds no messages.
func NotAnAnswer(resp *http.Response) *jsonrpc.Error {
	if resp.StatusCode != http.StatusOK {
		return InvalidResponse("it is an empty %s", Status(resp))
	}
	return InvalidResponse("it is neither JSON nor an event stream, but %.64q: check the address", resp.Header.Get("Content-Type"))
}

// LostSession returns why a session ends when its server cannot be reached.
func LostSession(err error) error {
	return fmt.Errorf("the server cannot be reached: %s", PlainCause(err))
}

// PlainCause says why a request failed, for a client: without addresses.
func PlainCause(err error) string {
	if of, ok := errors.AsType[*requestError](err); ok {
		err = of.err
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns.Err
	}
	return err.Error()
}

// Refusal is what an unsuccessful response means.
type Refusal struct {
	Answer []byte // for the request; nil: none
	Over   error  // why the session is over; nil: it goes on
}

// ReadRefusal reads an unsuccessful response. session tells whether the server has
// given the session an id.
func ReadRefusal(resp *http.Response, id jsonrpc.ID, session bool) Refusal {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, ErrorBodyLimit)) // of half a body half is told
	m, own := ErrorResponse(text, id)
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
	case code == http.StatusNotFound && session && !(own && methodUnknown(m)),
		code == http.StatusBadRequest && session && namesSession(m, text):
		return Refusal{Over: ErrForgotten}
	case own:
		return Refusal{Answer: m.Raw()}
	case code == http.StatusTooManyRequests, code >= 500 && retryAfter(resp) > 0:
	case code >= 500:
		return Refusal{Over: fmt.Errorf("the server answered %s", Status(resp))}
	case m != nil:
		return Refusal{Answer: m.WithID(id)}
	}
	return Refusal{Answer: jsonrpc.NewError(id, StatusError(resp, text))}
}

// namesSession reports whether a 400 is about the id of the session. Servers that
// keep sessions in memory say so after a restart: the example that most TypeScript
// servers were made from, and Python's SDK before it said 404.
func namesSession(m *jsonrpc.Message, text []byte) bool {
	said := firstLine(text)
	if m != nil {
		switch ErrorCode(m.Error()) {
		case -32000, -32001, jsonrpc.CodeInvalidRequest: // of a transport: no method has read the request
			said = ErrorText(m.Error())
		}
	}
	return strings.Contains(strings.ToLower(said), "session")
}

// ErrorResponse returns the JSON-RPC error response in a body, nil for none, and
// whether it names the request. Servers leave the id out where they have not read
// the request.
func ErrorResponse(text []byte, id jsonrpc.ID) (m *jsonrpc.Message, own bool) {
	m, err := jsonrpc.Parse(text)
	if err != nil || m.Kind != jsonrpc.Response || m.ID != id && m.Error() == nil {
		return nil, false
	}
	return m, m.ID == id
}

func methodUnknown(m *jsonrpc.Message) bool {
	code, _ := jsonrpc.Member(m.Error(), "code")
	return string(code) == strconv.Itoa(jsonrpc.CodeMethodNotFound)
}

// StatusError returns the error for a request that was answered with a status and
// a text.
func StatusError(resp *http.Response, text []byte) *jsonrpc.Error {
	data := ErrorData{Reason: ReasonRefused, Status: resp.StatusCode}
	said := firstLine(text)
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		data.Reason = reasonUnauthorized
		return NewError(data, "the server refused access (%s): configure the credentials that it wants, for example as an Authorization header", Status(resp))
	case code >= 500 && code != http.StatusServiceUnavailable && retryAfter(resp) == 0:
		return NewError(data, "the server failed (%s)", Status(resp))
	case code == http.StatusTooManyRequests, code >= 500:
		data.Reason, data.Retryable, data.RetryAfterMs = reasonRateLimited, true, retryAfter(resp).Milliseconds()
		return NewError(data, "the server takes no more requests now (%s)", Status(resp))
	case code >= 300 && code < 400:
		return NewError(data, "the server redirects elsewhere (%s): configure the address that it leads to", Status(resp))
	case strings.HasPrefix(said, goSDKUnknown):
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "the server does not know the method")
	case strings.HasPrefix(said, goSDKInvalid):
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s", said)
	case said == "":
		return NewError(data, "the server refused the request (%s)", Status(resp))
	}
	return NewError(data, "the server refused the request (%s): %s", Status(resp), said)
}

// What go-sdk writes as plain text with status 400, of a method that it does not
// know and of a request that does not have what its method needs (mcp/shared.go,
// checkRequest).
const (
	goSDKUnknown = "JSON RPC not handled: "
	goSDKInvalid = "invalid request: "
)

// firstLine returns the first line of a text, shortened; empty for HTML and JSON.
func firstLine(text []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	line = strings.ToValidUTF8(strings.TrimSpace(line), "")
	if strings.HasPrefix(line, "<") || strings.HasPrefix(line, "{") {
		return "" // a page, or JSON that is no JSON-RPC
	}
	if len(line) > maxErrorText {
		line = strings.ToValidUTF8(line[:maxErrorText], "") + "…"
	}
	return line
}

// Status returns the status of a response as text, such as "404 Not Found".
func Status(resp *http.Response) string {
	if text := http.StatusText(resp.StatusCode); text != "" {
		return strconv.Itoa(resp.StatusCode) + " " + text
	}
	return strconv.Itoa(resp.StatusCode)
}

// retryAfter returns the pause that the header asks for; 0: none.
func retryAfter(resp *http.Response) time.Duration {
	value := resp.Header.Get("Retry-After")
	if s, err := strconv.ParseUint(value, 10, 31); err == nil {
		return max(time.Duration(s)*time.Second, time.Millisecond)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(time.Until(at), time.Millisecond)
	}
	return 0
}

// RefusesAccess reports whether a response says that the credentials do not suffice.
func RefusesAccess(resp *http.Response) bool {
	return resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden
}

// AccessError is the refusal of a server to speak with these credentials.
type AccessError struct {
	place  string
	Reason *jsonrpc.Error
}

// NewAccessError returns the error for such a response.
func NewAccessError(x *Endpoint, resp *http.Response) *AccessError {
	return &AccessError{x.Place(), StatusError(resp, nil)}
}

// Error names the place and the reason.
func (e *AccessError) Error() string {
	return "connect to " + e.place + ": " + e.Reason.Message
}

// ErrorCode returns the code of an error object; 0 where there is none.
func ErrorCode(raw json.RawMessage) int {
	var code int
	member, _ := jsonrpc.Member(raw, "code")
	_ = json.Unmarshal(member, &code) // 0 stays, which stands for no error of ours
	return code
}

// ErrorText is the message of an error object, as far as it is short enough to be
// told.
func ErrorText(raw json.RawMessage) string {
	member, _ := jsonrpc.Member(raw, "message")
	text, _ := jsonrpc.Text(member)
	return text[:min(200, len(text))]
}
