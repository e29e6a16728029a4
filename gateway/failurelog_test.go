package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/upstream"
)

// The log has a permanent failure when it first occurs, once more when the first
// connection gives up, and then once a minute, each time with the number of failures
// left out.
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

// Details that differ from start to start, such as times and ports, do not make a new
// cause. The number left out of one cause does not appear with the next.
func TestCauseIsTheSameButForNumbers(t *testing.T) {
	var log logText
	var another atomic.Bool
	u := &server{dial: func(_ context.Context, n int) error {
		if another.Load() {
			return errors.New("another cause")
		}
		return fmt.Errorf("12:00:%02d port %d in use", n, 40000+n)
	}}
	opts := gateway.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})), MaxHandshakeAttempts: 100}
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		connect(t, g, plain)
		time.Sleep(30 * time.Second)
		if got := log.take(); strings.Count(got, "\n") != 1 {
			t.Errorf("got %s, want one line", got)
		}
		another.Store(true)
		time.Sleep(35 * time.Second) // a pause is at most 30 s
		if got := log.take(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "another cause") || strings.Contains(got, "notLogged") {
			t.Errorf("got %s, want one line of the new cause", got)
		}
	})
}

// Repeated starts and exits of processes are not logged either, and the last words of
// the server do not make a new cause.
func TestProcessesThatExitAreSaidOnce(t *testing.T) {
	var log logText
	g, err := gateway.New(upstream.Command{Path: "sh", Args: []string{"-c", "echo $(od -An -N8 -tx8 /dev/urandom) >&2; exit 3"}}, gateway.Options{
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})), AnnounceDelay: -1, MaxHandshakeAttempts: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	p := connect(t, g, plain)
	p.post(request("1", "tools/list"))
	p.awaitAnswersFor(t, 20*time.Second)
	p.c.Close("left")
	if err := g.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	text := log.text.String()
	if exited, failed := strings.Count(text, "server exited"), strings.Count(text, "session start failed"); exited != 1 || failed != 2 {
		t.Errorf("%d lines of exits and %d of starts, want 1 and 2:\n%s", exited, failed, text)
	}
}

// logText is a log that tests read during writes.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// take returns the log since the last call.
func (l *logText) take() string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}
