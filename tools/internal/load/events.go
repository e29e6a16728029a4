package load

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxEvent bounds a line of a stream, and the data of one event, in bytes.
const maxEvent = 16 << 20

var errEventTooLong = errors.New("event over the size limit")

// event is an event of a stream that has data. Its slices are valid until the next
// event is read.
type event struct {
	name string // empty means "message", as in the standard
	data []byte
}

// eventReader reads an event stream (WHATWG HTML, section 9.2). Lines end with LF,
// CR or CR LF. It skips comments, ids and retry times.
type eventReader struct {
	in    *bufio.Reader
	limit int

	text, data []byte // of the line and the event being read
	feed       bool   // the last line ended with CR: an LF here is part of that
	begun      bool   // the first line has been read; only that may begin with a byte order mark
}

func newEventReader(r io.Reader, limit int) *eventReader {
	return &eventReader{in: bufio.NewReader(r), limit: limit}
}

// next returns the next event that has data. The error is final: the reader's own,
// or errEventTooLong.
func (r *eventReader) next() (event, error) {
	e, some := event{}, false
	r.data = r.data[:0]
	for {
		line, err := r.line()
		if err != nil {
			return event{}, err
		}
		if len(line) == 0 {
			if len(r.data) > 0 {
				e.data = r.data
				return e, nil
			}
			e, some = event{}, false
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			e.name = string(value)
		case "data":
			if len(r.data)+len(value) >= r.limit {
				return event{}, errEventTooLong
			}
			if some {
				r.data = append(r.data, '\n')
			}
			r.data, some = append(r.data, value...), true
		}
	}
}

// line returns the next line without its end.
func (r *eventReader) line() ([]byte, error) {
	r.text = r.text[:0]
	for {
		if _, err := r.in.Peek(1); err != nil {
			return nil, err
		}
		part, _ := r.in.Peek(r.in.Buffered()) // of what is buffered: cannot fail
		if r.feed && part[0] == '\n' {
			r.feed = false
			_, _ = r.in.Discard(1)
			continue
		}
		r.feed = false
		end := bytes.IndexAny(part, "\r\n")
		if end >= 0 {
			part, r.feed = part[:end], part[end] == '\r'
		}
		if len(r.text)+len(part) > r.limit {
			return nil, errEventTooLong
		}
		r.text = append(r.text, part...)
		_, _ = r.in.Discard(len(part)) // of what is buffered: cannot fail
		if end < 0 {
			continue
		}
		_, _ = r.in.Discard(1)
		return r.stripMark(), nil
	}
}

// stripMark returns the line, without the byte order mark if it is the first.
func (r *eventReader) stripMark() []byte {
	if r.begun {
		return r.text
	}
	r.begun = true
	return bytes.TrimPrefix(r.text, []byte("\uFEFF"))
}
