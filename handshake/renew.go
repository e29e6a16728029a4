package handshake

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/backoff"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// alreadyClosed is a closed channel.
var alreadyClosed = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// background is at most one start of a server at a time that is for no client, but shows what the server says.
// What else is to be learned meanwhile is not: the next client tells that it is wanted. After one that failed, or
// did not show it, there is a pause, as between the starts of a client.
type background struct {
	mu      sync.Mutex      // guards what follows
	running <-chan struct{} // nil: there is none
	of      remember.Client // the client whose answers the running start shows
	pauses  *backoff.Backoff
	next    time.Time // none begins before
}

// mayBegin reports whether nothing is in the way of a start.
func (b *background) mayBegin() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mayBeginLocked()
}

func (b *background) mayBeginLocked() bool { return b.running == nil && !time.Now().Before(b.next) }

// begin notes that a start begins. It returns the channel of the one that runs for an equal client, or a closed one
// if none may begin.
func (b *background) begin(of remember.Client, done <-chan struct{}) (mine bool, other <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.running != nil && b.of.Equal(of):
		return false, b.running
	case !b.mayBeginLocked():
		return false, alreadyClosed
	}
	b.running, b.of = done, of
	return true, done
}

// end notes that the start has ended, with an error if nothing could be learned.
func (b *background) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = nil
	if b.pauses == nil || err == nil {
		b.pauses = backoff.New(firstRenewPause, maxRenewPause)
	}
	if b.next = (time.Time{}); err != nil {
		b.next = time.Now().Add(b.pauses.Next())
	}
}

// The means of the first and of the longest pause after a start that did not show what the server says.
const (
	firstRenewPause = time.Minute
	maxRenewPause   = 15 * time.Minute
)

// LearnInBackground starts a session in the background to learn what the server says to a client with these
// params; who it is, [remember.Principal] says. The returned channel is closed once that is known, or cannot be
// known now.
func (s *Supplier) LearnInBackground(params json.RawMessage, who string) <-chan struct{} {
	return s.LearnUnlessSince(time.Now().Add(time.Hour), params, who)
}

// LearnUnlessSince is LearnInBackground, but starts nothing if it has been learned at a time or later: the start that
// has done so may end between a look at the memory and this call.
func (s *Supplier) LearnUnlessSince(at time.Time, params json.RawMessage, who string) <-chan struct{} {
	client, plain := remember.ClientOf(params, who)
	if !plain {
		return alreadyClosed
	}
	done := make(chan struct{})
	mine, running := s.background.begin(client, done)
	if !mine {
		return running
	}
	s.Go(func() { // ends with the start, the look, and the supplier
		var err error
		var known *remember.Answers
		if memory := s.Options().Memory; memory != nil { // a reload may have switched it off
			known = memory.Answers(client)
		}
		if known == nil || known.Learned.Before(at) {
			err = s.Learn(s.life, params, who)
		}
		s.background.end(err)
		close(done)
		if err != nil && s.life.Err() == nil {
			if !errors.Is(err, errNothingLearned) {
				s.NoteFailure(err)
			}
			s.limited.Warn("the server could not be started to learn what it says", "err", err)
		}
	})
	return done
}

// errNothingLearned reports that a session did not show what the server says.
var errNothingLearned = errors.New("its lists cannot be read, or are too long to be remembered")

// Learn starts a session without a client, and remembers what the server says to one that initializes with these
// params. It fails if the session does not start, or does not show that.
func (s *Supplier) Learn(ctx context.Context, params json.RawMessage, who string) error {
	session, _, err := s.start(ctx, OpenOptions{Who: who, AnyServer: true, Params: given(params)})
	if err != nil {
		return err
	}
	defer session.Close(errNotNeeded)
	if session.awaitLook(ctx) == nil {
		return errNothingLearned
	}
	return nil
}

// versionsTime bounds learnVersions.
const versionsTime = time.Second

// learnVersions asks a server of a session that nobody uses, and that is about to end, what it says to clients of
// other protocol versions: most answer another initialize. One that does not has told nothing of them.
func (s *Session) learnVersions(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, versionsTime)
	defer cancel()
	asked, _ := jsonrpc.MemberText(s.Params(), "protocolVersion")
	for _, version := range append(mcp.VersionsWithInitialize(), mcp.VersionStateless) {
		if version == asked {
			continue
		}
		params := WithVersion(s.Params(), version)
		client, _ := remember.ClientOf(params, s.who)
		response, err := s.Call(ctx, mcp.MethodInitialize, params)
		if err != nil || response.Result() == nil || s.Notify(mcp.MethodInitialized, nil) != nil {
			return
		}
		raw := response.Result()
		answered, ok := jsonrpc.MemberText(raw, "protocolVersion")
		if !ok || answered == s.Result().Version && version < answered { // it keeps to the first one, perhaps because of that
			return
		}
		answers, err := s.read(&Result{Raw: raw, Version: answered}, client)
		if err != nil || !s.NamesAnswers() || ctx.Err() != nil {
			return
		}
		s.remember(client, answers)
	}
}

// awaitLook looks at a session without a client, which could get the answers, and returns what it says; nil if
// that cannot be read, or is not to be remembered, perhaps since a reload.
func (s *Session) awaitLook(ctx context.Context) *remember.Answers {
	if !s.CanLook() {
		return nil
	}
	select {
	case <-s.StartLook():
		return s.Looked()
	case <-ctx.Done():
		return nil
	}
}
