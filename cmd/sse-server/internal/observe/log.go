package observe

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/plaintext"
	"github.com/mcp-sse/mcp-sse/internal/throttle"
)

// NewLogger makes the log; format has been checked.
func NewLogger(w io.Writer, level slog.Leveler, format string) *slog.Logger {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: plainAttr}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// plainAttr writes times in UTC, whatever the zone of the machine, durations with their
// unit in JSON too, without nanoseconds, and errors in plain words.
func plainAttr(_ []string, attr slog.Attr) slog.Attr {
	switch attr.Value.Kind() {
	case slog.KindTime:
		attr.Value = slog.TimeValue(attr.Value.Time().UTC())
	case slog.KindDuration:
		d, exact := attr.Value.Duration(), time.Microsecond
		if d >= time.Second {
			exact = time.Millisecond
		}
		attr.Value = slog.StringValue(d.Round(exact).String())
	case slog.KindAny:
		if err, ok := attr.Value.Any().(error); ok && errors.Is(err, context.DeadlineExceeded) {
			attr.Value = slog.StringValue(plaintext.Words(err.Error()))
		}
	}
	return attr
}

// ServerErrors is the ErrorLog of an http.Server: its texts become attributes.
func ServerErrors(to *slog.Logger) *log.Logger {
	return log.New(errorWriter{throttle.NewLines().Logger(to)}, "", 0)
}

// errorWriter logs what is written as lines of a limited logger.
type errorWriter struct{ *slog.Logger }

// Write logs one line. A failed TLS handshake is any port scanner's doing and
// would fill the log; the rest, panics of handlers among it, is worth a warning.
func (w errorWriter) Write(line []byte) (int, error) {
	text, level := strings.TrimSpace(string(line)), slog.LevelWarn
	switch {
	case strings.Contains(text, "client sent an HTTP request to an HTTPS server"):
		w.Warn("plain HTTP to an address with TLS", "remedy", "use https:// in the client")
		return len(line), nil
	case strings.Contains(text, "TLS handshake error"):
		level = slog.LevelDebug
	}
	w.Log(context.Background(), level, "http server error", "err", text)
	return len(line), nil
}

const (
	// maxLogLines is how many lines of the log wait for a reader that stalls.
	maxLogLines = 4096
	// flushTimeout bounds the wait for that reader at the end.
	flushTimeout = time.Second
)

// LogWriter writes log lines in the background, so that a reader of stderr that stalls
// stops nothing but the log. It drops lines that come while maxLogLines wait. It is
// safe for concurrent use.
type LogWriter struct {
	lines   chan []byte
	dropped atomic.Int64
	quit    chan struct{} // closed by Close
	done    chan struct{} // closed when run returns
}

// NewLogWriter returns a running LogWriter, which calls dropped with the lines that it has
// dropped. The caller must call Close once.
func NewLogWriter(to io.Writer, dropped func(lines int64)) *LogWriter {
	w := &LogWriter{lines: make(chan []byte, maxLogLines), quit: make(chan struct{}), done: make(chan struct{})}
	go w.run(to, dropped) // ends with Close
	return w
}

// Write takes one line. It never waits and never fails.
func (w *LogWriter) Write(line []byte) (int, error) {
	select {
	case w.lines <- bytes.Clone(line):
	default:
		w.dropped.Add(1)
	}
	return len(line), nil
}

// run writes lines until quit, and then those that wait.
func (w *LogWriter) run(to io.Writer, dropped func(lines int64)) {
	defer close(w.done)
	quit := w.quit
	for quit != nil || len(w.lines) > 0 {
		select {
		case line := <-w.lines:
			_, _ = to.Write(line) // of stderr, there is nowhere to report it
		case <-quit:
			quit = nil
		}
		if n := w.dropped.Swap(0); n > 0 {
			dropped(n)
		}
	}
}

// Close writes what waits, within a second, and returns how many lines are left. Later lines are
// lost.
func (w *LogWriter) Close() (left int) {
	close(w.quit)
	select {
	case <-w.done:
		return 0
	case <-time.After(flushTimeout):
		return len(w.lines) + 1 // that which is being written
	}
}
