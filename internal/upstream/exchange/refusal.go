package exchange

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/details"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	// maxErrorBody bounds what is read of the body of an unsuccessful response, in
	// bytes: enough for a JSON-RPC error with its data.
	maxErrorBody = 64 << 10
	// maxErrorText bounds how much of a plain-text body an error quotes, in bytes.
	maxErrorText = 200
)

// ErrForgotten ends a session that its server no longer knows.
var ErrForgotten = errors.New("the server has forgotten the session")

// ErrUnread is ErrForgotten, by a refusal that comes before the server reads a request: no tool has run,
// so the request may be repeated whatever it does.
var ErrUnread = fmt.Errorf("%w", ErrForgotten)

// SaysForgottenError is ErrForgotten by words that may be those of a tool, or of the client whose call it
// repeats: so a ping, in which nobody has words, has to show it.
type SaysForgottenError struct {
	// Answer is that to the request, if the session goes on.
	Answer func() []byte
}

// Error is that of ErrForgotten.
func (*SaysForgottenError) Error() string { return ErrForgotten.Error() }

// Unwrap returns ErrForgotten.
func (*SaysForgottenError) Unwrap() error { return ErrForgotten }

// answerOf returns what makes the answer to a request of an unsuccessful response.
func (r *Reader) answerOf(m *jsonrpc.Message, own bool, resp *http.Response, text []byte) func() []byte {
	return func() []byte {
		if own {
			return m.Raw()
		}
		e := r.statusError(resp, text)
		data := DataOf(e)
		data.Retryable, data.RetryAfterMs = false, 0 // a tool may have run
		e.Data = data
		return jsonrpc.NewError(r.ID, e)
	}
}

// statusError is StatusError for the request of the reader, and logs it. The words of the server are in the details
// of the error, which some clients may not see.
func (r *Reader) statusError(resp *http.Response, text []byte) *jsonrpc.Error {
	full, plain := r.Endpoint.StatusError(resp, text), r.Endpoint.StatusError(resp, nil)
	advised, _ := resp.Body.(unauthorized)
	r.Endpoint.Log.Warn("server refused a request", "err", advised.logged(full.Message))
	data := DataOf(plain)
	if full.Code != plain.Code || full.Message == plain.Message || data.Reason == "" {
		return full
	}
	data.Details = details.New(full.Message)
	plain.Data = data
	return plain
}

// refused is Read for an unsuccessful response.
func (r *Reader) refused(resp *http.Response) (*jsonrpc.Message, error) {
	text := errorBody(resp)
	m, own := errorIn(text, r.ID)
	if IsRedirect(resp) { // the log alone names the target: the error may be for any client
		r.Endpoint.Target(resp)
	}
	var forgotten error
	if r.HasSession {
		forgotten = forgets(resp.StatusCode, m, own, text)
	}
	if m != nil { // what forgets looks for must not be taken for a secret
		m = r.Endpoint.secrets(resp).removedFrom(m)
		own = own && m != nil
	}
	switch {
	case errors.Is(forgotten, ErrUnread):
		return nil, forgotten
	case forgotten != nil:
		return nil, &SaysForgottenError{r.answerOf(m, own, resp, text)}
	}
	advised, _ := resp.Body.(unauthorized)
	switch code := resp.StatusCode; {
	case refusesAccess(resp) && r.IsCall && r.VisitsURLs && advised.isForAll() && advised.link != "":
		failure := jsonrpc.Errorf(mcp.CodeElicitationRequired, "%s", advised.full)
		failure.Data = mcp.URLElicitation(rand.Text(), "Log in at the server.", advised.link)
		return nil, failure
	case refusesAccess(resp) && r.IsCall && advised.isForAll():
		return r.toolError(advised.full)
	case refusesAccess(resp):
	case own:
		return m, nil
	case code == http.StatusTooManyRequests, code >= 500: // of one request, whatever a proxy writes in the body
	case m != nil:
		return withID(m, r.ID)
	}
	return nil, r.statusError(resp, text)
}

// toolError returns the result of a tool that says what to do: models read those, and clients show them.
func (r *Reader) toolError(text string) (*jsonrpc.Message, error) {
	result := map[string]any{"content": []map[string]string{{"type": "text", "text": text}}, "isError": true}
	if r.IsStateless {
		result["resultType"] = "complete"
	}
	data, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	return jsonrpc.Parse(jsonrpc.NewResult(r.ID, data))
}

// forgets returns ErrForgotten if an unsuccessful response says that the server does not know the
// session any more, ErrUnread if it says so without having read the request, else nil. Servers say
// it in several ways after a restart. The first row that fits counts:
//
//	the response                                        | says
//	----------------------------------------------------|-------------------------------------------
//	404, about the method                               | nothing
//	400, 401 or 503 without words: see namesSession     | nothing
//	404, 410, 400, 401 or 503, JSON-RPC with the        |
//	request's own id: a tool may have run and say so    | forgotten
//	404 (MCP 2025-06-18), 410 (some gateways)           | unread
//	400 or 401, JSON-RPC with the id null               | unread: no request has been parsed
//	400 or 401, a sentence of transports as text, JSON  | unread
//	400, 401 or 503 otherwise                           | forgotten
func forgets(code int, m *jsonrpc.Message, own bool, text []byte) error {
	var said string
	switch code {
	case http.StatusNotFound:
		if own && ErrorCode(m) == jsonrpc.CodeMethodNotFound {
			return nil
		}
	case http.StatusGone:
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusServiceUnavailable:
		if said = namesSession(code, m, text); said == "" {
			return nil
		}
	default:
		return nil
	}
	switch {
	case own, code == http.StatusServiceUnavailable:
		return ErrForgotten
	case said != "" && m == nil && !ofTransports.MatchString(said):
		return ErrForgotten
	}
	return ErrUnread
}

// ofTransports matches the sentences in which transports refuse a request of a session that they do
// not know. A tool that speaks of sessions says more, or something else.
var ofTransports = regexp.MustCompile(`(?i)^\W*(bad request: )?(` +
	`(no |an? )?(valid |invalid |missing |unknown |expired |such |or )+session( ?id)?( provided)?` +
	`|session( ?id)? (is )?(not found|unknown|expired|invalid|gone|terminated)` +
	`|server not initialized)\W*$`)

// ErrorResponse returns the JSON-RPC error in the body of an unsuccessful response,
// nil for none, and whether it has the id of the request. It reads and closes the
// body, and replaces it with the first 64 KiB, so that a Reader can read it again.
func ErrorResponse(resp *http.Response, id jsonrpc.ID) (m *jsonrpc.Message, own bool) {
	text := errorBody(resp)
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return errorIn(text, id)
}

// errorBody returns the start of a body, or says why it cannot be read.
func errorBody(resp *http.Response) []byte {
	if err := Encoded(resp); err != nil {
		return fmt.Appendf(nil, "the text of this %v", err)
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // half a body is better than none
	return text
}

// errorIn is ErrorResponse for the text of a body. Servers leave out the id if they
// did not read the request.
func errorIn(text []byte, id jsonrpc.ID) (m *jsonrpc.Message, own bool) {
	m, err := jsonrpc.Parse(text)
	if err != nil || m.Kind != jsonrpc.Response || m.ID != id && m.Error() == nil {
		return nil, false
	}
	return m, m.ID == id
}

// namesSession returns what a refusal says about the session: "No valid session ID", "Invalid or expired session",
// "Server not initialized"; empty if it is about something else. Servers that keep sessions in memory answer so after a
// restart: the example that most TypeScript servers started from, the TypeScript SDK, and the Python SDK before it
// answered 404. It looks at these words:
//
//	the body                             | words
//	-------------------------------------|-----------------------------------
//	JSON-RPC of a transport: its code is | the message of the error
//	one, or it has 401, or 400 and no id |
//	JSON-RPC otherwise                   | none: a tool may speak of sessions
//	another JSON object                  | the members in spokenMembers
//	text                                 | its first line
//	HTML                                 | none
func namesSession(code int, m *jsonrpc.Message, text []byte) string {
	var said []string
	switch {
	case m == nil:
		said = append(memberTexts(text, spokenMembers), firstLine(text))
	case ofTransport(code, m):
		said = memberTexts(m.Error(), [][]string{{"message"}})
	}
	for _, one := range said {
		words := strings.ToLower(one[:min(maxErrorText, len(one))])
		if strings.Contains(words, "session") || strings.Contains(words, "server not initialized") {
			return one
		}
	}
	return ""
}

// ofTransport reports whether an error response is that of a transport, before a method has read
// the request.
func ofTransport(code int, m *jsonrpc.Message) bool {
	switch ErrorCode(m) {
	case -32000, -32001, jsonrpc.CodeInvalidRequest:
		return true
	}
	return code == http.StatusUnauthorized || code == http.StatusBadRequest && m.ID == jsonrpc.Null
}

// spokenMembers are the members in which frameworks say in a JSON object why they refuse a request.
var spokenMembers = [][]string{{"error"}, {"message"}, {"detail"}, {"error_description"}, {"error", "message"}}

// memberTexts returns those of the members of an object that are texts.
func memberTexts(object []byte, members [][]string) (all []string) {
	for _, names := range members {
		if text, ok := rawjson.MemberText(object, names...); ok {
			all = append(all, text)
		}
	}
	return all
}

// These are the texts that go-sdk writes as plain text with status 400, for a method that it does not
// know and for a request that lacks something that its method needs (mcp/shared.go,
// checkRequest).
const (
	goSDKUnknown = "JSON RPC not handled: "
	goSDKInvalid = "invalid request: "
)

// StatusError returns the error for a request that got an unsuccessful status and a
// text, which may be nil, instead of a JSON-RPC response.
func (e *Endpoint) StatusError(resp *http.Response, text []byte) *jsonrpc.Error {
	data := ErrorData{Reason: ReasonRefused, Status: resp.StatusCode}
	hidden := e.secrets(resp)
	said := hidden.reason(text)
	why := ""
	if said != "" {
		why = ": " + said
	}
	switch code := resp.StatusCode; {
	case refusesAccess(resp):
		data.Reason = ReasonUnauthorized
		body, ok := resp.Body.(unauthorized)
		data.NeedsLogin, data.Retryable = NeedsPerson(resp) && !body.isStalled, body.isStalled
		if ok && body.isForAll() {
			data.Link = body.link
			return NewError(data, "%s", body.full)
		} else if ok && body.full != "" {
			data.Details = details.New(body.full)
			return NewError(data, "%s", body.public)
		} else if ok {
			return NewError(data, "the server%s needs to be authorized: it takes no token that the gateway can get",
				body.server)
		}
		if why = hidden.shown(statedReason(text)); why != "" { // else it may be anything, such as what was sent
			why = "; it says: " + why
		}
		return NewError(data, "the server refused access (%s): configure the credentials that it wants, "+
			"for example as an Authorization header%s", Status(resp), why)
	case code >= 500 && code != http.StatusServiceUnavailable && retryAfter(resp) == 0:
		return NewError(data, "the server failed (%s)%s", Status(resp), why)
	case code == http.StatusTooManyRequests, code >= 500:
		data.Reason, data.Retryable, data.RetryAfterMs = reasonRateLimited, true, retryAfter(resp).Milliseconds()
		return NewError(data, "the server takes no more requests now (%s)%s", Status(resp), why)
	case IsRedirect(resp):
		return NewError(data, "the server redirects elsewhere (%s): configure the address that it leads to",
			Status(resp))
	case strings.HasPrefix(said, goSDKUnknown):
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "the server does not know the method")
	case strings.HasPrefix(said, goSDKInvalid):
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s", said)
	}
	return NewError(data, "the server refused the request (%s)%s", Status(resp), why)
}

// Redirected returns the error for a response that leads to another address, which it
// names. It is for a client that has no session yet.
func (e *Endpoint) Redirected(resp *http.Response) *jsonrpc.Error {
	return NewError(ErrorData{Reason: ReasonRefused, Status: resp.StatusCode},
		"the server redirects to %s (%s): configure that address", e.Target(resp), Status(resp))
}

// IsRedirect reports whether a response leads to another address.
func IsRedirect(resp *http.Response) bool { return resp.StatusCode >= 300 && resp.StatusCode < 400 }

// Target returns the address that a redirect leads to, without what may be secret in it, and
// logs it.
func (e *Endpoint) Target(resp *http.Response) string {
	to := "another address"
	if at, err := resp.Location(); err == nil {
		to = PublicURL(at.String())
	}
	e.Log.Warn("server redirects elsewhere", "to", to)
	return to
}

// reason returns why a server refuses a request, by the body of its response: what the members of a JSON
// object say that frameworks have for that, other JSON as it is, or the first line of a text, each
// without secrets and shortened; empty for HTML.
func (s secrets) reason(text []byte) string {
	if said := statedReason(text); said != "" {
		return s.shown(said)
	}
	if line := firstLine(text); line != "" {
		return s.shown(line)
	}
	if json.Valid(text) {
		return s.shown(string(s.removedFromJSON(rawjson.Compact(text))))
	}
	return ""
}

// statedReason returns what such members of a JSON object say, else empty.
func statedReason(text []byte) string {
	var said []string
	for _, name := range []string{"error", "message", "detail", "error_description", "errors", "title"} {
		value, _ := rawjson.Member(text, name)
		for _, one := range sentences(value) {
			if !slices.Contains(said, one) {
				said = append(said, one)
			}
		}
	}
	return strings.Join(said, ": ")
}

// maxSentences bounds the faults of one request that an error quotes.
const maxSentences = 3

// sentences returns the texts of a value that says why: a text, an object with a message, or a list of
// these, such as FastAPI's, whose elements also say where.
func sentences(value json.RawMessage) (all []string) {
	if one, ok := rawjson.Text(value); ok {
		return append(all, strings.Join(strings.Fields(one), " "))
	}
	rawjson.Each(value, func(element json.RawMessage) {
		if len(all) < maxSentences {
			all = append(all, sentences(element)...)
		}
	})
	for _, name := range []string{"msg", "message", "detail"} {
		one, ok := rawjson.MemberText(value, name)
		if !ok {
			continue
		}
		if at := location(value); at != "" {
			one = at + " " + one
		}
		return append(all, strings.Join(strings.Fields(one), " "))
	}
	return all
}

// location returns where a fault is, as FastAPI says it: "body.name".
func location(fault json.RawMessage) string {
	loc, _ := rawjson.Member(fault, "loc")
	var steps []string
	rawjson.Each(loc, func(step json.RawMessage) {
		name, ok := rawjson.Text(step)
		if !ok {
			name = string(step)
		}
		steps = append(steps, name)
	})
	return strings.Join(steps, ".")
}

// firstLine returns the first line of a text; empty for HTML and JSON.
func firstLine(text []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	line = strings.ToValidUTF8(strings.TrimSpace(line), "")
	if strings.HasPrefix(line, "<") || strings.HasPrefix(line, "{") || strings.HasPrefix(line, "[") {
		return "" // a page, or JSON that is not JSON-RPC
	}
	return line
}

// Status returns the status of a response as text, such as "404 Not Found". Nothing
// in it comes from the server.
func Status(resp *http.Response) string {
	return strings.TrimSpace(strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode))
}

// Said returns the status of a response, and in parentheses the reason in its body, which it reads; the
// status alone for HTML, and where the reason says no more.
func (e *Endpoint) Said(resp *http.Response) string {
	said := e.secrets(resp).reason(errorBody(resp))
	if said == "" || strings.EqualFold(said, http.StatusText(resp.StatusCode)) {
		return Status(resp)
	}
	return Status(resp) + " (" + said + ")"
}

// Refusal returns the error for a response whose body says in JSON why the request is refused, nil for
// another. It reads the body, as [ErrorResponse] has left it.
func (e *Endpoint) Refusal(resp *http.Response) *jsonrpc.Error {
	text := errorBody(resp)
	resp.Body = io.NopCloser(bytes.NewReader(text))
	isAboutRequest := resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusUnprocessableEntity
	if !isAboutRequest || statedReason(text) == "" {
		return nil
	}
	return e.StatusError(resp, text)
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

func refusesAccess(resp *http.Response) bool {
	return resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden
}

// AccessError says that the server refuses these credentials.
type AccessError struct {
	Reason *jsonrpc.Error // for a client: without the address
	// NeedsPerson is [NeedsPerson] of the response.
	NeedsPerson bool
	place       string
	full        string // what the operator can do; empty: the reason says it
}

// Error names the place and the reason.
func (e *AccessError) Error() string { return e.place + ": " + cmp.Or(e.full, e.Reason.Message) }

// Is reports whether target is [jsonrpc.ErrDenied].
func (e *AccessError) Is(target error) bool { return target == jsonrpc.ErrDenied }

// CheckAccess returns an *[AccessError] for 401 and 403, else nil.
func (e *Endpoint) CheckAccess(resp *http.Response) error {
	if !refusesAccess(resp) {
		return nil
	}
	var text []byte
	if strings.Contains(resp.Header.Get("Content-Type"), "json") { // which ends, unlike a stream
		text = errorBody(resp)
	}
	advised, _ := resp.Body.(unauthorized)
	return &AccessError{e.StatusError(resp, text), NeedsPerson(resp), e.Place(), advised.full}
}
