package handshake

import (
	"maps"
	"sync"
	"time"
)

// OncePerHour notes what has happened in the last hour, for what must not happen again sooner. The zero value
// is ready for use; it is safe for concurrent use.
type OncePerHour struct {
	mu    sync.Mutex // guards noted
	noted map[string]time.Time
}

// maxNoted bounds what is noted, because clients name it.
const maxNoted = 256

// First reports whether something has not happened in the last hour, and notes that it does now. It reports
// false for everything while there is too much to note.
func (o *OncePerHour) First(what string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.noted, func(_ string, at time.Time) bool { return now.Sub(at) >= time.Hour })
	if _, noted := o.noted[what]; noted || len(o.noted) >= maxNoted {
		return false
	}
	if o.noted == nil {
		o.noted = make(map[string]time.Time)
	}
	o.noted[what] = now
	return true
}
