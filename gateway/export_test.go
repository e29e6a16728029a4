package gateway

import (
	"maps"
	"sync"

	"github.com/mcp-sse/mcp-sse/connstate"
)

// Registry returns the gateway's connections, so that tests can open one
// without a socket.
func (g *Gateway) Registry() *connstate.Registry { return g.registry }

// WithDefaults returns the options that a Gateway made with o has.
func (o Options) WithDefaults() Options { return o.withDefaults() }

// WatchStarts notes the moves that the starts of connections make. The returned
// function gives those made so far, as "from → to".
func (g *Gateway) WatchStarts() func() map[string]bool {
	var mu sync.Mutex
	seen := map[string]bool{}
	g.moved = func(from, to startState) {
		mu.Lock()
		defer mu.Unlock()
		seen[from.String()+" → "+to.String()] = true
	}
	return func() map[string]bool {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(seen)
	}
}

// StartMoves returns the moves that a start may make.
func StartMoves() map[string]bool {
	all := map[string]bool{}
	for from, tos := range startMoves {
		for _, to := range tos {
			all[startState(from).String()+" → "+to.String()] = true
		}
		if startState(from) != over {
			all[startState(from).String()+" → over"] = true
		}
	}
	return all
}
