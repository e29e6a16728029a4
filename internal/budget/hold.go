package budget

import "github.com/mcp-sse/mcp-sse/metrics"

// Hold counts one message of a server while it is read. The zero Hold counts nothing.
// It is not safe for concurrent use.
type Hold struct {
	of    *Account
	bytes int
}

// NewHold returns a Hold that takes from a.
func NewHold(a *Account) Hold { return Hold{of: a} }

// Grow takes what is missing for a message of n bytes, and reports whether the budget
// has it. A message of at most Free bytes takes nothing.
func (h *Hold) Grow(n int) bool {
	if n <= Free || n <= h.bytes {
		return true
	}
	more := n - h.bytes + Free // not for each small piece
	if !h.of.TakeAny(more, metrics.HeldReply) {
		return false
	}
	h.bytes += more
	return true
}

// Move returns a Hold with the bytes of h, which has none then.
func (h *Hold) Move() Hold {
	moved := *h
	h.bytes = 0
	return moved
}

// Release gives the bytes back.
func (h *Hold) Release() {
	h.of.Give(h.bytes)
	h.bytes = 0
}
