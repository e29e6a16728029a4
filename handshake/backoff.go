package handshake

import (
	"time"

	"github.com/cenkalti/backoff/v5"
)

// The pauses between starts that fail: doubled each time, up to a bound, and
// each drawn at random between zero and twice its mean, so that connections
// that failed together do not come back together.
const (
	firstPause = 500 * time.Millisecond
	maxPause   = 15 * time.Second
)

// Backoff gives the pauses between failed starts of one connection. It is not
// safe for concurrent use.
type Backoff struct{ exp *backoff.ExponentialBackOff }

// NewBackoff returns a Backoff at its beginning.
func NewBackoff() *Backoff {
	exp := backoff.NewExponentialBackOff()
	exp.InitialInterval, exp.MaxInterval = firstPause, maxPause
	exp.Multiplier, exp.RandomizationFactor = 2, 1
	exp.Reset()
	return &Backoff{exp}
}

// Next returns the pause before the next start.
func (b *Backoff) Next() time.Duration { return b.exp.NextBackOff() }

// Reset begins anew, after a start that worked.
func (b *Backoff) Reset() { b.exp.Reset() }
