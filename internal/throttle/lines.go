package throttle

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// Of each message, a burst of lines is written, then one in each interval. Debug
	// lines are for those who look for them, and may come more often.
	linesInterval = time.Second
	linesBurst    = 5
	debugInterval = time.Second / 20
	debugBurst    = 100
)

// Lines limits what one source, such as a server, can cause to be logged: each message
// by itself. It is safe for concurrent use.
type Lines struct {
	mu   sync.Mutex // guards what follows
	byID map[string]*Line
}

// NewLines returns a Lines that has held back nothing.
func NewLines() *Lines { return &Lines{byID: make(map[string]*Line)} }

// Logger returns a logger that writes to log as often as l allows. Its lines have the
// attribute suppressed if others with the same message were held back before. Messages
// must be constants: l remembers each.
func (l *Lines) Logger(log *slog.Logger) *slog.Logger {
	return slog.New(&handler{Handler: log.Handler(), lines: l})
}

// Flush writes to log how many lines of each message were held back since the last one,
// for a source that causes no more.
func (l *Lines) Flush(log *slog.Logger) {
	l.mu.Lock()
	lines := maps.Clone(l.byID)
	l.mu.Unlock()
	for _, message := range slices.Sorted(maps.Keys(lines)) {
		if n := lines[message].Rest(); n > 0 {
			log.Warn("log lines left out", "line", message, "suppressed", n)
		}
	}
}

// line returns the limit for lines like r.
func (l *Lines) line(r slog.Record) *Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.byID[r.Message]
	switch {
	case found != nil:
	case r.Level < slog.LevelInfo:
		found = NewLine(debugInterval, debugBurst)
	default:
		found = NewLine(linesInterval, linesBurst)
	}
	l.byID[r.Message] = found
	return found
}

// handler is the slog.Handler of a limited logger.
type handler struct {
	slog.Handler
	lines *Lines
}

// Handle writes the line if it is due.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	suppressed, due := h.lines.line(r).Due()
	if !due {
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
