package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/gateway"
)

// A start that can never work is said when it is news, once more when the first
// connection gives up, and then once a minute, each time with what was left out.
func TestStartThatNeverWorksIsSaidOnceWithItsCount(t *testing.T) {
	var log logText
	u := &server{dial: failing(1000)}
	opts := gateway.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		for range 10 {
			connect(t, g, plain)
		}
		time.Sleep(59 * time.Second) // 10 connections, 5 attempts each
		lines := strings.Split(strings.TrimSpace(log.take()), "\n")
		if len(lines) != 2 {
			t.Fatalf("%d lines: %q", len(lines), lines)
		}
		if !strings.Contains(lines[0], "attempt=1 ") || strings.Contains(lines[0], "notLogged") {
			t.Errorf("first: %s", lines[0])
		}
		if !strings.Contains(lines[1], "gaveUp=true") || !strings.Contains(lines[1], "attempt=5 ") || !strings.Contains(lines[1], "notLogged=") {
			t.Errorf("second: %s", lines[1])
		}
		log.take()
		time.Sleep(time.Minute)
		connect(t, g, plain)
		time.Sleep(time.Second)
		if got := log.take(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "notLogged=") {
			t.Errorf("after a minute: %s", got)
		}
		log.take()
		time.Sleep(time.Minute)
		log.take()
		synctest.Wait()
		u.dial = func(context.Context, int) error { return errors.New("another cause") }
		connect(t, g, plain)
		time.Sleep(time.Millisecond)
		if got := log.take(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "another cause") {
			t.Errorf("another cause: %s", got)
		}
	})
}

// logText is a log that is read while it is written.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// take returns what has been logged since the last call.
func (l *logText) take() string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}
