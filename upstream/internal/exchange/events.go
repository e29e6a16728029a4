package exchange

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"time"
)

const (
	// eventBuffer is the size of the read buffer of an event stream.
	eventBuffer = 4 << 10
	// maxEventField bounds the name and the id of an event; longer ones are
	// ignored.
	maxEventField = 1 << 10
	// maxRetry is the longest pause before a reconnection that a server may ask
	// for. What it asks beyond that is cut.
	maxRetry = 5 * time.Minute
)

// Event is one block of an event stream (WHATWG HTML, section 9.2).
type Event struct {
	Name string
	Data []byte // nil when there is none; its reader's own
	// id is the last event id of the stream, which may stem from an earlier block.
	id string
	// retry is the pause before a reconnection that the block asks for; 0: none.
	retry time.Duration
	// tooLong: data was over the limit and is dropped.
	TooLong bool
}

// EventReader reads an event stream. The data of one event is bounded, and so is
// all that is kept of a line.
type EventReader struct {
	in    *bufio.Reader
	limit int

	id    string // of the last block
	next  Event  // the block that is being read
	some  bool   // it has a field
	lines int    // it has so many lines of data
	buf   []byte // a line that did not come in one piece
	feed  bool   // the line feed of a CR LF may still come
	begun bool   // a byte order mark can stand at the begin only
}

// NewEventReader returns a reader of r that takes at most limit bytes of data in one event.
func NewEventReader(r io.Reader, limit int) *EventReader {
	return &EventReader{in: bufio.NewReaderSize(r, eventBuffer), limit: limit}
}

// Read returns the next block that has a field. The error is io.EOF or the
// reader's own; of a block that the end of the stream cut off it drops all but the
// pause it asks for, because its message may be half of one.
func (r *EventReader) Read() (Event, error) {
	for {
		line, cut, err := r.line()
		switch {
		case err != nil && r.next.retry > 0:
			e := Event{id: r.id, retry: r.next.retry}
			r.next = Event{}
			return e, nil
		case err != nil:
			return Event{}, err
		case len(line) > 0:
			r.field(line, cut)
		case r.some:
			return r.take(), nil
		}
	}
}

// take returns the block that was read, and begins the next one.
func (r *EventReader) take() Event {
	e := r.next
	r.id = e.id
	r.next, r.some, r.lines = Event{id: e.id}, false, 0
	return e
}

// line returns the next line without its end, valid until the next call. Of one
// that is longer than the data of an event may be, it returns the begin.
func (r *EventReader) line() (line []byte, cut bool, err error) {
	max := r.limit + len("data: ")
	r.buf = r.buf[:0]
	if cap(r.buf) > 16*eventBuffer {
		r.buf = nil // one large message must not stay with a quiet stream
	}
	for {
		part, end, err := r.piece()
		if err != nil {
			return nil, false, err
		}
		if len(r.buf)+len(part) > max {
			part, cut = part[:max-len(r.buf)], true
		}
		if end && len(r.buf) == 0 {
			return part, cut, nil
		}
		r.buf = append(r.buf, part...)
		if end {
			return r.buf, cut, nil
		}
	}
}

// piece returns what has been read of the current line, and whether that is its
// end. Lines end with LF, CR or CR LF. A line that ends with CR is whole before
// the byte after it has come.
func (r *EventReader) piece() (part []byte, end bool, err error) {
	if _, err := r.in.Peek(1); err != nil {
		return nil, false, err
	}
	part, _ = r.in.Peek(r.in.Buffered()) // of what is buffered: cannot fail
	if r.feed && part[0] == '\n' {
		r.feed = false
		_, _ = r.in.Discard(1)
		return nil, false, nil
	}
	r.feed = false
	if i := bytes.IndexByte(part, '\n'); i >= 0 {
		part, end = part[:i], true
	}
	if i := bytes.IndexByte(part, '\r'); i >= 0 {
		part, end, r.feed = part[:i], true, true
	}
	used := len(part)
	if end {
		used++
	}
	_, _ = r.in.Discard(used)
	return part, end, nil
}

// field adds a line to the current block. One that was cut is known by its begin.
func (r *EventReader) field(line []byte, cut bool) {
	if !r.begun {
		r.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	long := cut || len(value) > maxEventField
	switch string(name) {
	case "data":
		r.data(value, cut)
	case "event":
		if r.next.Name = string(value); long {
			r.next.Name = "too long"
		}
	case "id":
		if long || !validEventID(value) {
			return
		}
		r.next.id = string(value)
	case "retry":
		r.retry(value)
	default:
		return // a comment, or a field that is not known
	}
	r.some = true
}

func (r *EventReader) data(value []byte, cut bool) {
	r.lines++
	if r.lines > 1 && !r.next.TooLong {
		r.next.Data = append(r.next.Data, '\n')
	}
	if cut || len(r.next.Data)+len(value) > r.limit {
		r.next.TooLong = true
	}
	if r.next.TooLong {
		r.next.Data = nil
		return
	}
	r.next.Data = append(r.next.Data, value...)
}

func (r *EventReader) retry(value []byte) {
	for _, c := range value {
		if c < '0' || c > '9' {
			return
		}
	}
	if ms, err := strconv.ParseInt(string(value), 10, 32); err == nil {
		r.next.retry = min(max(time.Duration(ms)*time.Millisecond, time.Millisecond), maxRetry)
	} else if len(value) > 0 {
		r.next.retry = maxRetry
	}
}

// validEventID reports whether an id can be sent back as a header.
func validEventID(id []byte) bool {
	for _, c := range id {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}
