package handshake

import "github.com/mcp-sse/mcp-sse/internal/mcp"

// Newest is the newest protocol version that begins with initialize; later
// ones have no handshake.
const Newest = mcp.VersionNewest

// Known reports whether a protocol version is one of those with an initialize.
func Known(version string) bool { return mcp.HasInitialize(version) }

// Negotiate returns the protocol version that a client is told which asks for
// requested, on a session for which the server answered with answered: the older
// one, where both are known, else what the server answered (MCP 2025-11-25,
// basic/lifecycle, version negotiation).
func Negotiate(requested, answered string) string {
	if Known(requested) && Known(answered) {
		return min(requested, answered) // dates in this form order as text
	}
	return answered
}
