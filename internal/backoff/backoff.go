// Package backoff gives the pauses between attempts that fail.
package backoff

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Backoff gives pauses that double with each attempt, up to a bound. Each is random
// between zero and twice its mean, so that those that failed together do not retry
// together. It is not safe for concurrent use.
type Backoff struct{ exp *backoff.ExponentialBackOff }

// New returns a Backoff whose pauses have a mean that grows from first to last.
func New(first, last time.Duration) *Backoff {
	exp := backoff.NewExponentialBackOff()
	exp.InitialInterval, exp.MaxInterval = first, last
	exp.Multiplier, exp.RandomizationFactor = 2, 1
	exp.Reset()
	return &Backoff{exp}
}

// Next returns the pause before the next attempt.
func (b *Backoff) Next() time.Duration { return b.exp.NextBackOff() }

// Reset starts again with the first pause, after an attempt that worked.
func (b *Backoff) Reset() { b.exp.Reset() }

// Wait waits for d. It fails with ctx.
func Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
