// Package throttle holds back log lines that would come too often.
package throttle

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Line is a log line that is written at most so often, and says how often it was
// held back. It is safe for concurrent use.
type Line struct {
	limit *rate.Limiter

	mu         sync.Mutex // guards what follows
	suppressed int
}

// NewLine returns a Line that is written once in each interval, after burst at
// once.
func NewLine(interval time.Duration, burst int) *Line {
	return &Line{limit: rate.NewLimiter(rate.Every(interval), burst)}
}

// Due reports whether to write the line now, and how many were held back since
// it was last written.
func (l *Line) Due() (suppressed int, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.limit.Allow() {
		l.suppressed++
		return 0, false
	}
	suppressed, l.suppressed = l.suppressed, 0
	return suppressed, true
}
