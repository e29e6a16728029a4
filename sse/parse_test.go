package sse_test

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// event is one block of a stream.
type event = ssetest.Event

// parse reads all blocks of a finished text.
func parse(t testing.TB, text string) []event {
	t.Helper()
	r := bufio.NewReader(strings.NewReader(text))
	var events []event
	for {
		e, err := ssetest.Read(r)
		if err == io.EOF {
			return events
		}
		if err != nil {
			t.Fatalf("event %d: %v\nin %q", len(events), err, text)
		}
		events = append(events, e)
	}
}

// names returns the event names, in order, and ":" for a comment.
func names(events []event) string {
	var out []string
	for _, e := range events {
		name := e.Name
		if e.IsComment() {
			name = ":"
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}
