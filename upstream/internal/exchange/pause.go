package exchange

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// NewBackoff returns pauses that double from the first to the last. Each is drawn at
// random between zero and twice its mean, so that sessions that failed together do
// not come back together.
func NewBackoff(first, last time.Duration) *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = first, last
	b.Multiplier, b.RandomizationFactor = 2, 1
	b.Reset()
	return b
}

// Pause waits for d. It fails with the error of ctx when that ends first.
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
