package folders

import (
	"errors"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

// vectorPause is the time before the endpoint of embeddings is asked again after an
// error.
const vectorPause = 30 * time.Second

// wakeVectors has the goroutine of fillVectors look for chunks without a vector.
func (s *Set) wakeVectors() {
	select {
	case s.toFill <- struct{}{}:
	default: // it is awake
	}
}

// fillVectors gives all chunks their vectors, until the set is closed.
func (s *Set) fillVectors() {
	for {
		err := s.opts.Index.EmbedMissing(s.ctx)
		if s.ctx.Err() != nil {
			return
		}
		if errors.Is(err, index.ErrCorrupt) {
			s.report(err)
			return
		}
		s.noteVectors(err)
		var again <-chan time.Time
		if err != nil {
			again = time.After(vectorPause)
		}
		select {
		case <-s.toFill:
			if again != nil { // not more often because there is more to do
				select {
				case <-again:
				case <-s.ctx.Done():
				}
			}
		case <-again:
		case <-s.ctx.Done():
		}
	}
}

// NoVectors says why chunks get no vectors now, "" if they do.
func (s *Set) NoVectors() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.noVector
}

// noteVectors keeps why vectors are missing, and logs it once.
func (s *Set) noteVectors(err error) {
	why := ""
	if err != nil {
		why = "searches use words only for what is new: " + err.Error()
	}
	s.mu.Lock()
	before := s.noVector
	s.noVector = why
	s.mu.Unlock()
	if err != nil && before == "" {
		s.log.Warn("embeddings failed", "err", err)
	}
}
