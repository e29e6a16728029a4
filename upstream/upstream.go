package upstream

import (
	"context"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	// sendLimit is how many bytes of messages a session keeps for a server that
	// does not take them, and how many a server in process may be ahead of Recv.
	sendLimit = 8 << 20
	// defaultMaxLineBytes is the longest line taken from a server.
	defaultMaxLineBytes = 16 << 20
)

// Upstream reaches one MCP server. It is safe for concurrent use.
type Upstream interface {
	// Dial opens one session with the server. ctx bounds only the dialling: its
	// end does not end the session, and its values are not passed on, because a
	// session may be used for others than the one who caused the dialling. The
	// caller must Close the Conn, also after Recv has returned a final error.
	Dial(ctx context.Context) (jsonrpc.Conn, error)
}

var (
	_ Upstream = Handle(nil)
	_ Upstream = Serve(nil)
)
