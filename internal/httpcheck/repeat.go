package httpcheck

import (
	"sync"
	"time"
)

// Repeat calls step after wait, and again after what step returns, until one of them is not
// above 0 or stop is called. It uses no goroutine while it waits.
func Repeat(wait time.Duration, step func() (next time.Duration)) (stop func()) {
	if wait <= 0 {
		return func() {}
	}
	var mu sync.Mutex // guards what follows
	var timer *time.Timer
	stopped := false
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(wait, func() {
		next := step()
		mu.Lock()
		defer mu.Unlock()
		if next > 0 && !stopped {
			timer.Reset(next)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}
