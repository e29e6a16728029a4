package upstream

import (
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/buffer"
)

// The bounds that tests run into.
const (
	SendLimit           = buffer.SendLimit
	DefaultMaxLineBytes = buffer.MaxMessageBytes
	MaxIdleWorkers      = maxIdleWorkers
)

// IdleWorkers returns how many goroutines wait for calls of a Handle's session, and of
// those with which it shares them.
func IdleWorkers(conn jsonrpc.Conn) int {
	w := conn.(*handleConn).workers
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.idle)
}
