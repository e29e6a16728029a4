package multiplex

import "github.com/mcp-sse/mcp-sse/jsonrpc"

// Repeatable knows which requests to a server may be made again without
// changing anything: lists, reads, and the tools that the last tools/list has
// annotated so. It is safe for concurrent use.
type Repeatable struct{}

// Safe reports whether a request may be made again.
func (r *Repeatable) Safe(m *jsonrpc.Message) bool { return readOnly(m.Method) }
