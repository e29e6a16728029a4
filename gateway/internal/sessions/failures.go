package sessions

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/handshake"
)

// quietFor is how long failed starts of the same cause are logged at level debug.
const quietFor = time.Minute

var digits = regexp.MustCompile(`[0-9]+`)

// failureLog chooses the log levels of failed starts. It logs a cause once, again
// after quietFor, and once more, with the number of failures since, when a connection
// gives up. So a server that can never start does not fill the log. The zero value is
// ready. It is safe for concurrent use.
type failureLog struct {
	mu     sync.Mutex // guards what follows
	cause  string     // of the last failure; empty: the last start worked
	logged time.Time
	silent int  // failures since the last that was logged
	gaveUp bool // that one was of a connection that gave up
}

// level returns the level and the attributes for the log line of a failed start. The
// level is warn for a new cause. last reports that a connection gives up.
func (l *failureLog) level(err error, last bool, attrs ...any) (slog.Level, []any) {
	attrs = append(attrs, "gaveUp", last, "err", err)
	l.mu.Lock()
	defer l.mu.Unlock()
	cause := causeOf(err)
	same := cause == l.cause && time.Since(l.logged) < quietFor
	if same && (!last || l.gaveUp) {
		l.silent++
		return slog.LevelDebug, attrs
	}
	l.gaveUp = last
	if l.silent > 0 && cause == l.cause {
		attrs = append(attrs, "notLogged", l.silent)
	}
	if !same {
		l.cause, l.logged = cause, time.Now()
	}
	l.silent = 0
	return slog.LevelWarn, attrs
}

// causeOf returns the text that is equal for failures of one cause. It leaves out the
// last words of a server, and digits: times, ports and process ids.
func causeOf(err error) string {
	text := err.Error()
	if f, ok := errors.AsType[*handshake.Failure](err); ok && f.Phase != handshake.PhaseCreation {
		text = f.Details
	}
	return digits.ReplaceAllLiteralString(text, "0")
}

// repeats reports whether the cause of the last failure has just been logged.
func (l *failureLog) repeats() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause != "" && time.Since(l.logged) < quietFor
}

// reset makes the next failure a new cause.
func (l *failureLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cause, l.silent, l.gaveUp = "", 0, false
}

// NoteStart records a start that worked.
func (s *Supplier) NoteStart() {
	s.readiness.note(true)
	s.failures.reset()
}

// NoteFailure records a failed start, and returns the level and the attributes of its
// log line: warn for a new cause, else debug. last reports that a connection gives
// up.
func (s *Supplier) NoteFailure(err error, last bool, attrs ...any) (slog.Level, []any) {
	s.readiness.note(false)
	return s.failures.level(err, last, attrs...)
}

// LossAttrs returns the level and the attributes for the log line of a lost session.
// The loss of a session that had not proved itself is logged like a failed start.
func (s *Session) LossAttrs(err error) (slog.Level, []any) {
	if !s.Proven() {
		return s.supplier.failures.level(EndedSoon(err), false, "duration", s.Age())
	}
	return slog.LevelWarn, []any{"duration", s.Age(), "err", err}
}

// childLog is a handler for the log of an upstream. While starts fail for a cause
// that has just been logged, it logs starts and exits of processes at level debug.
type childLog struct {
	slog.Handler
	failures *failureLog
}

func (c childLog) Handle(ctx context.Context, r slog.Record) error {
	if (r.Message == "server started" || r.Message == "server exited") && c.failures.repeats() {
		r.Level = slog.LevelDebug
		if !c.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return c.Handler.Handle(ctx, r)
}

func (c childLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return childLog{c.Handler.WithAttrs(attrs), c.failures}
}

func (c childLog) WithGroup(name string) slog.Handler {
	return childLog{c.Handler.WithGroup(name), c.failures}
}
