// Package scaletest measures time and memory in tests. It checks that the time a
// function takes grows no faster than its input: work that grows with the square of
// what a client or a server sends keeps a core busy for all others.
package scaletest

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

const (
	factor   = 10                     // how much larger the second input is
	most     = 20                     // how much longer it may take
	attempts = 5                      // a busy machine disturbs some
	enough   = 200 * time.Microsecond // a shorter time is measured too coarsely
)

// Linear fails t if work takes more than 20 times as long for an input ten times
// as large. prepare makes an input of size n, which is not measured, and returns
// the work. Choose n so that the work takes some hundred microseconds or more.
func Linear(t *testing.T, n int, prepare func(n int) (work func())) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the work of others would be part of the time
	var small, large time.Duration
	for range attempts {
		small, large = max(enough, Time(prepare(n))), Time(prepare(factor*n))
		if large <= most*small {
			return
		}
	}
	t.Errorf("%d times the input takes %.0f times as long (%v, then %v), want at most %d times",
		factor, float64(large)/float64(small), small, large, most)
}

// Time returns the processor time of the fastest of three runs of work, in one goroutine.
func Time(work func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	least := time.Duration(1<<63 - 1)
	for range 3 {
		runtime.GC()
		began := threadTime()
		work()
		least = min(least, threadTime()-began)
	}
	return least
}
