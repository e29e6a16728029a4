package gateway

import (
	"errors"
	"net/http"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
)

// detailed reports whether a client may see the details of errors. A developer on
// this machine needs them; a stranger must not get them.
func (o *Options) detailed(client connstate.Client) bool {
	return o.ErrorDetails == ErrorDetailsFull ||
		o.ErrorDetails == ErrorDetailsAuto && o.Authenticate == nil && client.Local
}

// readiness returns why the gateway is not ready, without the details that the
// client of an HTTP request may not see.
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
