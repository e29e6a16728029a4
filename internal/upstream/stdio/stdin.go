package stdio

import (
	"os"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/buffer"
)

// batchBytes is about how much is written to stdin at once, after a wait.
const batchBytes = 64 << 10

// stdin is the stdin of a child. Senders write what the pipe has room for; if that is not
// all, a goroutine writes the rest. It is safe for concurrent use.
type stdin struct {
	pipe   *os.File
	blocks bool          // the pipe has no poller: a write waits for room, also after Close
	broken func(error)   // told by the goroutine when the child reads no more
	out    *buffer.Queue // of what waits for the goroutine
	writer sync.WaitGroup

	mu      sync.Mutex // guards what follows
	writing bool       // the goroutine runs, or has failed
	ended   bool       // out takes nothing any more
}

// open sets the pipe. A system that is short of memory may give one that has no poller.
func (s *stdin) open(pipe *os.File) {
	s.pipe, s.blocks = pipe, pipe.SetWriteDeadline(time.Time{}) != nil
	s.out = buffer.NewQueue(buffer.SendLimit)
}

// send writes msg as a line, without waiting. It fails with ErrBusy while SendLimit bytes
// wait, and with the reason after end and abort.
func (s *stdin) send(msg []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writing || s.ended {
		return s.out.Offer(msg)
	}
	rest := append(append(make([]byte, 0, len(msg)+1), msg...), '\n')
	if !s.blocks {
		rest = rest[writeNow(s.pipe, rest):]
	}
	s.writing = len(rest) > 0
	if s.writing {
		s.writer.Go(func() { s.write(rest) })
	}
	return nil
}

// write writes rest, and what is queued meanwhile. It ends when all is written, or the child
// reads no more. The end of the pipe unblocks it.
func (s *stdin) write(rest []byte) {
	for len(rest) > 0 {
		if _, err := s.pipe.Write(rest); err != nil {
			_ = s.pipe.Close() // a child that Close waits for sees the end
			s.broken(err)
			return
		}
		rest = s.next(rest[:0])
	}
}

// next appends the next lines to buf. If there are none, all is written.
func (s *stdin) next(buf []byte) []byte {
	if cap(buf) > 2*batchBytes {
		buf = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(buf) < batchBytes {
		msg, ok := s.out.Poll()
		if !ok {
			break
		}
		buf = append(append(buf, msg...), '\n')
	}
	s.writing = len(buf) > 0
	if !s.writing && s.ended {
		_ = s.pipe.Close() // nothing is lost
	}
	return buf
}

// unread reports whether the child has not read all that was written. It reports false where
// the system does not tell.
func (s *stdin) unread() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.ended && s.pipe != nil && (s.writing || unreadBytes(s.pipe) > 0)
}

// end lets nothing be sent any more, because of why, and closes the pipe when all is written.
func (s *stdin) end(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.End(why)
	s.ended = true
	if !s.writing {
		_ = s.pipe.Close() // nothing is lost
	}
}

// abort closes the pipe at once, after end. Its reason replaces that of end.
func (s *stdin) abort(why error) {
	s.out.Abort(why)
	_ = s.pipe.Close() // this ends a Write
}
