package gateway

import (
	"log/slog"
	"sync"
	"time"
)

// sayAgain is how long the log stays silent about starts that fail as the last
// one did.
const sayAgain = time.Minute

// startLog logs starts that fail: a cause once, and once more with the number of
// starts that it has failed since when a connection gives up, and again after a
// minute. So a server that can never start does not fill the log. The zero value
// is ready. It is safe for concurrent use.
type startLog struct {
	mu     sync.Mutex // guards what follows
	cause  string     // of the last failure; empty: there has been none since a start worked
	said   time.Time
	unsaid int  // failures since it was said
	gaveUp bool // it has been said of a connection that gave up
}

// failed returns the level and the attributes for a start that failed. The level
// is warn when the cause is new. last says that a connection gives up.
func (l *startLog) failed(err error, last bool, attrs ...any) (slog.Level, []any) {
	attrs = append(attrs, "gaveUp", last, "err", err)
	l.mu.Lock()
	defer l.mu.Unlock()
	same := err.Error() == l.cause && time.Since(l.said) < sayAgain
	if same && (!last || l.gaveUp) {
		l.unsaid++
		return slog.LevelDebug, attrs
	}
	l.gaveUp = last
	if l.unsaid > 0 {
		attrs = append(attrs, "notLogged", l.unsaid)
	}
	if !same {
		l.cause, l.said = err.Error(), time.Now()
	}
	l.unsaid = 0
	return slog.LevelWarn, attrs
}

// worked notes a start that worked: the next failure is a new cause.
func (l *startLog) worked() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cause = ""
}
