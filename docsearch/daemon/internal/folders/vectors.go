package folders

import (
	"errors"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

// vectorPause is the time before the endpoint of embeddings is asked again after an
// error.
const vectorPause = 30 * time.Second

// fillVectors gives all chunks their vectors, until the set is closed.
func (s *Set) fillVectors() {
	for {
		err := s.opts.Index.EmbedMissing(s.ctx)
		if s.ctx.Err() != nil {
			return
		}
		if errors.Is(err, index.ErrCorrupt) {
			s.Report(err)
			return
		}
		s.noteVectors(err)
		var again <-chan time.Time
		more := s.toFill
		if err != nil {
			again, more = time.After(vectorPause), nil // not more often because there is more to do
		}
		select {
		case <-more:
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && s.noVector == "" {
		s.opts.Logger.Warn("embeddings failed", "err", err)
	}
	s.noVector = ""
	if err != nil {
		s.noVector = err.Error()
	}
}
