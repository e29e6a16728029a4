package gateway

import (
	"maps"
	"slices"
	"sync"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway/internal/bridge"
)

// Registry returns the gateway's registry, so that tests can open connections without
// a socket.
func (g *Gateway) Registry() *connstate.Registry { return g.registry }

// WithDefaults returns the options of a Gateway made with o.
func (o Options) WithDefaults() Options { return o.withDefaults() }

// WatchStarts records the moves of the starts of connections. The returned function
// returns the moves so far, as "from → to".
func (g *Gateway) WatchStarts() func() map[string]bool {
	var mu sync.Mutex
	seen := map[string]bool{}
	g.bridges.Moved = func(from, to bridge.State) {
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
	states := []bridge.State{0}
	for i := 0; i < len(states); i++ {
		for _, to := range states[i].Next() {
			all[states[i].String()+" → "+to.String()] = true
			if !slices.Contains(states, to) {
				states = append(states, to)
			}
		}
	}
	return all
}
