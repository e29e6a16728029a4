package gateway

import (
	"reflect"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/upstream/implementation"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// Registry returns the gateway's registry, so that tests can open connections without
// a socket.
func (g *Gateway) Registry() *connstate.Registry { return g.registry }

// Accept makes the bridge of a connection, as a transport does.
func Accept(g *Gateway, c *connstate.Connection) connstate.Handler { return backend{g}.Accept(c) }

// Settings are the options of a Gateway, and what follows from them.
type Settings = settings

// SettingsOf returns what follows from options, in front of a server of no particular kind.
func SettingsOf(opts Options) Settings { return newSettings(opts, nil) }

// WarmOf returns how many servers are kept warm.
func WarmOf(up upstream.Upstream, opts Options) int {
	return newSettings(opts, implementation.Of(up)).Warm
}

// NewWith is New with those settings that are not zero in place of its own.
func NewWith(up upstream.Upstream, with Settings) (*Gateway, error) {
	return newGateway(up, with.Options, func(s *settings) {
		from, to := reflect.ValueOf(with), reflect.ValueOf(s).Elem()
		for i := 1; i < from.NumField(); i++ { // the first is Options
			if !from.Field(i).IsZero() {
				to.Field(i).Set(from.Field(i))
			}
		}
	})
}

// PromRegistry returns the registry of the gateway's metrics.
func PromRegistry(g *Gateway) *prometheus.Registry { return g.promReg }

// SameServer is sameServer.
func SameServer(a, b upstream.Upstream) bool {
	return sameServer(implementation.Of(a), implementation.Of(b))
}
