package handshake

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/internal/fair"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// The source of a session, as log lines name it.
const (
	FromStart  = "start"  // its server was started for the connection
	FromPool   = "pool"   // its server was in the pool
	FromShared = "shared" // it is a shared session
)

// OpenOptions are what Open knows of the connection that needs a session.
type OpenOptions struct {
	// Party is on whose behalf the session starts. While starts wait, each party gets
	// its turn after the others.
	Party string
	// Who names the client to the memory of answers: see [remember.Principal]. Empty: the gateway itself.
	Who string
	// AnyServer allows a server from the pool: the server gets nothing of the client's
	// request.
	AnyServer bool
	// Attach is called with a session of the client's own before its handshake. spawned
	// says that the server is a process that was spawned for this client just now.
	Attach func(s *Session, spawned bool)
	// Params gives the params of initialize when it may go out; nil: the client will
	// initialize the session itself.
	Params <-chan json.RawMessage
}

// Open returns a session for a client: the shared one, or one of its own, which the
// client must Close. from names its source, for the log. The start timeout bounds all from
// the start of the server, or from its taking out of the pool, to the end of the handshake.
// The wait for a turn comes before it. The error is a *Failure.
func (s *Supplier) Open(ctx context.Context, c OpenOptions) (session *Session, from string, err error) {
	if s.shared != nil {
		session, err = s.shared.get(ctx)
		return session, FromShared, err
	}
	return s.start(ctx, c)
}

// start is Open for a session of the client's own.
func (s *Supplier) start(ctx context.Context, c OpenOptions) (session *Session, from string, err error) {
	t := turn{s: s, party: c.Party}
	defer t.end()
	until, from := time.Now().Add(s.Options().StartTimeout), FromPool
	if c.AnyServer && s.pool != nil && s.Options().Warm > 0 {
		session = s.pool.take()
	}
	if session == nil {
		from = FromStart
		session, err = s.awaitPlace(ctx, c, t.party)
		switch {
		case err != nil:
			return nil, from, notStarted(err)
		case session != nil:
			from = FromPool
			until = time.Now().Add(s.Options().StartTimeout)
		default:
			session, until, err = s.dialInPlace(ctx, &t)
			if err != nil {
				return nil, from, err
			}
		}
	}
	session.since, session.who = time.Now(), cmp.Or(c.Who, remember.Own)
	spawned := from == FromStart && s.Options().Boots
	if c.Attach != nil {
		c.Attach(session, spawned)
	}
	waits := time.Now()
	params, waited, err := t.params(ctx, c.Params)
	if !spawned { // else the process boots meanwhile
		session.waitedForParams = time.Since(waits)
	}
	if err != nil {
		session.Close(errNotNeeded)
		return nil, from, notStarted(err)
	}
	if params == nil {
		return session, from, nil
	}
	return session, from, session.initialize(ctx, until.Add(waited), params)
}

// given returns Params that may go out at once.
func given(params json.RawMessage) <-chan json.RawMessage {
	ready := make(chan json.RawMessage, 1)
	ready <- params
	return ready
}

// startOwn starts a session of the supplier's own, with the synthetic initialize.
func (s *Supplier) startOwn(ctx context.Context) (*Session, error) {
	session, _, err := s.start(ctx, OpenOptions{Params: given(s.Options().Params)})
	return session, err
}

// dial starts a server, once there may be another session and t has its turn. It returns
// when the start timeout is over, which begins with the start of the server.
func (s *Supplier) dial(ctx context.Context, t *turn) (session *Session, until time.Time, err error) {
	if err := s.wait(ctx, s.places, t.party); err != nil {
		return nil, until, notStarted(err)
	}
	return s.dialInPlace(ctx, t)
}

// dialInPlace is dial with the place taken, which it leaves if it fails.
func (s *Supplier) dialInPlace(ctx context.Context, t *turn) (session *Session, until time.Time, err error) {
	s.metrics.Sessions(1)
	release := s.Options().Locks.Use()
	defer func() {
		if err != nil {
			release()
			s.leavePlace()
		}
	}()
	if err := t.begin(ctx); err != nil {
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
		if _, remote := s.up.(upstream.URL); remote {
			details = "could not connect to the server"
		}
		return nil, until, creationFailure(reason, details, err)
	}
	return s.newSession(conn, release), until, nil
}

// wait takes one of places for a party, and counts the start as waiting meanwhile. It
// fails with ctx.
func (s *Supplier) wait(ctx context.Context, places *fair.Places, party string) error {
	if places.TryTake() {
		return nil
	}
	s.metrics.StartsWaiting(1)
	defer s.metrics.StartsWaiting(-1)
	return places.Take(ctx, party)
}

// awaitPlace waits for a place for a client's session. The place may be that of a warm server,
// which it returns then: a client must not wait beside a server that waits for one.
func (s *Supplier) awaitPlace(ctx context.Context, c OpenOptions, party string) (*Session, error) {
	if s.places.TryTake() {
		return nil, nil
	}
	if !c.AnyServer || s.pool == nil {
		return nil, s.wait(ctx, s.places, party)
	}
	waiting, stop := context.WithCancel(ctx)
	var warm *Session
	watched := make(chan struct{})
	s.Go(func() { // ends with waiting
		defer close(watched)
		select {
		case warm = <-s.pool.warm:
			stop()
		case <-waiting.Done():
		}
	})
	err := s.wait(waiting, s.places, party)
	stop()
	<-watched
	switch {
	case warm == nil:
		return nil, err
	case err == nil:
		s.places.Give() // both have come
	}
	return warm, nil
}

// turn is the permission of one start to run: maxStarts of them run at a time. One
// goroutine uses it.
type turn struct {
	s     *Supplier
	party string
	has   bool
}

func (t *turn) begin(ctx context.Context) error {
	err := t.s.wait(ctx, t.s.turns, t.party)
	t.has = err == nil
	return err
}

func (t *turn) end() {
	if t.has {
		t.has = false
		t.s.turns.Give()
	}
}

// params waits for the params of initialize. Meanwhile other starts have the turn. A
// process keeps it: it boots, and keeps the machine busy. waited is how long the start then
// had to wait for its next turn.
func (t *turn) params(ctx context.Context, from <-chan json.RawMessage) (
	params json.RawMessage, waited time.Duration, err error,
) {
	select {
	case params = <-from:
		return params, 0, nil
	default:
	}
	again := t.has && !t.s.Options().Boots
	if again {
		t.end()
	}
	select {
	case params = <-from:
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	if again {
		waits := time.Now()
		err = t.begin(ctx)
		waited = time.Since(waits)
	}
	return params, waited, err
}

// notStarted returns the failure of a start that err ended before it reached the
// server.
func notStarted(err error) *Failure {
	return creationFailure(startReason(err), "the server was not started", err)
}

// EndedSoon returns the failure of a server that ended, with err, before its session
// proved itself. It counts as a failed start.
func EndedSoon(err error) *Failure {
	return creationFailure(metrics.ReasonStartFailed, "the server ended soon after its start", ended(err))
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
