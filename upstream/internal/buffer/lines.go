package buffer

import (
	"bytes"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Splitter cuts a stream of bytes into lines of at most max bytes. A line counts against
// the budget until the next call of Next, Last or Release. Splitter is not safe for
// concurrent use.
type Splitter struct {
	max  int
	part []byte      // of the current line, from earlier calls
	long *Ends       // of the current line, if it is over the limit; else nil
	hold budget.Hold // of part
	done budget.Hold // of the line that was returned last
}

// NewSplitter returns a splitter for lines of at most max bytes, which count against held.
func NewSplitter(max int, held *budget.Account) *Splitter {
	return &Splitter{max: max, hold: budget.NewHold(held)}
}

// Next reads p up to the end of the current line, and returns the line and what follows
// it. The line has no newline and is a copy that belongs to the caller; it is nil if p
// does not complete it. Next drops a line over max bytes, or for which the budget has
// none, and returns a *jsonrpc.TooLongError at its end.
func (s *Splitter) Next(p []byte) (line, rest []byte, err error) {
	s.done.Release()
	end := bytes.IndexByte(p, '\n')
	if end < 0 {
		s.add(p)
		return nil, nil, nil
	}
	s.add(p[:end])
	line, err = s.Last()
	if line == nil && err == nil {
		line = []byte{}
	}
	return line, p[end+1:], err
}

// add adds a piece to the current line.
func (s *Splitter) add(piece []byte) {
	size := len(s.part) + len(piece)
	switch {
	case s.long != nil:
		s.long.Add(piece)
	case size > s.max, !s.hold.Grow(size):
		s.long = &Ends{Busy: size <= s.max}
		s.long.Add(s.part)
		s.long.Add(piece)
		s.part = nil
		s.hold.Release()
	default:
		s.part = append(s.part, piece...)
	}
}

// Done gives back the line that was returned last.
func (s *Splitter) Done() { s.done.Release() }

// Release gives back what has been read. It is for the end of the stream.
func (s *Splitter) Release() {
	s.part = nil
	s.hold.Release()
	s.done.Release()
}

// Last returns the line that the end of the stream cut off; nil for none. Its error is
// that of Next.
func (s *Splitter) Last() ([]byte, error) {
	line, long := s.part, s.long
	s.part, s.long = nil, nil
	s.done.Release()
	s.done = s.hold.Move()
	if long != nil {
		return nil, long.Error()
	}
	return line, nil
}

const (
	// HeadBytes is how much Ends keeps of the beginning of a message.
	HeadBytes = 4 << 10
	// tailBytes is how much Ends keeps of the end of a message.
	tailBytes = 256
)

// Ends keeps the beginning and the end of a message that is too long to be kept. The
// zero Ends is empty.
type Ends struct {
	// Busy says that the budget, and not the limit, is why.
	Busy       bool
	head, tail []byte
}

// Add adds the next piece of the message.
func (e *Ends) Add(piece []byte) {
	e.head = append(e.head, piece[:min(len(piece), HeadBytes-len(e.head))]...)
	if len(piece) < tailBytes {
		e.tail = append(e.tail, piece...)
		piece = e.tail
	}
	e.tail = append(e.tail[:0], piece[max(0, len(piece)-tailBytes):]...)
}

// Join adds the message whose ends are in other as the next piece.
func (e *Ends) Join(other *Ends) {
	e.Add(other.head)
	if len(other.head) == HeadBytes { // else the tail is part of the head
		e.Add(other.tail)
	}
}

// Error returns the error to report in place of the message. The caller must not use e any
// more.
func (e *Ends) Error() error { return &jsonrpc.TooLongError{Head: e.head, Tail: e.tail, Busy: e.Busy} }
