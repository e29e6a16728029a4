package observe

import (
	"bytes"
	"fmt"
	"log/slog"
	"regexp"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// The log of a terminal has the lines of a server that starts once its check has ended well, and those of one that
// fails not at all, until it has a session.
func TestLinesOfStarts(t *testing.T) {
	var out bytes.Buffer
	said := func() string {
		defer out.Reset()
		return regexp.MustCompile(`(?m)^level=INFO msg=|server=| ?pid=7`).ReplaceAllString(out.String(), "")
	}
	level := new(slog.LevelVar)
	starts := NewStarts()
	log := starts.Logger(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})))
	a, b := log.With("server", "a"), log.With("server", "b")
	ofA, ofB := a.With("pid", 7), b.With("pid", 7).WithGroup("g")
	starts.Begin("a")
	starts.Begin("b")
	for i := range maxHeld + 1 {
		ofA.Info("stderr", "line", i)
	}
	ofB.Info("exited", "reason", "error")
	b.Info("warm server start failed")
	b.Info("client refused")
	log.Info("serving")
	ssetest.Want(t, "while checks go on", said(), "\"client refused\" b\nserving\n")

	starts.End("a", false)
	held := ""
	for i := range maxHeld {
		held += fmt.Sprintf("stderr a line=%d\n", i+1)
	}
	starts.End("b", true)
	ssetest.Want(t, "when they have ended", said(), held)
	ofA.Info("exited")
	ofB.Info("exited")
	b.Info("warm server starts")
	b.Info("session start failed")
	ssetest.Want(t, "after that", said(), "exited a\n\"session start failed\" b\n")

	b.Info("session started")
	ofB.Info("exited")
	ssetest.Want(t, "with a session", said(), "\"session started\" b\nexited b\n")

	starts.Begin("b")
	starts.End("b", true)
	starts.Begin("a")
	ofA.Info("stderr")
	ssetest.Want(t, "of two that are kept out", said(), "")
	starts.Forget()
	ofB.Info("exited")
	starts.End("a", true) // of the configuration before
	ofA.Info("exited")
	ssetest.Want(t, "of a new configuration", said(), "stderr a\nexited b\nexited a\n")

	starts.Begin("a")
	ofA.Info("exited")
	level.Set(slog.LevelDebug)
	ofA.Info("stderr")
	starts.End("a", false)
	ssetest.Want(t, "at level debug", said(), "stderr a\nexited a\n")
}

// An error is written at once, and all lines about a server whose start is late.
func TestLinesThatAreNotKeptOut(t *testing.T) {
	var out bytes.Buffer
	starts := NewStarts()
	log := starts.Logger(slog.New(slog.NewTextHandler(&out, nil))).With("server", "a", "pid", 7)
	want := func(after string, messages ...string) {
		t.Helper()
		var got []string
		for _, line := range regexp.MustCompile(`msg=(\w+)`).FindAllStringSubmatch(out.String(), -1) {
			got = append(got, line[1])
		}
		ssetest.Want(t, after, got, messages)
	}
	starts.Begin("a")
	log.Info("visit")
	log.Error("survives")
	want("an error while the check goes on", "survives")
	starts.Late("a")
	want("a late start", "survives", "visit")
	log.Info("waits")
	starts.End("a", true)
	log.Warn("exited")
	want("its end", "survives", "visit", "waits", "exited")
	starts.Begin("a")
	starts.End("a", true)
	log.Error("leaks")
	log.Warn("again")
	want("an error after a check that has failed", "survives", "visit", "waits", "exited", "leaks")
}

// A log that is on no terminal has all lines.
func TestLogWithoutATerminal(t *testing.T) {
	var none *Starts
	log := slog.New(slog.DiscardHandler)
	none.Begin("a")
	none.Late("a")
	none.End("a", true)
	none.Forget()
	ssetest.Want(t, "the logger", none.Logger(log), log)
}
