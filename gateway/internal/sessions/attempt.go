package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/fair"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Attempt is one start of a session. It holds one of Options.StartConcurrency turns
// while it starts the server and runs the handshake. One goroutine uses it, and must
// call End.
type Attempt struct {
	supplier *Supplier
	party    string        // on whose behalf
	turn     bool          // the attempt has a turn
	lent     bool          // it has lent its turn
	left     time.Duration // rest of the start timeout
}

// NewAttempt returns an Attempt that has no turn yet. While attempts wait for turns,
// each party gets one in turn. The party of the supplier's own attempts is "".
func (s *Supplier) NewAttempt(party string) *Attempt { return &Attempt{supplier: s, party: party} }

// takeTurn waits for a turn, unless the attempt has one. It fails with ctx.
func (a *Attempt) takeTurn(ctx context.Context) error {
	if a.turn {
		return nil
	}
	err := a.take(ctx, a.supplier.turns)
	a.turn = err == nil
	return err
}

// take takes one of places, and counts the attempt as waiting meanwhile.
func (a *Attempt) take(ctx context.Context, places *fair.Places) error {
	if places.TryTake() {
		return nil
	}
	a.supplier.metrics.StartQueued()
	defer a.supplier.metrics.StartUnqueued()
	return places.Take(ctx, a.party)
}

// Lend lends the turn to other attempts until Resume. It does nothing if the server
// is a process: that boots meanwhile, and keeps the machine busy.
func (a *Attempt) Lend() {
	if !a.supplier.boots {
		a.lent = a.turn
		a.End()
	}
}

// Resume waits for a turn if Lend has lent it. It fails with ctx.
func (a *Attempt) Resume(ctx context.Context) error {
	if !a.lent {
		return nil
	}
	a.lent = false
	return a.takeTurn(ctx)
}

// End returns the turn. It is idempotent.
func (a *Attempt) End() {
	if a.turn {
		a.turn = false
		a.supplier.turns.Give()
	}
}

// The source of a session, as log lines name it.
const (
	FromStart  = "start"  // its server was started for the connection
	FromPool   = "pool"   // its server was in the pool
	FromShared = "shared" // it is a shared session
)

// Take returns a session that is not initialized: on a server from the pool if pooled
// allows it and the pool has one, else on a server that it starts. The caller must
// own the session. from names the source of the session, for the log; the
// error is a *handshake.Failure.
func (a *Attempt) Take(ctx context.Context, pooled bool) (session *Session, from string, err error) {
	from = FromPool
	if pooled && a.supplier.pool != nil {
		session = a.supplier.pool.take(ctx)
		a.left = a.supplier.opts.StartTimeout
	}
	if session == nil {
		from = FromStart
		if session, err = a.start(ctx); err != nil {
			return nil, from, err
		}
	}
	session.since = time.Now()
	return session, from, nil
}

// start waits until there may be one more session and for a turn, and starts the
// server for one session, which the caller owns. ctx bounds all. The error is a
// *handshake.Failure.
func (a *Attempt) start(ctx context.Context) (session *Session, err error) {
	s := a.supplier
	if err := a.take(ctx, s.places); err != nil {
		return nil, NotStarted(err)
	}
	s.metrics.SessionStarting()
	defer func() {
		if err != nil {
			s.leavePlace()
		}
	}()
	if err := a.takeTurn(ctx); err != nil {
		return nil, NotStarted(err)
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, s.opts.StartTimeout)
	defer cancel()
	conn, err := s.up.Dial(ctx)
	if err != nil {
		return nil, creationFailure(dialReason(ctx, err), "the server could not be started", err)
	}
	a.left = s.opts.StartTimeout - time.Since(began)
	return s.newSession(conn), nil
}

// Initialize runs the handshake in the rest of the start timeout. If it fails, it
// ends the session, and the error is a *handshake.Failure.
func (a *Attempt) Initialize(ctx context.Context, session *Session, params json.RawMessage) error {
	ctx, cancel := context.WithTimeout(ctx, a.left)
	defer cancel()
	err := session.initialize(ctx, params)
	if err != nil {
		session.End(err)
	}
	return err
}

// open starts one session with the synthetic handshake, for a slot or a probe. The
// error is a *handshake.Failure.
func (s *Supplier) open(ctx context.Context) (*Session, error) {
	a := s.NewAttempt("")
	defer a.End()
	session, err := a.start(ctx)
	if err != nil || s.opts.Params == nil {
		return session, err
	}
	if err := a.Initialize(ctx, session, s.opts.Params); err != nil {
		return nil, err
	}
	return session, nil
}

// NotStarted returns the failure of a start that err ended before it reached the
// server.
func NotStarted(err error) *handshake.Failure {
	return creationFailure(reasonOf(err), "the server was not started", err)
}

// EndedSoon returns the failure of a server that ended, with err, before its session
// proved itself. It counts as a failed start.
func EndedSoon(err error) *handshake.Failure {
	return creationFailure(metrics.ReasonStartFailed, "the server ended soon after its start", err)
}

func creationFailure(reason, details string, err error) *handshake.Failure {
	return &handshake.Failure{Phase: handshake.PhaseCreation, Reason: reason, Details: details, Err: err}
}

// reasonOf returns the metrics reason of a start that err ended.
func reasonOf(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return metrics.ReasonTimeout
	}
	return metrics.ReasonStartFailed
}

// dialReason is reasonOf for err, with which Dial failed under ctx.
func dialReason(ctx context.Context, err error) string {
	if errors.Is(err, jsonrpc.ErrDenied) {
		return metrics.ReasonDenied
	}
	return reasonOf(ctx.Err())
}

// abandoned reports whether a start ended because its caller cancelled it.
func abandoned(err error) bool { return errors.Is(err, context.Canceled) }
