package backoff_test

import (
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/backoff"
)

// means are the means of the pauses: doubled, up to a bound.
func means() []time.Duration {
	return []time.Duration{
		500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second,
		15 * time.Second, 15 * time.Second, 15 * time.Second,
	}
}

// Each pause lies between zero and twice its mean, and over many connections
// they spread over all of it.
func TestBackoffGrowsWithFullJitter(t *testing.T) {
	const connections = 2000
	for again := range 2 {
		sums := make([]time.Duration, len(means()))
		low, high := make([]int, len(sums)), make([]int, len(sums))
		for range connections {
			b := backoff.New(500*time.Millisecond, 15*time.Second)
			if again == 1 {
				for range 200 { // far beyond the bound
					b.Next()
				}
				b.Reset()
			}
			for i, mean := range means() {
				pause := b.Next()
				if pause < 0 || pause > 2*mean+1 {
					t.Fatalf("pause %d: got %v, want 0 to %v", i, pause, 2*mean)
				}
				sums[i] += pause
				if pause < mean/2 {
					low[i]++
				} else if pause > mean*3/2 {
					high[i]++
				}
			}
		}
		for i, mean := range means() {
			// The mean of 2000 draws is off by more than a tenth once in 10^14.
			if got := sums[i] / connections; got < mean*9/10 || got > mean*11/10 {
				t.Errorf("pause %d: the mean is %v, want about %v", i, got, mean)
			}
			if low[i] < connections/8 || high[i] < connections/8 {
				t.Errorf("pause %d: %d low and %d high ones of %d", i, low[i], high[i], connections)
			}
		}
	}
}
