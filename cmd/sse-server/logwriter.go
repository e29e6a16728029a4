package main

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxLogLines is how many lines of the log wait for a reader that stalls.
	maxLogLines = 4096
	// flushTimeout bounds the wait for that reader at the end.
	flushTimeout = time.Second
)

// logWriter writes log lines in the background, so that a reader of stderr that stalls
// stops nothing but the log. It drops lines that come while maxLogLines wait. It is
// safe for concurrent use.
type logWriter struct {
	to      io.Writer
	lines   chan []byte
	dropped atomic.Int64
	report  func(dropped int64) // logs that lines were dropped, to the writer itself
	done    chan struct{}       // closed when run returns

	mu     sync.RWMutex // held for reading while a line enters; guards closed
	closed bool
}

// newLogWriter returns a running logWriter. The caller must call Close.
func newLogWriter(to io.Writer, level, format string) *logWriter {
	w := &logWriter{to: to, lines: make(chan []byte, maxLogLines), done: make(chan struct{})}
	direct := newLogger(to, level, format)
	w.report = func(n int64) { direct.Warn("log lines dropped", "lines", n) }
	go w.run() // ends with Close
	return w
}

// Write takes one line. It never waits and never fails.
func (w *logWriter) Write(line []byte) (int, error) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return len(line), nil
	}
	select {
	case w.lines <- append([]byte(nil), line...):
	default:
		w.dropped.Add(1)
	}
	return len(line), nil
}

func (w *logWriter) run() {
	defer close(w.done)
	for line := range w.lines {
		_, _ = w.to.Write(line) // there is nowhere to report it
		if n := w.dropped.Swap(0); n > 0 {
			w.report(n)
		}
	}
}

// Close writes what waits, within a second. Later lines are lost.
func (w *logWriter) Close() {
	w.mu.Lock()
	closed := w.closed
	w.closed = true
	w.mu.Unlock()
	if closed {
		return
	}
	close(w.lines)
	select {
	case <-w.done:
	case <-time.After(flushTimeout):
	}
}
