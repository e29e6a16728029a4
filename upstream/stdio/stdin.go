package stdio

import (
	"bytes"
	"os"
	"sync"

	"github.com/mcp-sse/mcp-sse/internal/buffer"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// batchBytes is how much is written to stdin at once, after a wait.
const batchBytes = 64 << 10

// stdin is the stdin of a child. Senders write what the pipe has room for; if that is not
// all, a goroutine writes the rest. It is safe for concurrent use.
type stdin struct {
	pipe   *os.File
	broken func(error) // told by the goroutine when the child reads no more
	writer sync.WaitGroup

	mu      sync.Mutex // guards what follows
	rest    bytes.Buffer
	writing bool  // the goroutine runs, or has failed
	err     error // why nothing can be sent any more; nil before
}

// send writes msg as a line, without waiting. It fails with ErrBusy while SendLimit bytes
// wait, and with the reason after end and abort.
func (s *stdin) send(msg []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return s.err
	case s.rest.Len() > 0 && s.rest.Len()+len(msg) >= buffer.SendLimit:
		return jsonrpc.ErrBusy
	}
	s.rest.Write(msg)
	s.rest.WriteByte('\n')
	if s.writing {
		return nil
	}
	s.rest.Next(writeNow(s.pipe, s.rest.Bytes()))
	if s.writing = s.rest.Len() > 0; s.writing {
		s.writer.Go(s.write) // ends when all is written, or the child reads no more
	}
	s.settleLocked()
	return nil
}

// write writes the rest. The end of the pipe unblocks it.
func (s *stdin) write() {
	buf := make([]byte, batchBytes)
	for {
		n := s.next(buf)
		if n == 0 {
			return
		}
		if _, err := s.pipe.Write(buf[:n]); err != nil {
			s.broken(err)
			return
		}
	}
}

// next moves a part of the rest to buf. It returns 0 when all is written.
func (s *stdin) next(buf []byte) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _ := s.rest.Read(buf) // fails if it is empty
	s.writing = n > 0
	s.settleLocked()
	return n
}

// settleLocked frees the memory of a large message when all is written, and closes the pipe
// if nothing may follow.
func (s *stdin) settleLocked() {
	switch {
	case s.writing:
	case s.err != nil:
		_ = s.pipe.Close() // nothing is lost
	case s.rest.Cap() > 2*batchBytes:
		s.rest = bytes.Buffer{}
	}
}

// end lets nothing be sent any more, because of why, and closes the pipe when all is written.
func (s *stdin) end(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = why
	}
	s.settleLocked()
}

// abort closes the pipe at once. Its reason replaces an earlier one.
func (s *stdin) abort(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = why
	s.rest.Reset()
	_ = s.pipe.Close() // this ends a Write
}
