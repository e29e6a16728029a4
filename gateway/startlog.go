package gateway

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/handshake"
)

// sayAgain is how long the log stays silent about starts that fail as the last
// one did.
const sayAgain = time.Minute

var digits = regexp.MustCompile(`[0-9]+`)

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
	cause := causeOf(err)
	same := cause == l.cause && time.Since(l.said) < sayAgain
	if same && (!last || l.gaveUp) {
		l.unsaid++
		return slog.LevelDebug, attrs
	}
	l.gaveUp = last
	if l.unsaid > 0 && cause == l.cause {
		attrs = append(attrs, "notLogged", l.unsaid)
	}
	if !same {
		l.cause, l.said = cause, time.Now()
	}
	l.unsaid = 0
	return slog.LevelWarn, attrs
}

// causeOf is what makes two failures the same: not the last words of a server, nor
// times, ports and process ids.
func causeOf(err error) string {
	text := err.Error()
	if f, ok := errors.AsType[*handshake.Failure](err); ok && f.Phase != handshake.PhaseCreation {
		text = f.Details
	}
	return digits.ReplaceAllLiteralString(text, "0")
}

// repeats reports whether starts fail for a cause that has been said.
func (l *startLog) repeats() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause != "" && time.Since(l.said) < sayAgain
}

// children is a handler for the log of an upstream: while starts fail for a cause
// that has been said, that processes start and exit is at level debug.
type children struct {
	slog.Handler
	starts *startLog
}

func (c children) Handle(ctx context.Context, r slog.Record) error {
	if (r.Message == "server started" || r.Message == "server exited") && c.starts.repeats() {
		r.Level = slog.LevelDebug
		if !c.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return c.Handler.Handle(ctx, r)
}

func (c children) WithAttrs(attrs []slog.Attr) slog.Handler {
	return children{c.Handler.WithAttrs(attrs), c.starts}
}

func (c children) WithGroup(name string) slog.Handler {
	return children{c.Handler.WithGroup(name), c.starts}
}

// worked notes a start that worked: the next failure is a new cause.
func (l *startLog) worked() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cause, l.unsaid, l.gaveUp = "", 0, false
}
