package handshake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// requester is the session that a handshake runs on.
type requester interface {
	// Call sends a request and returns the response to it.
	Call(ctx context.Context, method string, params json.RawMessage) (*jsonrpc.Message, error)
	// Notify sends a notification.
	Notify(method string, params json.RawMessage) error
}

// Result is what a server answered to initialize. It is immutable.
type Result struct {
	// Raw is the InitializeResult as the server sent it.
	Raw json.RawMessage
	// Version is the protocol version of the session.
	Version string
	// Lowered is the version that the server was asked for in the end, because it had refused
	// a newer one; empty for most.
	Lowered string
}

// Run initializes a session: it sends initialize with params, waits for the
// answer until ctx ends, and sends notifications/initialized. A server that refuses the
// protocol version, instead of answering its own, is asked for older ones: see olderVersions.
// The error is a *[Failure] in PhaseProcessing. Cancelling ctx does not cancel the request:
// initialize must not be cancelled (MCP 2025-11-25, basic/utilities/cancellation).
func Run(ctx context.Context, c requester, params json.RawMessage) (*Result, error) {
	response, err := c.Call(ctx, mcp.MethodInitialize, params)
	lowered := ""
	if err == nil && response.Error() != nil {
		for _, older := range olderVersions(response, params) {
			again, failed := c.Call(ctx, mcp.MethodInitialize, WithVersion(params, older))
			if failed == nil && again.Error() != nil {
				continue // the first refusal is the one that the client gets
			}
			response, err, lowered = again, failed, older
			break
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, newFailure(metrics.ReasonTimeout, "the server did not answer in time", err)
	case err != nil:
		return nil, unanswered(err)
	case response.Error() != nil:
		return nil, newRefusal(response)
	}
	raw := response.Result()
	version, ok := rawjson.MemberText(raw, "protocolVersion")
	if !ok {
		return nil, newFailure(metrics.ReasonBadAnswer, "the server's initialize result has no protocolVersion", nil)
	}
	if err := c.Notify(mcp.MethodInitialized, nil); err != nil {
		return nil, newFailure(metrics.ReasonStartFailed, "the server ended during the handshake", err)
	}
	return &Result{Raw: raw, Version: version, Lowered: lowered}, nil
}

// exited is the end of a program.
type exited interface {
	error
	Exited()
}

// unanswered returns the failure of a Call that ended without a response.
func unanswered(err error) *Failure {
	reason, cause := reasonOf(err), endOf(err)
	_, isProgram := errors.AsType[exited](cause)
	switch {
	case isProgram:
		return newFailure(reason, "the program ended before it answered", cause)
	case cause != err:
		return newFailure(reason, "the session was lost before the server answered", cause)
	}
	return newFailure(reason, "the server did not answer initialize", err)
}

// endOf returns how the server ended if err is a lost session, else err.
func endOf(err error) error {
	if lost, ok := errors.AsType[*multiplex.LostError](err); ok {
		return lost.Err
	}
	return err
}

func newFailure(reason, details string, cause error) *Failure {
	return &Failure{Phase: PhaseProcessing, Reason: reason, Details: details, Err: cause}
}

// reasonOf returns the reason for a failed Call: the server's answer was not valid,
// or the server is gone.
func reasonOf(err error) string {
	if _, answered := errors.AsType[*jsonrpc.Error](err); answered {
		return metrics.ReasonBadAnswer
	}
	return metrics.ReasonStartFailed
}

// newRefusal returns the failure for the server's error response. Its Details have
// at most 200 characters of the server's message.
func newRefusal(response *jsonrpc.Message) *Failure {
	f := newFailure(metrics.ReasonRejected, "the server refused initialize", nil)
	var e jsonrpc.Error
	err := json.Unmarshal(response.Error(), &e)
	switch {
	case err == nil && e.Code == jsonrpc.CodeInvalidRequest && e.Message == multiplex.Echo:
		// The server has not refused it.
		f.Reason, f.Details = metrics.ReasonBadAnswer, multiplex.Echo
	case err == nil:
		f.Details = fmt.Sprintf("the server refused initialize: %.200s (code %d)", e.Message, e.Code)
		if denies(response) {
			f.Reason = metrics.ReasonDenied
		}
		if e.Code != jsonrpc.CodeInternalError {
			f.Refusal = response
		}
	}
	return f
}

// denies reports whether a remote server answered 401 or 403, which the transport turned
// into this error response.
func denies(response *jsonrpc.Message) bool {
	reason, _ := rawjson.MemberText(response.Error(), "data", "reason")
	return reason == metrics.ReasonDenied
}

// Response returns the answer to the synthetic request, under the given id.
func (r *Result) Response(id jsonrpc.ID) []byte { return jsonrpc.NewResult(id, r.Raw) }

// Answer returns the answer to a client's own initialize request: the result under
// the client's id, with the version negotiated for a client that requests one.
func (r *Result) Answer(id jsonrpc.ID, requested string) []byte {
	if negotiated := negotiate(requested, r.Version); negotiated != r.Version {
		return jsonrpc.NewResult(id, rawjson.ReplaceMember(r.Raw, rawjson.Quote(negotiated), "protocolVersion"))
	}
	return r.Response(id)
}

// RequestedVersion returns the protocol version that initialize params request, or ""
// for none that the gateway knows.
func RequestedVersion(params json.RawMessage) string {
	if version, _ := rawjson.MemberText(params, "protocolVersion"); mcp.HasInitialize(version) {
		return version
	}
	return ""
}

// negotiate returns the protocol version for a client that requests one, on a
// session for which the server answered another: the older one if both are known,
// else the server's (MCP 2025-11-25, basic/lifecycle, version negotiation).
func negotiate(requested, answered string) string {
	if mcp.HasInitialize(requested) && mcp.HasInitialize(answered) {
		return min(requested, answered) // dates in this form order as text
	}
	return answered
}

// maxServerText bounds each text that a server says of itself, in bytes.
const maxServerText = 64

// Server is what a server says of itself, shortened; empty where it says nothing.
type Server struct{ Name, Version, ProtocolVersion string }

// About is what a server says of itself to people, shortened; empty where it says nothing.
type About struct{ Title, Instructions string }

// maxInstructions bounds the instructions of an About, in bytes.
const maxInstructions = 2 << 10

// About returns what the server says of itself to people.
func (r *Result) About() About {
	instructions, _ := rawjson.MemberText(r.Raw, "instructions")
	return About{r.serverText("title"), strings.Clone(instructions[:min(maxInstructions, len(instructions))])}
}

// attrs returns the log attributes with a server's name and versions.
func (s Server) attrs() []any {
	return []any{"serverName", s.Name, "serverVersion", s.Version, "protocolVersion", s.ProtocolVersion}
}

// Server returns what the server says of itself.
func (r *Result) Server() Server {
	return Server{r.serverText("name"), r.serverText("version"), r.Version[:min(maxServerText, len(r.Version))]}
}

func (r *Result) serverText(member string) string {
	text, _ := rawjson.MemberText(r.Raw, "serverInfo", member)
	return text[:min(maxServerText, len(text))]
}

// Advertises reports whether the server declared a capability, for example
// "tools", "listChanged", by the rule of [mcp.Declares].
func (r *Result) Advertises(names ...string) bool {
	return mcp.Declares(r.Raw, append([]string{"capabilities"}, names...)...)
}

// ResultOf returns the result of initialize that is remembered.
func ResultOf(answers *remember.Answers) *Result {
	raw := json.RawMessage(answers.Initialize)
	version, _ := rawjson.MemberText(raw, "protocolVersion")
	return &Result{Raw: raw, Version: version}
}
