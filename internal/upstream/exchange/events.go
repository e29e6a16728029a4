package exchange

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	// eventBuffer is the size of the read buffer of an event stream.
	eventBuffer = 4 << 10
	// maxEventField bounds the name and the id of an event, in bytes. Longer ones are
	// ignored.
	maxEventField = 1 << 10
	// maxRetry is the longest pause before a reconnection. A server that asks for
	// more gets this one.
	maxRetry = 5 * time.Minute
)

// Event is one block of an event stream (WHATWG HTML, section 9.2).
type Event struct {
	Name  string
	Data  []byte // belongs to the caller; nil: there is none
	id    string // the last event id of the stream, perhaps of an earlier block
	retry time.Duration
}

// responseNames are what servers call an event with a response, which should be "message". An event of
// any other name may have what others wrote, such as a page that the server has read.
var responseNames = []string{"result", "response", "answer", "reply", "error", "mcp-response", "mcp-result"}

// IsMessage reports whether the event carries a JSON-RPC message. Servers name such
// events "message" or not at all; some name one with a response otherwise.
func (e Event) IsMessage() bool {
	return len(e.Data) > 0 && (e.Name == "" || e.Name == "message" ||
		slices.Contains(responseNames, e.Name) && isResponse(e.Data))
}

func isResponse(data []byte) bool {
	m, err := jsonrpc.Parse(data)
	return err == nil && m.Kind == jsonrpc.Response
}

// Cursor is how far an event stream has been read. The zero Cursor is its beginning.
type Cursor struct {
	LastID string        // the id of the last event; empty: the stream cannot be resumed
	Retry  time.Duration // the pause before a reconnection that the server last asked for; 0: none
}

// EventReader reads an event stream. One goroutine uses it.
type EventReader struct {
	Cursor Cursor // after the event that Read returned last

	in    *bufio.Reader
	limit int
	next  Event  // the block being read
	some  bool   // the block has a field
	lines int    // lines of data in the block
	buf   []byte // a line that came in several pieces
	feed  bool   // the line feed of a CR LF may follow
	begun bool   // a byte order mark cannot follow
}

// NewEventReader returns a reader of a stream that goes on at a cursor. An event has
// at most limit bytes of data.
func NewEventReader(r io.Reader, limit int, at Cursor) *EventReader {
	return &EventReader{in: bufio.NewReaderSize(r, eventBuffer), limit: limit, Cursor: at, next: Event{id: at.LastID}}
}

// Read returns the next block that has a field. The error is io.EOF, that of the
// underlying reader, or jsonrpc.ErrTooLong, after which the stream cannot be read any
// further. Read drops a block that the end of the stream cuts off, because its message
// may be incomplete, but keeps the pause that it asks for, and a response that is whole:
// some servers leave out the last blank line, or end before they have sent it.
func (r *EventReader) Read() (Event, error) {
	for {
		line, err := r.line()
		switch {
		case errors.Is(err, jsonrpc.ErrTooLong):
			return Event{}, err
		case err != nil && r.endsWhole():
			return r.endBlock(r.next), nil
		case err != nil && r.next.retry > 0:
			return r.endBlock(Event{id: r.Cursor.LastID, retry: r.next.retry}), nil
		case err != nil:
			return Event{}, err
		case len(line) == 0 && r.some:
			return r.endBlock(r.next), nil
		}
		if r.field(line); len(r.next.Data) > r.limit {
			return Event{}, jsonrpc.ErrTooLong
		}
	}
}

// endsWhole reports whether the block that the end of the stream, or its break, cuts off has a
// whole response. The last line may lack its end, too.
func (r *EventReader) endsWhole() bool {
	if len(r.buf) > 0 {
		r.field(r.buf)
		r.buf = r.buf[:0]
	}
	return len(r.next.Data) <= r.limit && isResponse(r.next.Data)
}

// endBlock begins the next block and returns e, which ends the current one.
func (r *EventReader) endBlock(e Event) Event {
	r.Cursor.LastID = e.id
	if e.retry > 0 {
		r.Cursor.Retry = e.retry
	}
	r.next, r.some, r.lines = Event{id: e.id}, false, 0
	return e
}

// line returns the next line without its end, valid until the next call.
func (r *EventReader) line() ([]byte, error) {
	r.buf = r.buf[:0]
	if cap(r.buf) > 16*eventBuffer {
		r.buf = nil // a quiet stream must not keep the memory of one large message
	}
	for {
		part, end, err := r.piece()
		switch {
		case err != nil:
			return nil, err
		case len(r.buf)+len(part) > r.limit+len("data: "):
			return nil, jsonrpc.ErrTooLong
		case end && len(r.buf) == 0:
			return part, nil
		}
		r.buf = append(r.buf, part...)
		if end {
			return r.buf, nil
		}
	}
}

// piece returns what has come of the current line, and whether the line ends there.
// Lines end with LF, CR or CR LF. piece does not wait for a byte after a CR.
func (r *EventReader) piece() (part []byte, end bool, err error) {
	if _, err := r.in.Peek(1); err != nil {
		return nil, false, err
	}
	part, _ = r.in.Peek(r.in.Buffered()) // these bytes are there: it cannot fail
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

// field adds a line to the current block.
func (r *EventReader) field(line []byte) {
	if !r.begun {
		r.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	long := len(value) > maxEventField
	switch string(name) {
	case "data":
		r.lines++
		if r.lines > 1 {
			r.next.Data = append(r.next.Data, '\n')
		}
		r.next.Data = append(r.next.Data, value...)
	case "event":
		r.next.Name = string(value)
		if long {
			r.next.Name = "too long"
		}
	case "id":
		if long || bytes.ContainsFunc(value, unsendable) {
			return
		}
		r.next.id = string(value)
	case "retry":
		r.retry(value)
	default:
		return // a comment, or an unknown field
	}
	r.some = true
}

func (r *EventReader) retry(value []byte) {
	ms, err := strconv.ParseUint(string(value), 10, 31)
	if err == nil || errors.Is(err, strconv.ErrRange) { // then ms is over maxRetry
		r.next.retry = min(max(time.Duration(ms)*time.Millisecond, time.Millisecond), maxRetry)
	}
}

// unsendable reports whether no header can have c.
func unsendable(c rune) bool { return c < ' ' || c == 0x7f }
