package upstream

import "github.com/mcp-sse/mcp-sse/upstream/internal/buffer"

// The bounds that tests run into.
const (
	SendLimit           = buffer.SendLimit
	DefaultMaxLineBytes = buffer.MaxMessageBytes
)
