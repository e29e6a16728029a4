package main

import (
	"context"
	"io"
	"log"
	"log/slog"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/throttle"
)

// newLogger makes the log; format has been checked.
func newLogger(w io.Writer, level slog.Leveler, format string) *slog.Logger {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: plain}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// plain writes times in UTC, whatever the zone of the machine, and durations with their
// unit in JSON too, without nanoseconds.
func plain(_ []string, attr slog.Attr) slog.Attr {
	switch attr.Value.Kind() {
	case slog.KindTime:
		attr.Value = slog.TimeValue(attr.Value.Time().UTC())
	case slog.KindDuration:
		d, exact := attr.Value.Duration(), time.Microsecond
		if d >= time.Second {
			exact = time.Millisecond
		}
		attr.Value = slog.StringValue(d.Round(exact).String())
	}
	return attr
}

// serverErrors is the ErrorLog of an http.Server: its texts become attributes.
func serverErrors(to *slog.Logger) *log.Logger {
	return log.New(errorWriter{throttle.NewLines().Logger(to)}, "", 0)
}

// errorWriter logs what is written as lines of a limited logger.
type errorWriter struct{ *slog.Logger }

// Write logs one line. A failed TLS handshake is any port scanner's doing and
// would fill the log; the rest, panics of handlers among it, is worth a warning.
func (w errorWriter) Write(line []byte) (int, error) {
	text, level := strings.TrimSpace(string(line)), slog.LevelWarn
	if strings.Contains(text, "TLS handshake error") {
		level = slog.LevelDebug
	}
	w.Log(context.Background(), level, "http server error", "err", text)
	return len(line), nil
}
