package handshake

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/internal/remember"
)

// learnForNext has the server say what the next client like this one, which has left before the server was
// ready, gets from memory.
func (r *run) learnForNext() {
	if r.supplier.learnsAlone() && r.remembered(r.params()) == nil {
		r.supplier.learnInBackground(r.params())
	}
}

// renewIfOld has the server say everything again if that is long ago.
func (r *run) renewIfOld(answers *remember.Answers) {
	if time.Since(answers.Learned) < r.supplier.opts().RememberFor {
		return
	}
	if !r.supplier.learnsAlone() {
		r.needed.Store(true) // by the client's own session
		return
	}
	r.supplier.learnInBackground(r.params())
}

// renewPause is the time after a failed renewal before the next one.
const renewPause = time.Minute

// learnInBackground starts a session in the background to learn what the server says to clients with these params,
// unless one does so already. The returned channel is closed once that is known, or cannot be known now.
func (s *Supplier) learnInBackground(params json.RawMessage) <-chan struct{} {
	declared, done := remember.DeclaredBy(params, ""), make(chan struct{})
	if running, runs := s.learning.LoadOrStore(declared, done); runs {
		return running.(chan struct{})
	}
	s.Go(func() { // ends with the start, the look, and the supplier
		defer s.learning.Delete(declared)
		err := s.Learn(s.life, params)
		close(done)
		if err != nil {
			s.NoteFailure(err)
			s.limited.Warn("the server could not be started to learn what it says", "err", err)
			_ = backoff.Wait(s.life, renewPause)
		}
	})
	return done
}

// Learn starts a session without a client, and remembers what the server says to clients that initialize
// with these params. It fails if the session does not start.
func (s *Supplier) Learn(ctx context.Context, params json.RawMessage) error {
	session, _, err := s.start(ctx, openOptions{AnyServer: true, Params: given(params)})
	if err != nil {
		return err
	}
	defer session.Close(errNotNeeded)
	session.awaitLook(ctx)
	return nil
}

// awaitLook looks at a session without a client, which could get the answers, and returns what it says; nil if
// that cannot be read, or is not to be remembered, perhaps since a reload.
func (s *Session) awaitLook(ctx context.Context) *remember.Answers {
	if s.look == nil {
		return nil
	}
	s.startLook()
	select {
	case <-s.look.done:
		return s.look.answers
	case <-ctx.Done():
		return nil
	}
}
