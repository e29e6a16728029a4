package handshake

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/internal/fair"
	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// startOwn starts a session of the gateway's own, with the synthetic initialize.
func (s *source) startOwn(ctx context.Context) (*Session, error) {
	t := turn{s: s}
	defer t.endTurn()
	params := s.Options().Params
	session, until, err := s.dial(ctx, &t)
	if err != nil || params == nil {
		return session, err
	}
	return session, session.initialize(ctx, until, params)
}

// dial starts a server, once there may be another session and t has its turn. It returns
// when the start timeout is over, which begins with the start of the server.
func (s *source) dial(ctx context.Context, t *turn) (session *Session, until time.Time, err error) {
	if err := s.takePlace(ctx, s.places, t.party); err != nil {
		return nil, until, notStarted(err)
	}
	return s.dialInPlace(ctx, t)
}

// dialInPlace is dial with the place taken, which it leaves if it fails.
func (s *source) dialInPlace(ctx context.Context, t *turn) (session *Session, until time.Time, err error) {
	s.metrics.Sessions(1)
	release := s.Options().Locks.Use()
	defer func() {
		if err != nil {
			release()
			s.leavePlace()
		}
	}()
	if err := t.takeTurn(ctx); err != nil {
		return nil, until, notStarted(err)
	}
	until = time.Now().Add(s.Options().StartTimeout)
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	conn, err := s.up.Dial(ctx)
	if err != nil {
		reason := startReason(ctx.Err())
		if errors.Is(err, jsonrpc.ErrDenied) {
			reason = metrics.ReasonDenied
		}
		details := "the server could not be started"
		if _, remote := s.up.(remote.URL); remote {
			details = "could not connect to the server"
		}
		return nil, until, creationFailure(reason, details, err)
	}
	return s.newSession(conn, release), until, nil
}

// takePlace takes one of places for a party, and counts the start as waiting meanwhile. It
// fails with ctx.
func (s *source) takePlace(ctx context.Context, places *fair.Places, party string) error {
	if places.TryAcquire() {
		return nil
	}
	s.metrics.StartsWaiting(1)
	defer s.metrics.StartsWaiting(-1)
	return places.Acquire(ctx, party)
}

// newSession returns a session over conn. It has its place until its server has ended; a
// process is reaped by then, unless nothing can kill it. ended is called then.
func (s *source) newSession(conn jsonrpc.Conn, ended func()) *Session {
	session := &Session{source: s, conn: conn, who: remember.Own, since: time.Now(), over: make(chan struct{})}
	opts := s.Options().Session
	opts.OnTools = session.noteTools
	if memory := s.Options().Memory; memory != nil {
		session.lookAt(memory)
		opts.OnNamed, opts.OnList = func() { session.StartLook() }, session.notePage
	}
	opts.OnClose = func(why error) { session.markEnded(why) }
	opts.OnRetire = func(why error) { session.Retire(why, nil) }
	s.goroutines.Add(1) // Wait waits for the session too
	opts.OnDone = func() {
		session.tellUsers(SessionUser.SessionDone)
		ended()
		s.leavePlace()
		s.tellObserver(observer.sessionEnded)
		s.goroutines.Done()
	}
	session.Session = multiplex.New(conn, opts)
	return session
}

// turn is the permission of one start to run: maxStarts of them run at a time. One
// goroutine uses it.
type turn struct {
	s     *source
	party string
	has   bool
}

func (t *turn) takeTurn(ctx context.Context) error {
	err := t.s.takePlace(ctx, t.s.turns, t.party)
	t.has = err == nil
	return err
}

func (t *turn) endTurn() {
	if t.has {
		t.has = false
		t.s.turns.Release()
	}
}

// notStarted returns the failure of a start that err ended before it reached the
// server.
func notStarted(err error) *Failure {
	return creationFailure(startReason(err), "the server was not started", err)
}

// EndedSoon returns the failure of a server that ended, with err, before its session
// proved itself. It counts as a failed start.
func EndedSoon(err error) *Failure {
	return creationFailure(metrics.ReasonStartFailed, "the server ended soon after its start", endOf(err))
}

func creationFailure(reason, details string, err error) *Failure {
	return &Failure{Phase: PhaseCreation, Reason: reason, Details: details, Err: err}
}

// startReason returns the metrics reason of a start that err ended.
func startReason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return metrics.ReasonTimeout
	}
	return metrics.ReasonStartFailed
}

// The means of the first and of the longest pause between failed starts.
const (
	firstPause = 500 * time.Millisecond
	maxPause   = 15 * time.Second
)

// NewPauses returns the pauses between failed starts.
func NewPauses() *backoff.Backoff { return backoff.New(firstPause, maxPause) }
