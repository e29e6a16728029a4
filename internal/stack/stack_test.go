package stack_test

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/stack"
)

// stacks returns the bytes of the stacks of all goroutines.
func stacks() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// Goroutines that have called Grow have 8 KiB each, not the 2 KiB of new ones.
func TestGrowMakesRoom(t *testing.T) {
	const goroutines = 2000
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection halves stacks that are little used
	use := func(f func()) uint64 {
		runtime.GC() // frees the stacks of goroutines that have ended
		runtime.GC()
		before := stacks()
		hold, ready, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
		for range goroutines {
			go func() {
				f()
				ready <- struct{}{}
				<-hold
				done <- struct{}{}
			}()
		}
		for range goroutines {
			<-ready
		}
		used := stacks() - before
		close(hold)
		for range goroutines {
			<-done
		}
		return used / goroutines
	}
	for _, test := range []struct {
		name string
		grow func()
		want uint64
	}{{"Grow", stack.Grow, 8 << 10}, {"GrowDeep", stack.GrowDeep, 16 << 10}} {
		if grown := use(test.grow); grown < test.want*5/8 || grown > test.want*3/2 {
			t.Errorf("a goroutine that has called %s uses %d bytes of stack, want about %d", test.name, grown, test.want)
		}
	}
}
