package login

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

const (
	// renewWait bounds how long requests wait for a renewal, which goes on: the default of initialization-timeout is
	// five seconds, and a client that comes gets a session in the place of one with the server before that.
	renewWait = 4 * time.Second
	// stalledWait bounds it after a renewal that has failed.
	stalledWait = 2 * time.Second
	// retryEvery is how long sessions in the place of one with the server wait between renewals.
	retryEvery = 10 * time.Second
)

// errSlow reports a renewal that goes on.
var errSlow = fmt.Errorf("there is no new token after %v", renewWait)

// hindrance is why requests cannot use a login that is there: the issuer cannot renew it now, or it lacks a scope
// without which the server opens no session. It ends with the token. Only tried changes; a nil *hindrance is none.
type hindrance struct {
	token        string // that is no good
	full, public string // what to do, for those who may know the details, and for all

	// These are of a renewal that has failed.
	why     error
	refused string       // the header that the server has refused; empty: the token has expired
	log     *slog.Logger // hears of the next failure
	tried   time.Time    // when the last renewal began
}

// isStall reports whether the issuer cannot renew the login now.
func (h *hindrance) isStall() bool { return h != nil && h.why != nil }

// stall notes that a login has no token that is good, and cannot be renewed now: nobody has to log in.
func (s *source) stall(l *Login, refused string, why error, log *slog.Logger) {
	if l == nil || !s.isGood(l) { // people are asked to log in
		return
	}
	s.hinder(&hindrance{token: l.Access, why: why, refused: refused, log: log, tried: time.Now(),
		full:   "the issuer cannot renew the login now: " + why.Error() + "; call again later",
		public: "the login at the server cannot be renewed now: call again later"})
}

// noteRenewal notes when a renewal began; zero: it has ended.
func (s *source) noteRenewal(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewal = at
}

// patience returns how long a request waits for a renewal, which may be under way.
func (s *source) patience(h *hindrance) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := s.wait
	if h.isStall() { // most likely it still is
		wait = stalledWait
	}
	if !s.renewal.IsZero() {
		wait -= time.Since(s.renewal)
	}
	return wait
}

// hinder notes why requests cannot use a login.
func (s *source) hinder(h *hindrance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hindrance = h
}

// hindranceOf returns why requests cannot use a login; nil: they can, as far as is known.
func (s *source) hindranceOf(l *Login) *hindrance {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hindrance; h != nil && l != nil && h.token == l.Access && l.Ended.IsZero() {
		return h
	}
	return nil
}

// retry tries a renewal again that has failed, and waits a while for it.
func (s *source) retry(ctx context.Context) {
	if h := s.hindranceOf(s.held()); h.isStall() {
		_, _ = s.authorize(ctx, h.refused, h.log) // the log has the error
	}
}

// beginRetry tries a renewal again that has failed a while ago. It does not wait.
func (s *source) beginRetry(h *hindrance) {
	if !h.isStall() {
		return
	}
	s.mu.Lock()
	isDue := time.Since(h.tried) >= retryEvery
	if isDue {
		h.tried = time.Now()
	}
	s.mu.Unlock()
	if isDue {
		s.asking.DoChan(h.refused, func() (any, error) { return s.renew(h.refused, h.log) })
	}
}
