package gateway

import (
	"errors"
	"net/http"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// detailed reports whether the client may see the details of errors. A developer
// on this machine needs them; a stranger must not get them.
func (b *bridge) detailed() bool {
	opts := &b.g.opts
	return opts.ErrorDetails == ErrorDetailsFull ||
		opts.ErrorDetails == ErrorDetailsAuto && opts.Authenticate == nil && b.c.Client().Local
}

// tell is a failure as this client may see it.
func (b *bridge) tell(f *handshake.Failure) *handshake.Failure {
	if b.detailed() {
		return f
	}
	return f.Safe()
}

// safe is an error as this client may see it. That of a lost session has the exit
// status of the server and the last of its stderr.
func (b *bridge) safe(e *jsonrpc.Error, errorType string) *jsonrpc.Error {
	if errorType != metrics.ErrorSessionLost || b.detailed() {
		return e
	}
	safe := *e
	safe.Message = "the session with the server was lost"
	return &safe
}

// readiness returns the reason why the gateway is not ready, without the details
// that the client of an HTTP request may not see.
func (g *Gateway) readiness(r *http.Request, err error) error {
	failure, ok := errors.AsType[*handshake.Failure](err)
	if !ok || g.opts.ErrorDetails == ErrorDetailsFull || g.authenticated(r) {
		return err
	}
	return failure.Safe()
}

func (g *Gateway) authenticated(r *http.Request) bool {
	if g.opts.Authenticate == nil {
		return false
	}
	_, err := g.opts.Authenticate(r)
	return err == nil
}
