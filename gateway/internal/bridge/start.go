package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// start gives one connection its session with the server, and a new one when
// that is lost. One goroutine, run, owns it while there is no session: it
// reaches the server, holds initialize back until it is known whose goes out,
// runs the handshake, takes the session into use, and ends.
type start struct {
	b *Bridge

	// current is the session that messages go to; nil while there is none.
	current atomic.Pointer[attachment]
	// chosen: it is decided whose initialize goes out first. Written under mu.
	chosen atomic.Bool

	mu      sync.Mutex // guards what follows
	state   State
	params  json.RawMessage    // of the next initialize; nil: the client sends its own as any message
	own     bool               // params are the client's own
	author  jsonrpc.ID         // of the initialize request that params are of
	refused bool               // the server has refused params of the client
	wake    chan struct{}      // ends holding and pausing
	cancel  context.CancelFunc // ends reaching, holding and initializing; nil in other states

	waiting  []waitingInitialize // the client's initialize requests that wait
	patience *time.Timer         // runs out for the first of them; nil without one

	attempts int                // starts since a session proved itself
	backoff  *backoff.Backoff   // nil until a start fails
	wait     time.Duration      // the next pause
	began    time.Time          // when this start began
	late     *time.Timer        // runs while it does: it is late then
	told     bool               // it has been counted as late
	again    bool               // the client has come with other params after initialize went out
	served   bool               // there has been a session
	lost     bool               // the last session was lost, not replaced
	unproven error              // why the last session was lost, if it was of no use; else nil
	failure  *handshake.Failure // of the last start; nil: it worked
	retryAt  time.Time          // in gaveUp: a request before it gets the failure
}

// run makes attempts until one works.
func (s *start) run() {
	for {
		if failure := s.crashFailure(); failure != nil {
			s.b.reportStart(nil, failure, metrics.FromStart, s.b.opts.MaxHandshakeAttempts, 0)
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

// pause waits before an attempt that follows a failed one, or until startNowLocked
// ends the pause. It reports false when the connection ends.
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

// stop ends the start for good and answers the initialize requests that wait.
func (s *start) stop(why error) {
	s.mu.Lock()
	s.moveLocked(over)
	waiting := s.takeWaitingLocked()
	s.mu.Unlock()
	if _, ok := errors.AsType[*connstate.MoveError](why); ok {
		why = connstate.ErrDraining
	}
	for _, o := range waiting {
		s.b.Refused(o.m, why)
	}
}

// relaunchLocked starts run again.
func (s *start) relaunchLocked() {
	s.moveLocked(pausing)
	s.b.opts.Supplier.Go(s.run) // ends as in New
}

// startNowLocked makes run go on now: it ends a pause or a hold. It starts run if that
// has ended.
func (s *start) startNowLocked() {
	b := s.b
	switch {
	case s.state.running():
		if s.current.Load() == nil && b.c.State() == connstate.Ready {
			_ = b.c.Move(connstate.Initializing) // the session that made it ready has been replaced
		}
		select {
		case s.wake <- struct{}{}:
		default: // it is awake
		}
	case s.state != over:
		_ = b.c.Move(connstate.Initializing) // from ready or failed; when it is closed nothing starts
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

// close ends the start with its connection.
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
	s.takeWaitingLocked() // the requests are gone with the connection
	s.mu.Unlock()
	s.current.Swap(nil).leave(errGone)
}

// keepInitialize notes the client's own initialize, which has worked, for the next
// session. It is for connections without the synthetic initialize.
func (s *start) keepInitialize(m *jsonrpc.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.params = ownParams(m)
}
