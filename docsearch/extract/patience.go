package extract

import (
	"sync"
	"time"
)

// How long one PDF may take: those that need all of it delay the indexing of the rest.
const (
	leastTimeout  = 10 * time.Second
	timeoutPerMiB = 5 * time.Second
	briefTimeout  = 2 * time.Second // after rowTimeouts in a row, for briefPeriod
	briefPeriod   = time.Minute
	rowTimeouts   = 5
)

// patience decides how long a PDF may take. Many that time out one after the other, such
// as a thousand hostile ones, get little time; one in each period gets all of its time.
type patience struct {
	least, most time.Duration

	mu    sync.Mutex
	row   int       // timeouts since the last PDF that ended in time
	until time.Time // when the present period of brief timeouts ends
}

// timeout returns how long a PDF of that size may take.
func (p *patience) timeout(size int, now time.Time) time.Duration {
	normal := min(p.most, (p.least + time.Duration(size)*timeoutPerMiB/(1<<20)).Round(time.Second/10))
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Before(p.until) {
		return min(normal, briefTimeout)
	}
	return normal
}

// note takes note of a PDF that ended.
func (p *patience) note(timedOut bool, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !timedOut {
		p.row, p.until = 0, time.Time{}
		return
	}
	if p.row++; p.row >= rowTimeouts && !now.Before(p.until) {
		p.until = now.Add(briefPeriod)
	}
}
