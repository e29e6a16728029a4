package statelessserver

import (
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/mcp-sse/mcp-sse/internal/stateless"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/exchange"
)

// The bounds that tests of stateless servers run into.
const (
	MaxInputRounds   = stateless.MaxRounds
	MaxInputs        = stateless.MaxInputs
	MaxAsks          = maxAsks
	MaxCalls         = 4096 // of exchange.Calls
	MaxSubscriptions = maxSubscriptions
)

// NewModern opens a session with the stateless server at an address. discovered is
// its answer to server/discover.
func NewModern(address, discovered string, client *http.Client, log *slog.Logger) jsonrpc.Attributed {
	x := &exchange.Endpoint{URL: address, Client: client, Limit: 1 << 20, Log: log}
	return New(x, json.RawMessage(discovered))
}
