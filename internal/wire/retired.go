package wire

import "github.com/mcp-sse/mcp-sse/jsonrpc"

// RetiredError is the one error of Recv and RecvFor that is not final: the Conn is to get no more messages, and the
// answers to its requests still come. It has not taken one request, which may be sent again in another session.
type RetiredError struct {
	ID  jsonrpc.ID // of the request, as sent
	Err error      // why
}

// Error says why.
func (e *RetiredError) Error() string { return e.Err.Error() }

// Unwrap returns why.
func (e *RetiredError) Unwrap() error { return e.Err }
