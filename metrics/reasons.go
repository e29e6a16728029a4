package metrics

// Why a GET got no stream, or why a POST got no 202: the reasons of
// [Metrics.ConnectionRejected] and [Metrics.PostRejected].
const (
	RejectedMaxConnections    = "max_connections"    // too many connections are open
	RejectedPerIP             = "per_ip"             // too many are open from this address
	RejectedRate              = "rate"               // this address opens connections too fast
	RejectedDraining          = "draining"           // the gateway is shutting down
	RejectedBudget            = "budget"             // the process, or the connection, holds as many bytes as it may
	RejectedOrigin            = "origin"             // the Origin header is not allowed
	RejectedHost              = "host"               // the Host header is not allowed
	RejectedAuth              = "auth"               // not authenticated
	RejectedBadRequest        = "bad_request"        // the query or a header is not valid
	RejectedNotFound          = "not_found"          // no such route
	RejectedUnknownConnection = "unknown_connection" // no connection with that id, or of another principal
	RejectedMethod            = "method"             // the route does not have this method
)

// Why a POST got no 202: further reasons of [Metrics.PostRejected].
const (
	PostTooLarge       = "too_large"       // the body is over the message limit
	PostInvalidJSON    = "invalid_json"    // the body is not JSON
	PostInvalidRequest = "invalid_request" // the body is JSON and not one JSON-RPC message
	PostMediaType      = "media_type"      // the Content-Type is not JSON
	PostClosed         = "closed"          // the connection was closing
	PostNotAcceptable  = "not_acceptable"  // the Accept header lacks a form of the answer
	PostNoSession      = "no_session"      // the message needs a session and names none
	PostBusy           = "busy"            // too many calls of this client wait for the server
)

// Why a connection ended: the reasons of [Metrics.ConnectionClosed].
const (
	ClosedClient       = "client"        // the client went away
	ClosedSlow         = "slow"          // it did not read what waited for it
	ClosedWriteTimeout = "write_timeout" // one write took longer than the write timeout
	ClosedWriteError   = "write_error"   // a write failed
	ClosedIdle         = "idle"          // no POST and nothing in flight for the idle timeout
	ClosedShutdown     = "shutdown"      // the gateway shut down
	ClosedServer       = "server"        // the server refused this client a session, or ended it
	// Its principal has no token any more, or its token is not valid or cannot be checked.
	ClosedRevoked = "revoked"
	ClosedExpired = "expired" // its token expired
	ClosedError   = "error"   // something inside the gateway failed
)

// How a handshake ended: the results of [Metrics.HandshakeDone].
const (
	HandshakeOK       = "ok"
	HandshakeError    = "error"
	HandshakeCanceled = "canceled" // its connection ended first
)

// Where a handshake failed: the phases of [Metrics.HandshakeDone], and the values of
// data.phase of an initialization error.
const (
	PhaseRequestCreation   = "request_creation"   // no session with a server began
	PhaseRequestProcessing = "request_processing" // the server refused or did not answer in time
	PhaseResponseSending   = "response_sending"   // the answer could not be written
)

// How a handshake failed: the reasons of [Metrics.HandshakeDone].
const (
	ReasonTimeout     = "timeout"      // it took longer than the client waits, or than a start may take
	ReasonStartFailed = "start_failed" // the server could not be reached, or ended before it answered
	ReasonRejected    = "rejected"     // the server answered initialize with an error
	ReasonDenied      = "unauthorized" // the remote server answered 401 or 403
	ReasonBadAnswer   = "bad_answer"   // the server's answer is no initialize result
	ReasonSendFailed  = "send_failed"  // the announcement could not be delivered
	ReasonGaveUp      = "gave_up"      // the server ended soon after each of its starts
)

// Why the gate refused a message: the reasons of [Metrics.GateRefused] and
// [Metrics.GateRejected].
const (
	GateBudget   = "budget"   // the process holds as many bytes as it may
	GateFull     = "full"     // too many messages wait; this one never waited
	GateTimeout  = "timeout"  // it waited for the initialization timeout
	GateFailed   = "failed"   // the handshake failed
	GateCanceled = "canceled" // the client cancelled it
	GateClosed   = "closed"   // the connection ended
)

// Why a request failed, if not with a JSON-RPC code: values of errorType in
// [Metrics.RequestDone].
const (
	ErrorTimeout        = "timeout"              // the server did not answer in time
	ErrorSessionLost    = "session_lost"         // the session ended with the request in flight
	ErrorCanceled       = "canceled"             // the client cancelled it or went away
	ErrorInitialization = "initialization_error" // there was no session
	ErrorClosed         = "closed"               // the connection was closing
	ErrorBusy           = "busy"                 // too many requests were in flight
	ErrorDraining       = "draining"             // the gateway was shutting down
	ErrorInvalid        = "invalid_response"     // the server's answer was not valid, or too long
	ErrorServerChanged  = "server_changed"       // the server no longer has what the client was told of
	ErrorTool           = "tool_error"           // the tool's result has isError
)

// Why the gateway dropped a message: the reasons of [Metrics.Dropped].
const (
	DroppedUnknownResponse = "unknown_response" // a response without a pending request, from server or client
	// A server request for no client, or the cancellation of an unknown request.
	DroppedUnknownRequest  = "unknown_request"
	DroppedInvalidMessage  = "invalid_message"  // not a JSON-RPC message
	DroppedTooLong         = "too_long"         // over the message limit
	DroppedNotReady        = "not_ready"        // there was no session for it
	DroppedUnknownProgress = "unknown_progress" // progress for no request in flight
	DroppedUnattributed    = "unattributed"     // from a shared session, for an unknown client
	DroppedUndelivered     = "undelivered"      // a notification or response that a remote server has not taken
	DroppedShared          = "shared"           // a client's notification that shared sessions refuse
	DroppedClientGone      = "client_gone"      // for a client that had gone and has not come back in time
	DroppedLeftOut         = "left_out"         // a client's notification that a selection does not let pass
)

// How a session matched a response of the server: values of by in
// [Metrics.ResponseMatched].
const (
	MatchedID     = "id"     // by its id
	MatchedString = "string" // by its id, which was a string
	MatchedFIFO   = "fifo"   // without an id or with an unknown one, to the request with which it came or the oldest
	MatchedOrphan = "orphan" // to no request: late, repeated or unknown
)

// These are the holders of [Metrics.OverBudget]: something for them was refused, because the process holds
// as many bytes as it may.
const (
	HeldPost       = "post"       // the body of a POST, or the request in it
	HeldConnection = "connection" // a new connection
	HeldGate       = "gate"       // a message that had to wait for the session
	HeldOutbox     = "outbox"     // a message to a client that is slow to read
)

// How a child process ended: the reasons of [Metrics.ChildExited].
const (
	ChildOK     = "ok"     // by itself, exit code 0
	ChildError  = "error"  // by itself, another exit code
	ChildSignal = "signal" // by a signal that the gateway did not send
	ChildClosed = "closed" // the gateway ended it
)
