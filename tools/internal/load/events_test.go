package load_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/tools/internal/load"
)

func TestEvents(t *testing.T) {
	for in, want := range map[string][][2]string{
		"id: 1\ndata: b\nevent: a\nretry: 5\n\ndata: 2\n\n": {{"a", "b"}, {"", "2"}},
		"data: a\ndata\ndata: b\n\n":                        {{"", "a\n\nb"}},
		"event: a\n\ndata: 2\n\n":                           {{"", "2"}},
		"event: a\ndata:\n\n":                               nil,
		": x\n\n:\ndata:  a:b \n: y\n\n":                    {{"", " a:b "}},
		"event: a\rdata: b\r\rdata: c\r\r":                  {{"a", "b"}, {"", "c"}},
		"event: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n":        {{"a", "b"}, {"", "c"}},
		"\uFEFFdata: a\n\n\uFEFFdata: b\n\ndata: c\n":       {{"", "a"}},
	} {
		got, err := load.Events(strings.NewReader(in), 100)
		if !slices.Equal(got, want) || err != io.EOF {
			t.Errorf("events of %q = %q, %v, want %q, EOF", in, got, err, want)
		}
	}
}

// endless never ends a line.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	return copy(p, strings.Repeat("x", len(p))), nil
}

func TestEndlessEventsAreBounded(t *testing.T) {
	line := &endless{}
	for _, in := range []io.Reader{line, strings.NewReader(strings.Repeat("data: 0123456789\n", 20_000))} {
		if _, err := load.Events(in, 100_000); !errors.Is(err, load.ErrEventTooLong) || line.read > 110_000 {
			t.Errorf("got %v after %d bytes, want %v", err, line.read, load.ErrEventTooLong)
		}
	}
}
