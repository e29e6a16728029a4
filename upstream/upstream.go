package upstream

import "github.com/mcp-sse/mcp-sse/jsonrpc"

// Upstream reaches one MCP server. It is safe for concurrent use.
type Upstream = jsonrpc.Dialer

var (
	_ Upstream = Handle(nil)
	_ Upstream = Serve(nil)
)
