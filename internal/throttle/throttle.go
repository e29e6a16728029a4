// Package throttle limits how often a log line is written.
package throttle

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"golang.org/x/time/rate"
)

// A burst of five times as many lines may be written before these limits count.
const (
	warningsPerSecond = 1
	linesPerSecond    = 20 // below level warn
)

// Lines limits what one source, such as a server, can cause to be logged: each message
// by itself. It is safe for concurrent use.
type Lines struct {
	mu        sync.Mutex // guards what follows
	byMessage map[string]*limit
}

type limit struct {
	*rate.Limiter
	suppressed int
}

// NewLines returns a Lines that has suppressed nothing.
func NewLines() *Lines { return &Lines{byMessage: make(map[string]*limit)} }

// Logger returns a logger that writes to log as often as l allows. A line has the
// attribute suppressed if others with the same message were suppressed before it.
// Messages must be constants: l remembers each.
func (l *Lines) Logger(log *slog.Logger) *slog.Logger {
	return slog.New(&handler{Handler: log.Handler(), lines: l})
}

// Flush writes to log how many lines of each message were suppressed since the last
// one, for a source that causes no more.
func (l *Lines) Flush(log *slog.Logger) {
	l.mu.Lock()
	rest := make(map[string]int)
	for message, m := range l.byMessage {
		if m.suppressed > 0 {
			rest[message], m.suppressed = m.suppressed, 0
		}
	}
	l.mu.Unlock()
	for _, message := range slices.Sorted(maps.Keys(rest)) {
		log.Warn("log lines left out", "line", message, "suppressed", rest[message])
	}
}

// allow reports whether to write r now, and if so, how many lines like it were
// suppressed since the last one.
func (l *Lines) allow(r slog.Record) (suppressed int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.byMessage[r.Message]
	if m == nil {
		perSecond := linesPerSecond
		if r.Level >= slog.LevelWarn {
			perSecond = warningsPerSecond
		}
		m = &limit{Limiter: rate.NewLimiter(rate.Limit(perSecond), 5*perSecond)}
		l.byMessage[r.Message] = m
	}
	if !m.Allow() {
		m.suppressed++
		return 0, false
	}
	suppressed, m.suppressed = m.suppressed, 0
	return suppressed, true
}

// handler is the slog.Handler of a limited logger.
type handler struct {
	slog.Handler
	lines *Lines
}

// Handle writes the line if it is allowed.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	suppressed, ok := h.lines.allow(r)
	if !ok {
		return nil
	}
	if suppressed > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("suppressed", suppressed))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs returns a handler with more attributes and the same limits.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.Handler.WithAttrs(attrs), h.lines}
}

// WithGroup returns a handler with a group and the same limits.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.Handler.WithGroup(name), h.lines}
}
