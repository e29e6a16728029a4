package wire

import "github.com/mcp-sse/mcp-sse/jsonrpc"

// Form is how a message stood in its line, as far as that says whose text it may be: servers
// print what others wrote.
type Form uint8

// The forms of a message.
const (
	Plain       Form = iota // nothing is before it that a person could have written
	AfterPrompt             // after a prompt without a word, or after the title of a terminal
	InList                  // in an array: servers of 2025-03-26 write batches, others print lists
	Broken                  // in single quotes, as Python prints an object, or cut
	AfterWords              // after words without quotes or brackets
)

// Formed is a Conn to a peer that writes lines, in which other text may stand beside a message.
type Formed interface {
	jsonrpc.Conn
	// RecvForm is RecvFor of a jsonrpc.Attributed, and also returns the form of the message. Recv returns
	// only messages that are Plain.
	RecvForm() (msg []byte, request jsonrpc.ID, form Form, err error)
}
