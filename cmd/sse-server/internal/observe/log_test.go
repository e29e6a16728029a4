package observe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLogFormats(t *testing.T) {
	var text, lines bytes.Buffer
	NewLogger(&text, slog.LevelWarn, "text").Info("below the level")
	NewLogger(&text, slog.LevelWarn, "text").Warn("slow", "duration", 1500*time.Millisecond+1)
	NewLogger(&text, slog.LevelWarn, "text").Warn("fast", "duration", 42_123_456*time.Nanosecond)
	for _, want := range []string{"level=WARN msg=slow duration=1.5s\n", "level=WARN msg=fast duration=42.123ms\n"} {
		if got := text.String(); !strings.Contains(got, want) || strings.Contains(got, "below") {
			t.Errorf("text: got %q, want only %q", got, want)
		}
	}
	record := slog.NewRecord(time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", -3600)), slog.LevelInfo, "m", 0)
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		_ = NewLogger(&out, slog.LevelInfo, format).Handler().Handle(t.Context(), record)
		if !strings.Contains(out.String(), "2026-01-02T04:04:05") {
			t.Errorf("%s: got %q, want the time in UTC", format, out.String())
		}
	}
	NewLogger(&lines, slog.LevelDebug, "json").Debug("slow", "duration", 1500*time.Millisecond, "n", 3)
	var got struct {
		Msg, Level, Duration string
		N                    int
	}
	if err := json.Unmarshal(lines.Bytes(), &got); err != nil || got.Duration != "1.5s" || got.N != 3 || got.Level != "DEBUG" {
		t.Errorf("json: got %s, err %v, want the duration with its unit", lines.String(), err)
	}
}

func TestServerErrorsBecomeAttributes(t *testing.T) {
	var out bytes.Buffer
	errs := ServerErrors(NewLogger(&out, slog.LevelInfo, "text"))
	errs.Print("http: TLS handshake error from 192.0.2.1:1: EOF")
	if out.Len() > 0 {
		t.Errorf("got %q for a port scanner, want nothing at info", out.String())
	}
	errs.Print("http: panic serving 192.0.2.1:1: boom\ngoroutine 1")
	if got := out.String(); !strings.Contains(got, `msg="http server error" err="http: panic serving`) || strings.Count(got, "\n") != 1 {
		t.Errorf("got %q, want one line with the text under err", got)
	}
}

// A reader of the log that stalls stops nobody. The lines that it missed are counted, and the rest
// of the log comes when it reads again.
func TestStalledReaderOfTheLogStopsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		lines := NewLogWriter(w, func(n int64) { NewLogger(w, slog.LevelInfo, "text").Warn("log lines dropped", "lines", n) })
		log := NewLogger(lines, slog.LevelInfo, "text")
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
		lines := NewLogWriter(w, nil)
		NewLogger(lines, slog.LevelInfo, "json").Info("a line")
		began := time.Now()
		lines.Close()
		if waited := time.Since(began); waited != flushTimeout {
			t.Errorf("the end waited for %s, want %s", waited, flushTimeout)
		}
		_ = r.Close() // ends the write
		<-lines.done
	})
}

// Nobody reads of a context.
func TestLogSaysThatTimeIsUp(t *testing.T) {
	var log bytes.Buffer
	NewLogger(&log, nil, "text").Info("x", "err", fmt.Errorf("list tools: %w", context.DeadlineExceeded))
	if !strings.HasSuffix(log.String(), `err="list tools: time is up"`+"\n") {
		t.Errorf("got %s", log.String())
	}
}
