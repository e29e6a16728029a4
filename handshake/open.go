package handshake

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/remember"
)

// Where a session comes from, as log lines name it.
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
	// Who is the [remember.Principal] whose answers memory reads and keeps; empty for the gateway itself.
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

// open is Supplier.Open for a session of the client's own.
func (p *pool) open(ctx context.Context, c OpenOptions) (session *Session, from string, err error) {
	s := p.source
	c.AnyServer = c.AnyServer && !s.Shares() // else the pool is empty
	t := turn{s: s, party: c.Party}
	defer t.endTurn()
	until, from := time.Now().Add(s.Options().StartTimeout), FromPool
	if c.AnyServer && s.Options().Warm > 0 {
		session = p.takeWarm()
	}
	if session == nil {
		from = FromStart
		session, err = p.awaitPlace(ctx, c, t.party)
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

// awaitPlace waits for a place for a client's session. The place may be that of a warm server,
// which it returns then: a client must not wait beside a server that waits for one.
func (p *pool) awaitPlace(ctx context.Context, c OpenOptions, party string) (*Session, error) {
	s := p.source
	if s.places.TryAcquire() {
		return nil, nil
	}
	if !c.AnyServer {
		return nil, s.takePlace(ctx, s.places, party)
	}
	waiting, stop := context.WithCancel(ctx)
	var warm *Session
	watched := make(chan struct{})
	s.Go(func() { // ends with waiting
		defer close(watched)
		select {
		case warm = <-p.warm:
			stop()
		case <-waiting.Done():
		}
	})
	err := s.takePlace(waiting, s.places, party)
	stop()
	<-watched
	switch {
	case warm == nil:
		return nil, err
	case err == nil:
		s.places.Release() // both have come
	}
	return warm, nil
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
		t.endTurn()
	}
	select {
	case params = <-from:
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	if again {
		waits := time.Now()
		err = t.takeTurn(ctx)
		waited = time.Since(waits)
	}
	return params, waited, err
}
