// Package pause waits for some time, but not beyond the end of a context.
package pause

import (
	"context"
	"time"
)

// For waits for d or the end of ctx, and reports whether ctx still lives after that.
func For(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
