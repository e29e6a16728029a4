package connstate

import "github.com/mcp-sse/mcp-sse/jsonrpc"

// Release opens the gate and releases all that waits to a forward that takes
// everything.
func (c *Connection) Release(forward func(*jsonrpc.Message)) error {
	release, err := c.Open()
	if err == nil {
		release(func(m *jsonrpc.Message) bool {
			forward(m)
			return true
		})
	}
	return err
}

// MaxWaiting, MaxWaitingBytes and MaxRated are bounds that only tests name.
const (
	MaxWaiting      = maxWaiting
	MaxWaitingBytes = maxWaitingBytes
	MaxRated        = maxRated
)

// Networks returns the number of networks whose connect rate is remembered.
func (r *Registry) Networks() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.rates.buckets)
}

// PerIP returns the number of networks whose connections are counted.
func (r *Registry) PerIP() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.perIP)
}
