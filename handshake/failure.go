package handshake

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// IsPlanned reports whether a session has ended because a login at the server has ended, was made or is wanted: the
// error has a method Planned that says so. That is no failure of the server.
func IsPlanned(why error) bool {
	planned, ok := errors.AsType[interface {
		error
		Planned() bool
	}](why)
	return ok && planned.Planned()
}

// Phase is where a handshake failed.
type Phase string

// The phases of a handshake.
const (
	// PhaseCreation: there was no session to send the request on.
	PhaseCreation Phase = metrics.PhaseRequestCreation
	// PhaseProcessing: the server refused, or did not answer in time.
	PhaseProcessing Phase = metrics.PhaseRequestProcessing
	// PhaseSending: the answer could not be written to the client.
	PhaseSending Phase = metrics.PhaseResponseSending
)

// Failure is a failed handshake. It is an error; [Failure.Response] makes it an
// answer to the client.
type Failure struct {
	Phase Phase
	// Reason is how it failed: one of the Reason constants of package metrics.
	Reason string
	// Details says what happened.
	Details string
	// Attempt is the number of the start that failed, from 1.
	Attempt int
	// RetryAfter is the time until the next start or, after the last one, until a
	// request of the client may cause another.
	RetryAfter time.Duration
	// Remedy says what to do, for those who may see the Details; empty if that is not known.
	Remedy string
	// Err is the cause, or nil.
	Err error
	// Refusal is the server's answer if that is an error about the request, else nil.
	// An internal error (-32603) is not: it may pass, and the transports turn errors
	// of HTTP servers into it.
	Refusal *jsonrpc.Message
}

// Error says why the handshake failed.
func (f *Failure) Error() string {
	if f.Err == nil || f.Err == context.DeadlineExceeded { // the details say that the time was up
		return f.Details
	}
	return f.Details + ": " + strings.ReplaceAll(f.Err.Error(), context.DeadlineExceeded.Error(), "time is up")
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// safeDetails are the Details of failures without what is for the operator alone, by
// reason.
var safeDetails = map[string]string{
	metrics.ReasonTimeout:     "the server did not answer in time",
	metrics.ReasonStartFailed: "the server could not be started or reached",
	metrics.ReasonDenied:      "the server refused access: it needs other credentials",
	metrics.ReasonRejected:    "the server refused to initialize",
	metrics.ReasonBadAnswer:   "the server gave no valid answer",
	metrics.ReasonSendFailed:  "the answer could not be delivered",
	metrics.ReasonGaveUp:      "the server ends soon after each start",
}

// IsLate reports whether the start goes on: its client has waited too long, and the server has not failed.
func (f *Failure) IsLate() bool { return f.Reason == metrics.ReasonTimeout && f.Err == nil }

// Safe returns the failure without what is for the operator alone: the command, its
// stderr and exit status, the address of a remote server, and the server's error
// message. It keeps phase and reason.
func (f *Failure) Safe() *Failure {
	safe := *f
	safe.Err, safe.Refusal, safe.Remedy = nil, nil, ""
	safe.Details = cmp.Or(safeDetails[f.Reason], "no session with the server could be started")
	return &safe
}

// failureData is the data member of the error that a client gets.
type failureData struct {
	Type         string `json:"type"`
	Phase        Phase  `json:"phase"`
	Reason       string `json:"reason"`
	Details      string `json:"details"`
	Remedy       string `json:"remedy,omitempty"`
	Attempt      int    `json:"attempt"`
	RetryAfterMs int64  `json:"retryAfterMs"`
}

// RPC returns the failure as a JSON-RPC error.
func (f *Failure) RPC() *jsonrpc.Error {
	e := jsonrpc.Errorf(jsonrpc.CodeInternalError, "initialization failed: %s", f.Error())
	e.Data = failureData{
		Type: "initialization_error", Phase: f.Phase, Reason: f.Reason, Details: f.Error(), Remedy: f.Remedy,
		Attempt: f.Attempt, RetryAfterMs: f.RetryAfter.Milliseconds(),
	}
	return e
}

// Response returns the failure as the answer to the request with that id.
func (f *Failure) Response(id jsonrpc.ID) []byte { return jsonrpc.NewError(id, f.RPC()) }
