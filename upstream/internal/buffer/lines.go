package buffer

import (
	"bytes"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Splitter cuts a stream of bytes into lines of at most max bytes. It is not safe for
// concurrent use.
type Splitter struct {
	max  int
	part []byte // of the current line, from earlier calls
	skip bool   // the current line was too long: drop the rest of it
}

// NewSplitter returns a splitter for lines of at most max bytes.
func NewSplitter(max int) *Splitter { return &Splitter{max: max} }

// Next reads p up to the end of the current line, and returns the line and what follows
// it. The line has no newline and is a copy that belongs to the caller; it is nil if p
// does not complete it. Next drops a line over max bytes, and returns ErrTooLong once
// for it, as soon as it is over the limit.
func (s *Splitter) Next(p []byte) (line, rest []byte, err error) {
	end := bytes.IndexByte(p, '\n')
	complete := end >= 0
	if !complete {
		end = len(p)
	}
	head := p[:end]
	rest = p[min(end+1, len(p)):]
	if s.skip {
		s.skip = !complete
		return nil, rest, nil
	}
	if len(s.part)+len(head) > s.max {
		s.part, s.skip = nil, !complete
		return nil, rest, jsonrpc.ErrTooLong
	}
	s.part = append(s.part, head...)
	if !complete {
		return nil, rest, nil
	}
	line, s.part = s.part, nil
	if line == nil {
		line = []byte{}
	}
	return line, rest, nil
}

// Partial returns the beginning of the current line, valid until the next call.
func (s *Splitter) Partial() []byte { return s.part }

// Last returns the line that the end of the stream cut off; nil for none.
func (s *Splitter) Last() []byte {
	line := s.part
	s.part = nil
	return line
}
