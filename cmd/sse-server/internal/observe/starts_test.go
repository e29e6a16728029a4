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

	starts.End("b", true)
	starts.Begin("a")
	starts.Forget()
	ofB.Info("exited")
	ofA.Info("exited")
	level.Set(slog.LevelDebug)
	ofA.Info("stderr")
	starts.End("a", false)
	ssetest.Want(t, "of a new configuration, and at level debug", said(), "exited b\nstderr a\nexited a\n")
}

// A log that is on no terminal has all lines.
func TestLogWithoutATerminal(t *testing.T) {
	var none *Starts
	log := slog.New(slog.DiscardHandler)
	none.Begin("a")
	none.End("a", true)
	none.Forget()
	ssetest.Want(t, "the logger", none.Logger(log), log)
}
