package remember

import (
	"sync"
	"time"
)

// job does the same thing again and again, one at a time, in the background: it may hang for as long as a disk
// does. The zero value with does is ready. It is safe for concurrent use.
type job struct {
	does func()

	mu    sync.Mutex // guards what follows
	runs  bool
	began time.Time     // when the running one did
	next  chan struct{} // closed at the end of the next one; nil: nobody waits for it
}

// do has it done from now on, and reports whether that was so in the given time. While one hangs for longer than
// that, nobody waits.
func (j *job) do(wait time.Duration) (done bool) {
	j.mu.Lock()
	if !j.runs {
		j.runs, j.began = true, time.Now()
		go j.run() // ends when nobody waits for another one, or with the disk
	}
	if j.next == nil {
		j.next = make(chan struct{})
	}
	next, left := j.next, wait-time.Since(j.began)
	j.mu.Unlock()
	if left <= 0 {
		return false
	}
	late := time.NewTimer(left)
	defer late.Stop()
	select {
	case <-next:
		return true
	case <-late.C:
		return false
	}
}

func (j *job) run() {
	for {
		j.mu.Lock()
		next := j.next
		if j.next, j.began = nil, time.Now(); next == nil {
			j.runs = false
			j.mu.Unlock()
			return
		}
		j.mu.Unlock()
		j.does()
		close(next)
	}
}
