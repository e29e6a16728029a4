package throttle_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/internal/throttle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLineIsHeldBackAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := throttle.NewLine(time.Minute, 2)
		for i, step := range []struct {
			after      time.Duration
			due        bool
			suppressed int
		}{
			{0, true, 0}, {0, true, 0}, {0, false, 0}, {time.Minute - 1, false, 0},
			{1, true, 2}, {0, false, 0}, {time.Hour, true, 1}, {0, true, 0}, {0, false, 0},
		} {
			time.Sleep(step.after)
			suppressed, due := l.Due()
			if due != step.due || suppressed != step.suppressed {
				t.Errorf("step %d: got %d, %v, want %d, %v", i, suppressed, due, step.suppressed, step.due)
			}
		}
	})
}

func TestRestIsCountedOnce(t *testing.T) {
	l := throttle.NewLine(time.Minute, 1)
	for range 3 {
		l.Due()
	}
	if first, second := l.Rest(), l.Rest(); first != 2 || second != 0 {
		t.Errorf("got %d, then %d, want 2, then 0", first, second)
	}
}

func TestNothingIsLostBetweenCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := throttle.NewLine(time.Hour, 1)
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { l.Due() })
		}
		all.Wait()
		time.Sleep(time.Hour)
		if suppressed, due := l.Due(); suppressed != 99 || !due {
			t.Errorf("got %d, %v, want 99, true", suppressed, due)
		}
	})
}
