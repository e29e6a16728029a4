package stateless

import (
	"cmp"
	"time"

	"github.com/mcp-sse/mcp-sse/front"
)

// Options configure a Handler. The zero value gives the defaults.
type Options struct {
	// Options are those of every HTTP transport.
	front.Options
	// IdleTimeout closes a connection that no request has used for so long. Default 5 min.
	IdleTimeout time.Duration
	// LegacyVersions are the earlier versions that the endpoint serves, for
	// server/discover. Default none.
	LegacyVersions []string
	// SamePeer says that the server sees nothing of the context of a request but the
	// principal, so that requests may share connections although PassRequest is set.
	SamePeer bool
	// MaxConnections bounds the connections. Default 1024. Those of one principal, or else
	// of one network, are bounded to an eighth of it, but at least to MaxCalls.
	MaxConnections int
	// MaxCalls bounds the calls of one client that may need input, at a time: each takes a
	// connection. Default 16.
	MaxCalls int
	// InputTimeout bounds how long a call waits for the client's input. Default 5 min.
	InputTimeout time.Duration
}

func (o Options) withDefaults() Options {
	o.Options = o.Options.WithDefaults()
	o.IdleTimeout = cmp.Or(max(0, o.IdleTimeout), 5*time.Minute)
	o.MaxConnections = cmp.Or(o.MaxConnections, 1024)
	o.MaxCalls = cmp.Or(o.MaxCalls, 16)
	o.InputTimeout = cmp.Or(o.InputTimeout, 5*time.Minute)
	return o
}

// Bounds on what a client sends and a server makes the handler keep.
const (
	// maxCapabilities and maxClientInfo bound these members of _meta, in bytes.
	maxCapabilities = 32 << 10
	maxClientInfo   = 4 << 10
	// maxQueued bounds the notifications that wait for one client, in bytes.
	maxQueued = 1 << 20
	// maxAsks bounds the server's open requests to one call.
	maxAsks = 32
	// maxRounds bounds how often a call may ask for input.
	maxRounds = 10
	// maxAnswers bounds the answers that come with a request: a client may know beforehand
	// what it will be asked.
	maxAnswers = maxAsks * maxRounds
	// maxCanonical bounds the params that may be spelled another way in the next round of
	// their call, in bytes: to bring longer ones into an order would take too much memory.
	maxCanonical = 64 << 10
	// maxHeld bounds the calls of all clients that wait for input.
	maxHeld = 4096
	// settleTime is how long a call waits for more requests of the server after one:
	// servers ask several things at once.
	settleTime = 20 * time.Millisecond
	// askTime bounds how long the handler waits for the answer to a request of its own:
	// a client waits for it, or others for their turn.
	askTime = 5 * time.Second
	// callWait bounds how long a call waits for a connection of its client.
	callWait = 30 * time.Second
)
