package stack_test

import (
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
	use := func(f func()) uint64 {
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
	if grown := use(stack.Grow); grown < 7<<10 || grown > 12<<10 {
		t.Errorf("a goroutine that has called Grow uses %d bytes of stack, want about 8192", grown)
	}
}
