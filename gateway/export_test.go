package gateway

import (
	"github.com/mcp-sse/mcp-sse/connstate"
)

// Registry returns the gateway's registry, so that tests can open connections without
// a socket.
func (g *Gateway) Registry() *connstate.Registry { return g.registry }

// WithDefaults returns the options of a Gateway made with o.
func (o Options) WithDefaults() Options { return o.withDefaults() }
