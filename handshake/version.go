package handshake

import "slices"

// Newest is the newest protocol version that begins with initialize; later
// ones have no handshake.
const Newest = "2025-11-25"

// versions are the protocol versions with an initialize.
var versions = []string{"2024-11-05", "2025-03-26", "2025-06-18", Newest}

// Negotiate returns the protocol version to answer a client with that asks for
// requested: the same if it is known, else Newest (MCP 2025-11-25,
// basic/lifecycle, version negotiation).
func Negotiate(requested string) string {
	if slices.Contains(versions, requested) {
		return requested
	}
	return Newest
}
