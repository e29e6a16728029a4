package exchange

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// NewBackoff gives pauses that double from the first to the last, each drawn at
// random between zero and twice its mean, so that those who failed together do not
// come back together.
func NewBackoff(first, last time.Duration) *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = first, last
	b.Multiplier, b.RandomizationFactor = 2, 1
	b.Reset()
	return b
}

// Pause waits. It fails with ctx.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
