package compose

import (
	"time"

	"github.com/mcp-sse/mcp-sse/internal/merge"
)

const (
	// maxBurst bounds the changes of a list after which it is read at once, until it has been calm.
	maxBurst = 16
	// maxPace bounds the pauses between further reads.
	maxPace = time.Minute
)

// pace spaces the reads of a list that changes. The first changes are read at once. While changes go on, the pause
// before each further read doubles.
type pace struct {
	last  time.Time     // the end of the newest read
	burst int           // the changes that were read at once
	pause time.Duration // before the next read, when burst is used up
	timer *time.Timer   // of a read that is due; nil: none is
}

// readChanged reads a list that has changed, at once or after a pause. It has been calm if no change has come for as
// long as the pause.
func (l *link) readChanged(kind merge.Kind) {
	p := &l.paces[kind]
	if time.Since(p.last) > max(changesTogether, p.pause) {
		p.burst, p.pause = 0, changesTogether
	}
	switch {
	case p.timer != nil: // that read has the change
	case p.burst < maxBurst:
		p.burst++
		l.startRead(kind)
	default:
		l.readLater(kind)
	}
}

// readLater reads a list after its pause, and doubles that.
func (l *link) readLater(kind merge.Kind) {
	p := &l.paces[kind]
	pause := max(changesTogether, p.pause)
	p.pause = min(2*pause, maxPace)
	var timer *time.Timer
	timer = time.AfterFunc(pause, func() {
		l.s.mu.Lock()
		defer l.s.unlock()
		if p.timer != timer {
			return
		}
		p.timer = nil
		if l.reads[kind] == nil {
			l.startRead(kind)
			l.reads[kind].second = true
		}
	})
	p.timer = timer
}

// stopPaces has no list read later: the connection is over.
func (l *link) stopPaces() {
	for kind := range l.paces {
		if timer := l.paces[kind].timer; timer != nil {
			timer.Stop()
		}
		l.paces[kind] = pace{}
	}
}
