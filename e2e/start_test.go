package e2e

import (
	"context"
	"slices"
	"testing"
	"time"
)

func TestClientWaitsForAServerThatTakesTwoSeconds(t *testing.T) {
	forEachClient(t, every, func(t *testing.T, k kind) {
		g := startGateway(t, fake(t, "--start-delay", "2s")...)
		c := connect(t, k, g.at(k))
		if got := mustCall(t, c, "echo", map[string]any{"message": "m"}); got != "m" {
			t.Errorf("echo = %q, want m", got)
		}
	})
}

// hopeless are servers that never come up.
func hopeless(t *testing.T) map[string][]string {
	t.Helper()
	bounds := []string{"--initialization-timeout", "1s", "--start-timeout", "2s"}
	return map[string][]string{
		"EndsAtOnce":   slices.Concat(bounds, fake(t, "--exit")),
		"NeverAnswers": slices.Concat(bounds, fake(t, "--silent")),
	}
}

func TestClientGetsAnErrorWhenTheServerNeverStarts(t *testing.T) {
	t.Parallel()
	for name, args := range hopeless(t) {
		t.Run(name, func(t *testing.T) {
			forEachClient(t, every, func(t *testing.T, k kind) {
				c := k.open(t, startGateway(t, args...).at(k), "")
				start := time.Now()
				// The gateway's bound is two starts of 2 s and a pause of 1 s; the rest is
				// for slow machines.
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				err := c.connect(ctx)
				if asRPCError(err) == nil {
					t.Fatalf("connect = %v after %v, want the server's JSON-RPC error", err, time.Since(start))
				}
			})
		})
	}
}
