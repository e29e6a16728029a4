package sse_test

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"
)

// event is one block of a stream. A comment has a name of ":" and its text as
// data.
type event struct {
	id, name, data, retry string
	lines                 int // data lines
}

// readEvent reads one block, strictly: a line that we never send is an error.
func readEvent(r *bufio.Reader) (event, error) {
	var e event
	for first := true; ; first = false {
		line, err := r.ReadString('\n')
		if err != nil {
			if !first && err == io.EOF {
				return e, io.ErrUnexpectedEOF
			}
			return e, err
		}
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			if first {
				return e, fmt.Errorf("an empty block")
			}
			return e, nil
		}
		field, value, ok := strings.Cut(line, ": ")
		if !ok {
			return e, fmt.Errorf("line %q has no field", line)
		}
		switch field {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "retry":
			e.retry = value
		case "data":
			e.data = value
			e.lines++
		case "":
			e.name, e.data = ":", value
		default:
			return e, fmt.Errorf("line %q has an unknown field", line)
		}
	}
}

// parse reads all blocks of a finished text.
func parse(t testing.TB, text string) []event {
	t.Helper()
	r := bufio.NewReader(strings.NewReader(text))
	var events []event
	for {
		e, err := readEvent(r)
		if err == io.EOF {
			return events
		}
		if err != nil {
			t.Fatalf("event %d: %v\nin %q", len(events), err, text)
		}
		events = append(events, e)
	}
}

// names are the event names, in order.
func names(events []event) string {
	var out []string
	for _, e := range events {
		out = append(out, e.name)
	}
	return strings.Join(out, " ")
}
