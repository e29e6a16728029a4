package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway/internal/sessions"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/internal/stack"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// start gets one connection its session with the server, and a new one when that is
// lost. One goroutine, run, owns it while the connection has no session: run reaches
// the server, holds initialize back until it is decided which one goes out, runs the
// handshake, takes the session into use, and ends.
type start struct {
	b *Bridge

	// current is the session to which messages go; nil: there is none.
	current atomic.Pointer[attachment]
	// chosen is true once it is decided which initialize goes out first. Writers hold
	// mu.
	chosen atomic.Bool

	mu      sync.Mutex // guards what follows
	state   State
	params  json.RawMessage    // of the next initialize; nil: the client sends its own
	own     bool               // params are the client's own
	author  jsonrpc.ID         // the initialize request with these params, if own
	refused bool               // the server has refused params of the client
	wake    chan struct{}      // ends holding and pausing
	cancel  context.CancelFunc // ends reaching, holding and initializing; nil in other states

	waiting []waitingInitialize // the waiting initialize requests of the client, oldest first
	expiry  *time.Timer         // calls expire for the first of them; nil without one

	attempts    int                // attempts since a session proved itself
	backoff     *backoff.Backoff   // nil until a start fails
	wait        time.Duration      // the next pause
	began       time.Time          // when the current attempt began
	late        *time.Timer        // calls reportLate for the current attempt; nil without one
	lateCounted bool               // the current attempt counted as late
	superseded  bool               // the client sent other params after initialize went out
	served      bool               // the connection has had a session
	lost        bool               // the last session was lost, not replaced
	unproven    error              // why the last session was lost, if it had not proved itself; else nil
	failure     *handshake.Failure // of the last attempt; nil: it worked
	retryAt     time.Time          // in gaveUp: requests before this time get the failure
}

// run makes attempts until one works, the last one fails, or the connection ends.
func (s *start) run() {
	stack.Grow()
	for {
		if failure := s.crashFailure(); failure != nil {
			s.b.reportStart(nil, failure, sessions.FromStart, s.b.opts.MaxHandshakeAttempts, 0)
			if s.handleFailure(failure) {
				return
			}
		}
		if !s.pause() {
			s.stop(errGone)
			return
		}
		a, err := s.attempt()
		switch {
		case s.b.over():
			a.leave(errGone)
			s.stop(errGone)
			return
		case err != nil:
			if s.handleFailure(err) {
				return
			}
		default:
			if s.takeIntoUse(a) {
				return
			}
		}
	}
}

// pause waits for the time set by drawPauseLocked, or until startNowLocked ends it.
// It reports false if the connection is closed.
func (s *start) pause() bool {
	s.mu.Lock()
	wait := s.wait
	s.wait = 0
	s.mu.Unlock()
	if wait > 0 {
		select {
		case <-time.After(wait):
		case <-s.wake:
		case <-s.b.c.Done():
		}
	}
	return !s.b.over()
}

// stop moves to over and answers the waiting initialize requests with why.
func (s *start) stop(why error) {
	s.mu.Lock()
	s.moveLocked(over)
	waiting := s.takeWaitingLocked()
	s.mu.Unlock()
	if _, ok := errors.AsType[*connstate.MoveError](why); ok {
		why = connstate.ErrDraining
	}
	for _, o := range waiting {
		s.b.Refused(o.r, why)
	}
}

// relaunchLocked moves to pausing and starts run.
func (s *start) relaunchLocked() {
	s.moveLocked(pausing)
	s.b.opts.Supplier.Go(s.run) // ends as in New
}

// startNowLocked ends a pause or a hold of run. If run has ended, startNowLocked
// starts it again, unless the state is over.
func (s *start) startNowLocked() {
	b := s.b
	switch {
	case s.state.running():
		if s.current.Load() == nil && b.c.State() == connstate.Ready {
			_ = b.c.Move(connstate.Initializing) // the ready session has been replaced
		}
		select {
		case s.wake <- struct{}{}:
		default: // a signal is pending
		}
	case s.state != over:
		_ = b.c.Move(connstate.Initializing) // from ready or failed; if it fails, run ends without an attempt
		s.wait = 0
		s.relaunchLocked()
	}
}

func (s *start) clearWakeLocked() {
	select {
	case <-s.wake:
	default:
	}
}

// close cancels the current attempt and leaves the session.
func (s *start) close() {
	s.mu.Lock()
	if s.late != nil {
		s.late.Stop()
	}
	if s.cancel != nil {
		s.cancel()
	}
	if !s.state.running() {
		s.moveLocked(over)
	}
	s.takeWaitingLocked() // the connection is gone: nobody waits for the answers
	s.mu.Unlock()
	s.current.Swap(nil).leave(errGone)
}

// keepInitialize keeps the params of the client's own initialize, which has worked,
// for the next session. It is for connections without the synthetic initialize.
func (s *start) keepInitialize(m *jsonrpc.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.params = ownParams(m)
}
