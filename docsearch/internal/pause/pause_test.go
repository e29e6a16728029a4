package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/internal/pause"
)

func TestForEndsWithItsContext(t *testing.T) {
	for _, tc := range []struct {
		pause, life, want time.Duration
		lives             bool
	}{
		{time.Second, time.Minute, time.Second, true},
		{time.Minute, time.Second, time.Second, false},
		{time.Second, 0, 0, false},
		{0, 0, 0, false},
		{-time.Second, time.Minute, 0, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), tc.life)
			defer cancel()
			began := time.Now()
			if lives := pause.For(ctx, tc.pause); lives != tc.lives || time.Since(began) != tc.want {
				t.Errorf("a pause of %v in a life of %v: %t after %v, want %t after %v",
					tc.pause, tc.life, lives, time.Since(began), tc.lives, tc.want)
			}
		})
	}
}
