package main

import (
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A reader of the log that stalls stops nobody. What it missed is counted, and the rest
// of the log comes when it reads again.
func TestStalledReaderOfTheLogStopsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		lines := newLogWriter(w, func(n int64) { newLogger(w, slog.LevelInfo, "text").Warn("log lines dropped", "lines", n) })
		log := newLogger(lines, slog.LevelInfo, "text")
		began := time.Now()
		for range 2 * maxLogLines {
			log.Info("a line")
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("logging waited for %s", waited)
		}
		var got strings.Builder
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _ = io.Copy(&got, r)
		}()
		synctest.Wait()
		log.Info("the last line")
		lines.Close()
		log.Info("too late")
		_ = w.Close()
		<-read
		text := got.String()
		if n := strings.Count(text, "a line"); n < maxLogLines || n > maxLogLines+2 {
			t.Errorf("%d lines were written, want those that waited", n)
		}
		if !strings.Contains(text, `level=WARN msg="log lines dropped" lines=`) || !strings.Contains(text, "the last line") || strings.Contains(text, "too late") {
			t.Errorf("the log ends with %q", text[max(0, len(text)-300):])
		}
	})
}

func TestEndWaitsForTheReaderOfTheLogASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		lines := newLogWriter(w, nil)
		newLogger(lines, slog.LevelInfo, "json").Info("a line")
		began := time.Now()
		lines.Close()
		if waited := time.Since(began); waited != flushTimeout {
			t.Errorf("the end waited for %s, want %s", waited, flushTimeout)
		}
		_ = r.Close() // ends the write
		<-lines.done
	})
}
