// Package clip bounds a text that a peer has written, before it goes into a log line, a span or a snapshot.
package clip

// ShortBytes is what Short leaves of a text, and LongBytes what Long does.
const (
	ShortBytes = 64
	LongBytes  = 128
)

// Short cuts a word of the protocol, such as an id, a method or the name of a tool.
func Short(s string) string { return s[:min(ShortBytes, len(s))] }

// Long cuts what a client says of itself, such as its User-Agent, its version or its principal.
func Long(s string) string { return s[:min(LongBytes, len(s))] }
