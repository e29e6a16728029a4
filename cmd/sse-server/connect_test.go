package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A server ends when nobody has been connected for a while, and not before.
func TestAwaitUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		awaitUnused(t.Context(), 10*time.Minute, func() int {
			if time.Since(began) < time.Hour {
				return 1
			}
			return 0
		})
		if took := time.Since(began); took < time.Hour+9*time.Minute || took > time.Hour+11*time.Minute {
			t.Errorf("it ended after %v, want about an hour and ten minutes", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		awaitUnused(ctx, time.Hour, func() int { return 0 })
		if took := time.Since(began); took > 2*time.Minute {
			t.Errorf("it ended %v after its context", took)
		}
	})
}
