package upstream

import (
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// The bounds that tests of stateless servers run into.
const (
	MaxInputRounds   = maxInputRounds
	MaxInputs        = maxInputs
	MaxAsks          = maxAsks
	MaxCalls         = maxCalls
	MaxSubscriptions = maxSubscriptions
)

// NewModern opens a session with the stateless server at an address. discovered is
// its answer to server/discover; empty: it is asked.
func NewModern(address, discovered string, client *http.Client, log *slog.Logger) jsonrpc.Attributed {
	x := &exchange{url: address, client: client, limit: 1 << 20, log: log}
	if discovered == "" {
		return newModernConn(x, nil)
	}
	return newModernConn(x, json.RawMessage(discovered))
}
