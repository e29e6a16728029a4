package ssetest

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
)

// Logger returns a logger that writes lines of all levels, without their times, to w.
func Logger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w,
		&slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
}

// Output collects what a program prints, or a log. It is safe for concurrent use.
type Output struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

// Write adds to it.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

// String returns all of it.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// Tail returns its end: enough to see what went wrong.
func (o *Output) Tail() string {
	s := o.String()
	return s[max(0, len(s)-32<<10):]
}
