package load_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mcp-sse/mcp-sse/tools/internal/load"
)

func TestEvents(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want [][2]string
	}{
		"Named":            {"event: a\ndata: b\n\n", [][2]string{{"a", "b"}}},
		"Unnamed":          {"data:b\n\n", [][2]string{{"", "b"}}},
		"NameAfterData":    {"id: 1\ndata: b\nevent: a\nretry: 5\n\n", [][2]string{{"a", "b"}}},
		"SeveralLines":     {"data: a\ndata\ndata: b\n\n", [][2]string{{"", "a\n\nb"}}},
		"NameIsForOne":     {"event: a\ndata: 1\n\ndata: 2\n\n", [][2]string{{"a", "1"}, {"", "2"}}},
		"NameWithoutData":  {"event: a\n\ndata: 2\n\n", [][2]string{{"", "2"}}},
		"EmptyData":        {"event: a\ndata:\n\n", nil},
		"Comments":         {": x\n\n:\ndata: a\n: y\n\n", [][2]string{{"", "a"}}},
		"ColonInTheValue":  {"data:  a:b \n\n", [][2]string{{"", " a:b "}}},
		"CarriageReturns":  {"event: a\rdata: b\r\rdata: c\r\r", [][2]string{{"a", "b"}, {"", "c"}}},
		"CRLF":             {"event: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", [][2]string{{"a", "b"}, {"", "c"}}},
		"ByteOrderMark":    {"\uFEFFdata: a\n\n\uFEFFdata: b\n\n", [][2]string{{"", "a"}}},
		"CutOff":           {"data: a\n\ndata: b\n", [][2]string{{"", "a"}}},
		"NothingButABreak": {"\n\n\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			for way, in := range map[string]io.Reader{
				"at once": strings.NewReader(c.in), "byte by byte": iotest.OneByteReader(strings.NewReader(c.in)),
			} {
				got, err := load.Events(in, 100)
				if !slices.Equal(got, c.want) || err != io.EOF {
					t.Errorf("%s: events of %q = %q, %v, want %q, EOF", way, c.in, got, err, c.want)
				}
			}
		})
	}
}

// endless never ends a line.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	return copy(p, strings.Repeat("x", len(p))), nil
}

func TestEndlessLineIsBounded(t *testing.T) {
	in := &endless{}
	if _, err := load.Events(in, 100_000); !errors.Is(err, load.ErrEventTooLong) {
		t.Errorf("error = %v, want %v", err, load.ErrEventTooLong)
	}
	if in.read > 110_000 {
		t.Errorf("read %d bytes of a line that may have 100,000", in.read)
	}
}

func TestEndlessEventIsBounded(t *testing.T) {
	in := strings.NewReader(strings.Repeat("data: 0123456789\n", 20))
	if _, err := load.Events(in, 100); !errors.Is(err, load.ErrEventTooLong) {
		t.Errorf("error = %v, want %v", err, load.ErrEventTooLong)
	}
}

func FuzzEvents(f *testing.F) {
	for _, seed := range []string{"event: a\ndata: b\n\n", "\uFEFFdata: a\r\n\r\n", ": c\rdata\rdata:x\r\r", "data: 0123456789012345678901234567890123456789\n\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		const limit = 32
		got, err := load.Events(strings.NewReader(string(in)), limit)
		again, errAgain := load.Events(iotest.OneByteReader(strings.NewReader(string(in))), limit)
		if !slices.Equal(got, again) || !errors.Is(errAgain, err) {
			t.Errorf("events of %q = %q, %v; byte by byte %q, %v", in, got, err, again, errAgain)
		}
		for _, e := range got {
			if e[1] == "" || len(e[1]) > limit {
				t.Errorf("event of %q with %d bytes of data", in, len(e[1]))
			}
		}
	})
}
