package exchange

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// blocks reads a whole stream.
func blocks(t *testing.T, in io.Reader, limit int) []Event {
	t.Helper()
	r := NewEventReader(in, limit, Cursor{})
	var all []Event
	for {
		e, err := r.Read()
		if errors.Is(err, io.EOF) || errors.Is(err, jsonrpc.ErrTooLong) {
			return all
		}
		ssetest.Must(t, err)
		all = append(all, e)
	}
}

func sameEvent(a, b Event) bool {
	return a.Name == b.Name && string(a.Data) == string(b.Data) && a.id == b.id && a.retry == b.retry
}

func TestEventsAreReadAsTheStandardSays(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []Event
	}{
		{"nothing", "", nil},
		{"named", "event: message\ndata: {}\n\n", []Event{{Name: "message", Data: []byte("{}")}}},
		{"unnamed", "data: {}\n\n", []Event{{Data: []byte("{}")}}},
		{"one space only is taken off", "data:  x\n\ndata:y\n\n", []Event{{Data: []byte(" x")}, {Data: []byte("y")}}},
		{"lines of data are joined", "data: {\ndata: }\n\n", []Event{{Data: []byte("{\n}")}}},
		{"CR LF", "event: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", []Event{{Name: "a", Data: []byte("b")}, {Data: []byte("c")}}},
		{"CR", "event: a\rdata: b\r\rdata: c\r\r", []Event{{Name: "a", Data: []byte("b")}, {Data: []byte("c")}}},
		{"mixed ends", "data: a\r\n\ndata: b\n\r\n", []Event{{Data: []byte("a")}, {Data: []byte("b")}}},
		{"comments", ": hello\n\n:\n\n: x\ndata: a\n: y\n\n", []Event{{Data: []byte("a")}}},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []Event{{Data: []byte("a")}}},
		{"priming event", "id: 9\ndata: \n\n", []Event{{id: "9"}}},
		{"only an id", "id: 9\n\n", []Event{{id: "9"}}},
		{"the id stays", "id: 9\ndata: a\n\ndata: b\n\n", []Event{{id: "9", Data: []byte("a")}, {id: "9", Data: []byte("b")}}},
		{"an empty id takes it away", "id: 9\ndata: a\n\nid\ndata: b\n\n", []Event{{id: "9", Data: []byte("a")}, {Data: []byte("b")}}},
		{"an id that is no header", "id: 9\n\nid: a\x00b\ndata: b\n\n", []Event{{id: "9"}, {id: "9", Data: []byte("b")}}},
		{"retry", "retry: 250\ndata: a\n\n", []Event{{Data: []byte("a"), retry: 250 * time.Millisecond}}},
		{"retry by itself", "retry: 1\n\n", []Event{{retry: time.Millisecond}}},
		{"retry at once", "retry: 0\n\n", []Event{{retry: time.Millisecond}}},
		{"retry for ever", "retry: 99999999999999\n\nretry: 900000\n\n", []Event{{retry: maxRetry}, {retry: maxRetry}}},
		{"no retry", "retry: 1s\ndata: a\n\nretry: -1\n\nretry:\n\n", []Event{{Data: []byte("a")}, {}, {}}},
		{"retry counts before its block is whole", "id: 3\ndata: a\n\nretry: 7\nid: 4\ndata: b\n", []Event{{id: "3", Data: []byte("a")}, {id: "3", retry: 7 * time.Millisecond}}},
		{"unknown fields", "foo: bar\ndata\nbaz\n\n", []Event{{}}},
		{"what is cut off is dropped", "data: a\n\ndata: {\"half\":", []Event{{Data: []byte("a")}}},
		{"without its empty line too", "data: a\n\nid: 7\ndata: {}\n", []Event{{Data: []byte("a")}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for way, in := range map[string]io.Reader{
				"whole": strings.NewReader(tt.in), "by byte": iotest.OneByteReader(strings.NewReader(tt.in)),
			} {
				if got := blocks(t, in, 1<<10); !slices.EqualFunc(got, tt.want, sameEvent) {
					t.Errorf("%s: got %+v, want %+v", way, got, tt.want)
				}
			}
		})
	}
}

// An event over the limit ends the reading.
func TestEventsAreBounded(t *testing.T) {
	const limit = 100
	fits := strings.Repeat("x", limit)
	for name, long := range map[string]string{
		"one line":   "data: " + fits + "x\n",
		"many lines": strings.Repeat("data: 123456789\n", 11),
		"far over":   "data: " + strings.Repeat("x", 100*limit),
		"a comment":  ":" + strings.Repeat("x", 100*limit),
	} {
		t.Run(name, func(t *testing.T) {
			in := "data: " + fits + "\n\n" + long
			for _, in := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in))} {
				r := NewEventReader(in, limit, Cursor{})
				if e, err := r.Read(); err != nil || string(e.Data) != fits {
					t.Errorf("got %+v, %v", e, err)
				}
				if e, err := r.Read(); !errors.Is(err, jsonrpc.ErrTooLong) {
					t.Errorf("over the limit: %+v, %v", e, err)
				}
			}
		})
	}
}

func TestLongFieldsAreIgnored(t *testing.T) {
	long := strings.Repeat("x", 2*maxEventField)
	got := blocks(t, strings.NewReader("id: 1\n\nid: "+long+"\nevent: "+long+"\ndata: a\n\n"), 1<<20)
	want := []Event{{id: "1"}, {id: "1", Name: "too long", Data: []byte("a")}}
	if !slices.EqualFunc(got, want, sameEvent) {
		t.Errorf("got %d events %.300v, want %v", len(got), got, want)
	}
}

// A line that ends with CR must not wait for the byte after it: there may be none
// for hours.
func TestEventThatEndsWithCRIsReadAtOnce(t *testing.T) {
	pr, pw := io.Pipe()
	defer pr.Close()
	go func() { _, _ = pw.Write([]byte("data: a\r\r")) }() // ends with pr
	e, err := NewEventReader(pr, 100, Cursor{}).Read()
	if err != nil || string(e.Data) != "a" {
		t.Errorf("got %+v, %v", e, err)
	}
}

// FuzzEvents checks that a stream means the same however it is cut into reads,
// that nothing exceeds its limit, and that what is written as an event comes back.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("id: 1\r\nevent: message\r\ndata: {}\r\n\r\nretry: 3\n\n"))
	f.Add([]byte("\xef\xbb\xbf: c\rdata: a\rdata: b\r\rdata:" + strings.Repeat("x", 70) + "\n\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		const limit = 64
		whole := blocks(t, strings.NewReader(string(in)), limit)
		bytewise := blocks(t, iotest.OneByteReader(strings.NewReader(string(in))), limit)
		if !slices.EqualFunc(whole, bytewise, sameEvent) {
			t.Errorf("read at once %+v, by byte %+v", whole, bytewise)
		}
		for _, e := range whole {
			if len(e.Data) > limit || len(e.id) > maxEventField || len(e.Name) > maxEventField || e.retry > maxRetry {
				t.Errorf("over the limit: %+v", e)
			}
			if strings.ContainsFunc(e.id, unsendable) {
				t.Errorf("id %q cannot be sent back", e.id)
			}
		}
	})
}

// An event with a name of its own may have what others wrote, such as a page: it answers nothing.
func TestEventsOfOtherNamesAnswerNothing(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":2,"result":{}}`
	for name, want := range map[string]bool{"": true, "message": true, "result": true, "mcp-response": true, "error": true, "page": false, "log": false, "search-result": false,
		"alice": false, "Message": false, "ping": false} {
		ssetest.Want(t, "event "+name+" is a message", Event{Name: name, Data: []byte(answer)}.IsMessage(), want)
	}
	ssetest.Want(t, "a request named result is a message", Event{Name: "result", Data: []byte(`{"jsonrpc":"2.0","id":2,"method":"elicitation/create"}`)}.IsMessage(), false)
}
