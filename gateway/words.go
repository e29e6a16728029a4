package gateway

import "github.com/mcp-sse/mcp-sse/internal/enum"

// The words of the options that have a few named values. The order is that of the constants.
var (
	sessionsWords     = enum.Words[Sessions]{"per-connection", "shared"}
	transportWords    = enum.Words[Transport]{"sse", "streamable", "stdio"}
	errorDetailsWords = enum.Words[ErrorDetails]{"auto", "full", "safe"}
	pageWords         = enum.Words[Page]{"auto", "on", "off"}
)

// String returns the word of s; empty for the zero value.
func (s Sessions) String() string { return sessionsWords.String(s) }

// MarshalText returns the word of s. It fails for a value that is none of the constants, nor zero.
func (s Sessions) MarshalText() ([]byte, error) { return sessionsWords.Marshal(s) }

// UnmarshalText sets s to the value of a word; an empty one is the zero value. Its error lists the words.
func (s *Sessions) UnmarshalText(word []byte) error { return sessionsWords.Unmarshal(word, s) }

// String returns the word of t; empty for the zero value.
func (t Transport) String() string { return transportWords.String(t) }

// MarshalText returns the word of t. It fails for a value that is none of the constants, nor zero.
func (t Transport) MarshalText() ([]byte, error) { return transportWords.Marshal(t) }

// UnmarshalText sets t to the value of a word; an empty one is the zero value. Its error lists the words.
func (t *Transport) UnmarshalText(word []byte) error { return transportWords.Unmarshal(word, t) }

// String returns the word of d; empty for the zero value.
func (d ErrorDetails) String() string { return errorDetailsWords.String(d) }

// MarshalText returns the word of d. It fails for a value that is none of the constants, nor zero.
func (d ErrorDetails) MarshalText() ([]byte, error) { return errorDetailsWords.Marshal(d) }

// UnmarshalText sets d to the value of a word; an empty one is the zero value. Its error lists the words.
func (d *ErrorDetails) UnmarshalText(word []byte) error { return errorDetailsWords.Unmarshal(word, d) }

// String returns the word of p; empty for the zero value.
func (p Page) String() string { return pageWords.String(p) }

// MarshalText returns the word of p. It fails for a value that is none of the constants, nor zero.
func (p Page) MarshalText() ([]byte, error) { return pageWords.Marshal(p) }

// UnmarshalText sets p to the value of a word; an empty one is the zero value. Its error lists the words.
func (p *Page) UnmarshalText(word []byte) error { return pageWords.Unmarshal(word, p) }
