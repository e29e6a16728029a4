package handshake

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/internal/remember"
)

// alreadyClosed is a closed channel.
var alreadyClosed = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// renewal starts a server for no client, to learn what it says. One such start runs at a time. A wish that comes
// meanwhile waits for its turn in LearnInTurn, on which clients depend that rest. LearnInBackground drops it: the next
// client wishes it again. After a start that failed, or from which nothing could be learned, there is a pause, as
// between the starts of a client.
type renewal struct {
	pool *pool
	// differing notes for which clients renewDiffering has started one.
	differing OncePerHour

	mu      sync.Mutex      // guards what follows
	running <-chan struct{} // nil: there is none
	of      remember.Client // the client whose answers the running start shows
	pauses  *backoff.Backoff
	next    time.Time // none begins before
}

// mayBegin reports whether nothing is in the way of a start.
func (r *renewal) mayBegin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mayBeginLocked()
}

func (r *renewal) mayBeginLocked() bool { return r.running == nil && !time.Now().Before(r.next) }

// beginning is what came of the wish that a start begins.
type beginning uint8

const (
	begins       beginning = iota // it begins
	runsForEqual                  // one runs that shows what is wanted
	runsForOther                  // one runs for another client
	mayNotBegin                   // there is a pause, or the client is told of nothing
)

// beginStart notes that a start begins, and returns the channel done, which the start has to close at its end. If one
// runs already, or none may begin, beginStart notes nothing. It returns the channel of the one that runs, or a closed
// one.
func (r *renewal) beginStart(of remember.Client, done <-chan struct{}) (beginning, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.running != nil && r.of.Equal(of):
		return runsForEqual, r.running
	case r.running != nil:
		return runsForOther, r.running
	case !r.mayBeginLocked():
		return mayNotBegin, alreadyClosed
	}
	r.running, r.of = done, of
	return begins, done
}

// endStart notes that the start has ended, with an error if nothing could be learned.
func (r *renewal) endStart(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = nil
	if r.pauses == nil || err == nil {
		r.pauses = backoff.New(firstRenewPause, maxRenewPause)
	}
	if r.next = (time.Time{}); err != nil {
		r.next = time.Now().Add(r.pauses.Next())
	}
}

// The means of the first and of the longest pause after a start that did not show what the server says.
const (
	firstRenewPause = time.Minute
	maxRenewPause   = 15 * time.Minute
)

// renewDiffering is LearnInBackground for a client whose session has shown something else than what is remembered, once
// an hour.
func (r *renewal) renewDiffering(of remember.Client, params json.RawMessage, who string) {
	if r.mayBegin() && r.differing.First(of.String(), time.Now()) {
		r.LearnInBackground(params, who)
	}
}

// LearnInBackground starts a session in the background to learn what the server says to a client with these
// params; who it is, [remember.Principal] says. The returned channel is closed once that is known, or cannot be
// known now.
func (r *renewal) LearnInBackground(params json.RawMessage, who string) <-chan struct{} {
	how, over := r.learnUnlessSince(time.Now().Add(time.Hour), params, who)
	if how == runsForOther {
		return alreadyClosed
	}
	return over
}

// LearnInTurn learns what the server says to clients with these params, unless memory has learned it since at. It waits
// until that is known, or cannot be known now. Starts for other clients end before: one runs at a time. It does nothing
// once isWanted reports false.
func (r *renewal) LearnInTurn(at time.Time, params json.RawMessage, who string, isWanted func() bool) {
	for isWanted() {
		how, over := r.learnUnlessSince(at, params, who)
		<-over
		if how != runsForOther {
			return
		}
	}
}

// learnUnlessSince begins a start, unless one runs or may not begin. The start ends at once if what it would show was
// learned at a time or later: one that has done so may have ended since somebody looked at the memory. The channel is
// closed when the start that runs has ended.
func (r *renewal) learnUnlessSince(at time.Time, params json.RawMessage, who string) (beginning, <-chan struct{}) {
	client, plain := remember.ClientOf(params, who)
	if !plain {
		return mayNotBegin, alreadyClosed
	}
	s, done := r.pool.source, make(chan struct{})
	how, running := r.beginStart(client, done)
	if how != begins {
		return how, running
	}
	s.Go(func() { // ends with the start, the look, and the supplier
		var err error
		var known *remember.Answers
		if memory := s.Options().Memory; memory != nil { // a reload may have switched it off
			known = memory.Answers(client)
		}
		if known == nil || known.Learned.Before(at) {
			err = r.Learn(s.life, params, who)
		}
		r.endStart(err)
		close(done)
		if err != nil && s.life.Err() == nil {
			if !errors.Is(err, errNothingLearned) {
				s.NoteFailure(err)
			}
			s.limited.Warn("the server could not be started to learn what it says", "err", err)
		}
	})
	return begins, done
}

// errNothingLearned reports that a session did not show what the server says.
var errNothingLearned = errors.New("its lists cannot be read, or are too long to be remembered")

// Learn starts a session without a client, and remembers what the server says to one that initializes with these
// params. It fails if the session does not start, or does not show that.
func (r *renewal) Learn(ctx context.Context, params json.RawMessage, who string) error {
	ready := make(chan json.RawMessage, 1)
	ready <- params
	session, _, err := r.pool.open(ctx, OpenOptions{Who: who, AnyServer: true, Params: ready})
	if err != nil {
		return err
	}
	defer session.Close(errNotNeeded)
	if session.awaitLook(ctx) == nil {
		return errNothingLearned
	}
	return nil
}
