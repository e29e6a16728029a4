package handshake

import (
	"cmp"
	"fmt"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Phase is where a handshake failed.
type Phase string

// The phases of a handshake.
const (
	// PhaseCreation: there was nobody to send the request to.
	PhaseCreation Phase = metrics.PhaseRequestCreation
	// PhaseProcessing: the server refused, or did not answer in time.
	PhaseProcessing Phase = metrics.PhaseRequestProcessing
	// PhaseSending: the answer could not be written to the client.
	PhaseSending Phase = metrics.PhaseResponseSending
)

// Failure is a failed handshake. It is an error, and tells the client by
// [Failure.Response].
type Failure struct {
	Phase Phase
	// Reason is how it failed: one of the Reason constants of package metrics.
	Reason string
	// Details says in words what happened.
	Details string
	// Attempt is the number of the start that failed, from 1.
	Attempt int
	// RetryAfter is when the next start is due, or, after the last one, when a
	// request of the client causes another.
	RetryAfter time.Duration
	// Err is the cause, or nil.
	Err error
	// Refusal is the server's answer, where that is an error about the request. An
	// internal error (-32603) is none: it may pass, and the transports make such
	// errors of what HTTP servers answer. Else nil.
	Refusal *jsonrpc.Message
}

// Error says in which phase it failed and why.
func (f *Failure) Error() string { return "initialization failed: " + f.cause() }

func (f *Failure) cause() string {
	if f.Err == nil {
		return f.Details
	}
	return fmt.Sprintf("%s: %v", f.Details, f.Err)
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// categories are what a client is told of a failure that may not have its
// details, by reason.
var categories = map[string]string{
	metrics.ReasonTimeout:     "the server did not answer in time",
	metrics.ReasonStartFailed: "the server could not be started or reached",
	metrics.ReasonRejected:    "the server refused to initialize",
	metrics.ReasonBadAnswer:   "the server gave no valid answer",
	metrics.ReasonSendFailed:  "the answer could not be delivered",
	metrics.ReasonGaveUp:      "the server ends soon after each start",
}

// Safe returns the failure without what is for the operator alone: the command,
// its stderr and exit status, the address of a remote server, and what the server
// said. Phase and reason remain.
func (f *Failure) Safe() *Failure {
	safe := *f
	safe.Err, safe.Refusal = nil, nil
	safe.Details = cmp.Or(categories[f.Reason], "no session with the server came about")
	return &safe
}

// failureData is the data member of the error that a client gets.
type failureData struct {
	Type         string `json:"type"`
	Phase        Phase  `json:"phase"`
	Reason       string `json:"reason"`
	Details      string `json:"details"`
	Attempt      int    `json:"attempt"`
	RetryAfterMs int64  `json:"retryAfterMs"`
}

// RPC returns the failure as a JSON-RPC error.
func (f *Failure) RPC() *jsonrpc.Error {
	e := jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", f.Error())
	e.Data = failureData{
		Type: "initialization_error", Phase: f.Phase, Reason: f.Reason, Details: f.cause(),
		Attempt: f.Attempt, RetryAfterMs: f.RetryAfter.Milliseconds(),
	}
	return e
}

// Response returns the failure as the answer to the request with that id.
func (f *Failure) Response(id jsonrpc.ID) []byte { return jsonrpc.NewError(id, f.RPC()) }
