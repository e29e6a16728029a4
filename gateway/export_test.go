package gateway

import "github.com/mcp-sse/mcp-sse/connstate"

// Registry returns the gateway's connections, so that tests can open one
// without a socket.
func (g *Gateway) Registry() *connstate.Registry { return g.registry }

// WithDefaults returns the options that a Gateway made with o has.
func (o Options) WithDefaults() Options { return o.withDefaults() }
