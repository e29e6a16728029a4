// Package throttle holds back log lines that would come too often.
package throttle

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Line limits how often a log line is written, and counts the lines held back. It is
// safe for concurrent use.
type Line struct {
	limit *rate.Limiter

	mu         sync.Mutex // guards what follows
	suppressed int
}

// NewLine returns a Line that is written at most once in each interval, after a burst
// of lines.
func NewLine(interval time.Duration, burst int) *Line {
	return &Line{limit: rate.NewLimiter(rate.Every(interval), burst)}
}

// Due reports whether to write the line now. If so, it also returns how many were
// held back since the last one.
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

// Rest returns how many lines were held back since the last one was written, for a
// caller that writes no more.
func (l *Line) Rest() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	suppressed := l.suppressed
	l.suppressed = 0
	return suppressed
}
