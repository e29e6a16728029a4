package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestLogFormats(t *testing.T) {
	var text, lines bytes.Buffer
	newLogger(&text, slog.LevelWarn, "text").Info("below the level")
	newLogger(&text, slog.LevelWarn, "text").Warn("slow", "duration", 1500*time.Millisecond+1)
	newLogger(&text, slog.LevelWarn, "text").Warn("fast", "duration", 42_123_456*time.Nanosecond)
	for _, want := range []string{"level=WARN msg=slow duration=1.5s\n", "level=WARN msg=fast duration=42.123ms\n"} {
		if got := text.String(); !strings.Contains(got, want) || strings.Contains(got, "below") {
			t.Errorf("text: got %q, want only %q", got, want)
		}
	}
	record := slog.NewRecord(time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", -3600)), slog.LevelInfo, "m", 0)
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		_ = newLogger(&out, slog.LevelInfo, format).Handler().Handle(t.Context(), record)
		if !strings.Contains(out.String(), "2026-01-02T04:04:05") {
			t.Errorf("%s: got %q, want the time in UTC", format, out.String())
		}
	}
	newLogger(&lines, slog.LevelDebug, "json").Debug("slow", "duration", 1500*time.Millisecond, "n", 3)
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
	errs := serverErrors(newLogger(&out, slog.LevelInfo, "text"))
	errs.Print("http: TLS handshake error from 192.0.2.1:1: EOF")
	if out.Len() > 0 {
		t.Errorf("got %q for a port scanner, want nothing at info", out.String())
	}
	errs.Print("http: panic serving 192.0.2.1:1: boom\ngoroutine 1")
	if got := out.String(); !strings.Contains(got, `msg="http server error" err="http: panic serving`) || strings.Count(got, "\n") != 1 {
		t.Errorf("got %q, want one line with the text under err", got)
	}
}
