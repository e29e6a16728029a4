package metrics

// Why an open connection ended: the reasons of [Metrics.ConnectionClosed].
const (
	ClosedClient       = "client"        // the client went away
	ClosedSlow         = "slow"          // its outbox stayed full
	ClosedWriteTimeout = "write_timeout" // one write took longer than the write timeout
	ClosedWriteError   = "write_error"   // a write failed
	ClosedIdle         = "idle"          // no POST and nothing in flight for the connection timeout
	ClosedShutdown     = "shutdown"      // the gateway shut down
	ClosedError        = "error"         // something inside the gateway failed
)

// Why a GET got no stream: the reasons of [Metrics.ConnectionRejected].
const (
	RejectedMaxConnections = "max_connections" // as many connections are open as are allowed
	RejectedPerIP          = "per_ip"          // as many as are allowed from this address
	RejectedRate           = "rate"            // new connections from this address come too fast
	RejectedDraining       = "draining"        // the gateway is shutting down
	RejectedOrigin         = "origin"          // the Origin header is not allowed
	RejectedHost           = "host"            // the Host header is not allowed
	RejectedAuth           = "auth"            // not authenticated
	RejectedBadRequest     = "bad_request"     // the query or a header makes no sense
	RejectedNotFound       = "not_found"       // no such route
	RejectedMethod         = "method"          // the route has another method
)

// Why a POST got no 202: the reasons of [Metrics.PostRejected].
const (
	PostUnknownConnection = "unknown_connection" // no connection of that id, or not this principal's
	PostTooLarge          = "too_large"          // the body is over the message limit
	PostInvalidJSON       = "invalid_json"       // the body is not JSON
	PostInvalidRequest    = "invalid_request"    // the body is JSON and not one JSON-RPC message
	PostMediaType         = "media_type"         // the Content-Type is not JSON
	PostOrigin            = "origin"             // the Origin header is not allowed
	PostHost              = "host"               // the Host header is not allowed
	PostAuth              = "auth"               // not authenticated
	PostClosed            = "closed"             // the connection was closing
	PostBadRequest        = "bad_request"        // anything else, as a body that ended early
	PostNotFound          = "not_found"          // no such route
	PostMethod            = "method"             // the route has another method
)

// How a handshake ended: the results of [Metrics.HandshakeDone].
const (
	HandshakeOK       = "ok"
	HandshakeError    = "error"
	HandshakeCanceled = "canceled" // its connection ended first
)

// Where a handshake failed: the phases of [Metrics.HandshakeDone]. They are
// also what data.phase of an initialization error says.
const (
	PhaseRequestCreation   = "request_creation"   // no session with a server came about
	PhaseRequestProcessing = "request_processing" // the server refused or did not answer in time
	PhaseResponseSending   = "response_sending"   // the answer could not be written
)

// How a handshake failed: the reasons of [Metrics.HandshakeDone].
const (
	ReasonTimeout     = "timeout"      // it took longer than the client waits, or than a start may take
	ReasonStartFailed = "start_failed" // the server could not be reached, or ended before it answered
	ReasonRejected    = "rejected"     // the server answered initialize with an error
	ReasonBadAnswer   = "bad_answer"   // the server's answer is no initialize result
	ReasonSendFailed  = "send_failed"  // the announcement could not be delivered
	ReasonGaveUp      = "gave_up"      // the server ended soon after each of its starts
)

// Where a connection's session came from: values of from of [Metrics.SessionTaken].
const (
	FromStart  = "start"  // the server was started for it
	FromPool   = "pool"   // the server had been started ahead
	FromShared = "shared" // others are on it
)

// Why a message that waited for the handshake, or was to wait, was answered
// with an error: the reasons of [Metrics.GateRejected].
const (
	GateFull     = "full"     // as many waited as are allowed; it never waited
	GateTimeout  = "timeout"  // it waited for the initialization timeout
	GateFailed   = "failed"   // the handshake failed
	GateCanceled = "canceled" // the client cancelled it
	GateClosed   = "closed"   // the connection ended
)

// What a request failed with, where that is no JSON-RPC code: values of
// errorType of [Metrics.RequestDone].
const (
	ErrorTimeout        = "timeout"              // the server did not answer in time
	ErrorSessionLost    = "session_lost"         // the session ended with the request in flight
	ErrorCanceled       = "canceled"             // the client cancelled it or went away
	ErrorInitialization = "initialization_error" // there was no session to send it to
	ErrorClosed         = "closed"               // the connection was closing
	ErrorBusy           = "busy"                 // too many requests were in flight
	ErrorDraining       = "draining"             // the gateway was shutting down
	ErrorInvalid        = "invalid_response"     // the server's answer was no valid response, or too long
	ErrorTool           = "tool_error"           // a tool's result says isError
)

// Why a message was thrown away: the reasons of [Metrics.Dropped].
const (
	DroppedUnknownResponse = "unknown_response" // a response to no pending request, of the server or of a client
	DroppedUnknownRequest  = "unknown_request"  // a request of the server that no client takes, or the cancellation of none
	DroppedInvalidMessage  = "invalid_message"  // not a JSON-RPC message
	DroppedTooLong         = "too_long"         // over the message limit
	DroppedNotReady        = "not_ready"        // there was no session that it could belong to
	DroppedUnknownProgress = "unknown_progress" // progress of no request in flight
	DroppedUnattributed    = "unattributed"     // from a shared session, and it is not known for which client
	DroppedShared          = "shared"           // a client's notification that a shared session does not take
)

// How a child process ended: the reasons of [Metrics.ChildExited].
const (
	ChildOK     = "ok"     // by itself, exit code 0
	ChildError  = "error"  // by itself, another exit code
	ChildSignal = "signal" // by a signal that was not ours
	ChildClosed = "closed" // we ended it
)
