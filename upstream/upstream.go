package upstream

import (
	"github.com/mcp-sse/mcp-sse/internal/upstream/implementation"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Upstream reaches one MCP server. It has one method, which opens a session:
//
//	Dial(ctx context.Context) (jsonrpc.Conn, error)
//
// ctx bounds only the dialling: the session goes on when that ends, until Close. An Upstream is safe for concurrent
// use.
type Upstream = jsonrpc.Dialer

var (
	_ Upstream = Handle(nil)
	_ Upstream = Serve(nil)
	_ Upstream = Command{}
	_ Upstream = URL{}
)

func init() {
	implementation.Provide(func(up Upstream) Upstream {
		switch up := up.(type) {
		case Command:
			return up.implementation()
		case *Command:
			if up != nil {
				return up.implementation()
			}
		case URL:
			return up.implementation()
		case *URL:
			if up != nil {
				return up.implementation()
			}
		}
		return up
	})
}
