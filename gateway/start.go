package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway/internal/sessions"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// start gives one connection its session with the server, and a new one when
// that is lost. One goroutine, run, owns it while there is no session: it
// reaches the server, holds initialize back until it is known whose goes out,
// runs the handshake, takes the session into use, and ends.
//
//	| state        | what it means                                         | run | what follows                      |
//	|--------------|-------------------------------------------------------|-----|-----------------------------------|
//	| pausing      | the next start is due, at once or after a failure     | yes | reaching, gaveUp                  |
//	| reaching     | the server is being started, or taken from the pool   | yes | holding, taking, pausing, gaveUp  |
//	| holding      | the server runs; initialize waits for the client      | yes | initializing                      |
//	| initializing | initialize is out, the server has not answered        | yes | taking, reaching, pausing, gaveUp |
//	| taking       | the client is told of the session, the gate is opened | yes | serving, reaching, gaveUp         |
//	| serving      | messages go to the session                            | no  | pausing                           |
//	| gaveUp       | the last start failed; a request makes the next one   | no  | pausing                           |
//	| over         | the connection is closed, or drains without a session | no  | nothing                           |
//
// Every state may go to over. A shared session, and one without the gateway's
// initialize, are taken as they are reached.
type start struct {
	b *bridge

	// current is the session that messages go to; nil while there is none.
	current atomic.Pointer[attachment]
	// chosen: it is decided whose initialize goes out first. Written under mu.
	chosen atomic.Bool

	mu      sync.Mutex // guards what follows
	state   startState
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

type startState uint8

const (
	pausing startState = iota
	reaching
	holding
	initializing
	taking
	serving
	gaveUp
	over
	numStartStates
)

// startMoves is the table above.
var startMoves = [numStartStates][]startState{
	pausing:      {reaching, gaveUp},
	reaching:     {holding, taking, pausing, gaveUp},
	holding:      {initializing},
	initializing: {taking, reaching, pausing, gaveUp},
	taking:       {serving, reaching, gaveUp},
	serving:      {pausing},
	gaveUp:       {pausing},
}

var startStateNames = [numStartStates]string{
	"pausing", "reaching", "holding", "initializing", "taking", "serving", "gave up", "over",
}

func (s startState) String() string { return startStateNames[s] }

// running reports whether run owns the start in that state.
func (s startState) running() bool { return s <= taking }

func newStart(b *bridge) *start {
	return &start{b: b, params: b.g.params, wake: make(chan struct{}, 1)}
}

// begin starts run for a connection that has just been opened.
func (s *start) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b.g.supplier.Go(s.run) // ends with a session, after the last attempt, or with the connection
}

// moveLocked changes the state. A move that the table does not have is a
// mistake in this file: it is logged, and made.
func (s *start) moveLocked(to startState) {
	if s.state == over {
		return
	}
	if to != over && !slices.Contains(startMoves[s.state], to) {
		s.b.log().Error("start made a move that it must not make", "from", s.state.String(), "to", to.String())
	}
	if s.b.g.moved != nil {
		s.b.g.moved(s.state, to)
	}
	s.state = to
}

// run opens sessions until one works.
func (s *start) run() {
	for {
		if failure := s.crashes(); failure != nil {
			s.b.countStart(nil, failure, metrics.FromStart, s.b.g.opts.MaxHandshakeAttempts, 0)
			if s.failed(failure) {
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
			discard(a)
			s.stop(errGone)
			return
		case s.superseded():
			discard(a)
		case err != nil:
			if s.failed(err) {
				return
			}
		default:
			if s.established(a) {
				return
			}
		}
	}
}

// pause waits before a start that follows a failed one, and reports whether to
// start at all.
func (s *start) pause() bool {
	s.mu.Lock()
	wait := s.wait
	s.wait = 0
	s.mu.Unlock()
	return s.sleep(wait) && !s.b.over()
}

// sleep waits for d, for a wake, or for the end of the connection, and reports
// false for the last.
func (s *start) sleep(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.wake:
		return true
	case <-s.b.c.Done():
		return false
	}
}

// attempt makes one start.
func (s *start) attempt() (*attachment, error) {
	ctx, cancel := context.WithCancel(s.b.forwarded(context.Background()))
	defer cancel()
	if err := s.reach(cancel); err != nil {
		return nil, err
	}
	s.b.c.SawAttempt()
	if !s.b.g.supplier.Shares() {
		s.b.g.metrics.HandshakeAttempt()
	}
	began := time.Now()
	a, from, err := s.b.session(ctx)
	s.mu.Lock()
	s.cancel = nil
	s.late.Stop()
	attempt, told := s.attempts, s.told
	s.mu.Unlock()
	if ctx.Err() != nil && err != nil {
		s.b.countAbandoned(from, time.Since(began), told)
		return a, err
	}
	s.b.countStart(a, err, from, attempt, time.Since(began))
	return a, err
}

// reach begins an attempt, which cancel ends.
func (s *start) reach(cancel context.CancelFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moveLocked(reaching)
	s.cancel = cancel
	if s.b.over() {
		cancel() // close came before there was something to cancel
	}
	s.attempts++
	s.told, s.began = false, time.Now()
	attempt := s.began
	s.late = time.AfterFunc(s.b.g.opts.InitializationTimeout, func() { s.beLate(attempt) })
	if s.b.c.State() == connstate.Initializing {
		return nil
	}
	err := s.b.c.Move(connstate.Initializing)
	if err != nil {
		s.cancel = nil
		s.late.Stop()
	}
	return err
}

// superseded reports whether the client has come with other params after the
// initialize of this start went out. Such a start does not count as an attempt.
func (s *start) superseded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.supersededLocked()
}

func (s *start) supersededLocked() bool {
	if !s.again {
		return false
	}
	s.again = false
	s.attempts--
	return true
}

// stop ends run for good and answers the initialize requests that wait for it.
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
	s.b.g.supplier.Go(s.run) // ends as that of begin does
}

// wakeLocked has a start made now: by run if it runs, else by a new one.
func (s *start) wakeLocked() {
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

func (s *start) drainWakeLocked() {
	select {
	case <-s.wake:
	default:
	}
}

// drawLocked draws the pause before the next start and returns it.
func (s *start) drawLocked() time.Duration {
	if s.backoff == nil {
		s.backoff = sessions.NewBackoff()
	}
	s.wait = s.backoff.Next()
	return s.wait
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
	if a := s.current.Swap(nil); a != nil {
		a.leave(errGone)
	}
}

// initializedBy notes the client's own initialize, which has worked, for the
// session that takes the place of this one. It is for a transport without the
// gateway's own.
func (s *start) initializedBy(m *jsonrpc.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.params = ownParams(m)
}
