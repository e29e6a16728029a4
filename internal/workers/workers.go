// Package workers runs functions on goroutines that have grown their stacks.
package workers

import "time"

// keep is how long a goroutine waits for its next function.
const keep = 500 * time.Millisecond

// Pool holds the goroutines of one session. A new goroutine copies its stack several times
// until it is deep enough for encoding/json (docs/design/performance.md).
type Pool struct {
	idle chan func() // hands a function to a goroutine that waits for one
	done <-chan struct{}
}

// New returns an empty Pool. Its goroutines wait for no function once done is closed.
func New(done <-chan struct{}) Pool { return Pool{make(chan func()), done} }

// Go runs f like a go statement, on a goroutine that has just run another function if one
// waits.
func (p Pool) Go(f func()) {
	select {
	case p.idle <- f:
	default:
		go p.run(f) // ends when no function comes for a while, or f calls runtime.Goexit
	}
}

func (p Pool) run(f func()) {
	wait := time.NewTimer(keep)
	defer wait.Stop()
	for {
		f()
		wait.Reset(keep)
		select {
		case f = <-p.idle:
		case <-wait.C:
			return
		case <-p.done:
			return
		}
	}
}
