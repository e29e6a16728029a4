package exchange

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/upstream/internal/buffer"
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
	Name string
	Data []byte // belongs to the caller; nil: there is none
	// TooLong is a *jsonrpc.TooLongError if Data was over the limit and is dropped, else
	// nil.
	TooLong error
	id      string // the last event id of the stream, perhaps of an earlier block
	retry   time.Duration
}

// IsMessage reports whether the event carries a JSON-RPC message, which may be over
// the limit. Servers name such events "message" or not at all.
func (e Event) IsMessage() bool {
	return (e.Name == "" || e.Name == "message") && (len(e.Data) > 0 || e.TooLong != nil)
}

// Cursor is how far an event stream has been read. The zero Cursor is its beginning.
type Cursor struct {
	LastID string        // the id of the last event; empty: the stream cannot be resumed
	Retry  time.Duration // the pause before a reconnection that the server last asked for; 0: none
}

// EventReader reads an event stream. It bounds the data of an event and what it
// keeps of a line. One goroutine uses it.
type EventReader struct {
	Cursor Cursor // after the event that Read returned last

	in    *bufio.Reader
	limit int
	held  holds
	next  Event        // the block being read
	some  bool         // the block has a field
	lines int          // lines of data in the block
	long  *buffer.Ends // of the data of the block, if it is over the limit; else nil
	buf   []byte       // a line that came in several pieces
	over  buffer.Ends  // of what line cut off
	busy  bool         // line cut it off because of the budget
	feed  bool         // the line feed of a CR LF may follow
	begun bool         // a byte order mark cannot follow
}

// NewEventReader returns a reader of a stream that goes on at a cursor. An event has
// at most limit bytes of data, which count against held until the next Read. The caller must
// call Release at the end.
func NewEventReader(r io.Reader, limit int, held *budget.Account, at Cursor) *EventReader {
	return &EventReader{
		in: bufio.NewReaderSize(r, eventBuffer), limit: limit, held: newHolds(held),
		Cursor: at, next: Event{id: at.LastID},
	}
}

// holds are the bytes that an EventReader has taken: of a line, of the data of the
// block, and of the data that Read returned last.
type holds struct{ line, block, last budget.Hold }

func newHolds(of *budget.Account) holds {
	return holds{line: budget.NewHold(of), block: budget.NewHold(of)}
}

// Release gives back what has been read.
func (r *EventReader) Release() {
	r.held.line.Release()
	r.held.block.Release()
	r.held.last.Release()
}

// Read returns the next block that has a field. The error is io.EOF or that of the
// underlying reader. Read drops a block that the end of the stream cuts off, because
// its message may be incomplete, but keeps the pause that it asks for.
func (r *EventReader) Read() (Event, error) {
	r.held.last.Release()
	for {
		line, cut, err := r.line()
		switch {
		case err != nil && r.next.retry > 0:
			return r.take(Event{id: r.Cursor.LastID, retry: r.next.retry}), nil
		case err != nil:
			return Event{}, err
		case len(line) > 0:
			r.field(line, cut)
		case r.some:
			if r.long != nil {
				r.next.TooLong = r.long.Error()
			}
			return r.take(r.next), nil
		}
	}
}

// take begins the next block and returns e, which ends the current one.
func (r *EventReader) take(e Event) Event {
	r.Cursor.LastID = e.id
	if e.retry > 0 {
		r.Cursor.Retry = e.retry
	}
	r.next, r.some, r.lines, r.long = Event{id: e.id}, false, 0, nil
	r.held.last = r.held.block.Move()
	return e
}

// line returns the next line without its end, valid until the next call. It cuts a
// line that is longer than the data of an event may be, and keeps the ends of what it
// cuts off in r.over.
func (r *EventReader) line() (line []byte, cut bool, err error) {
	max := r.limit + len("data: ")
	r.buf, r.over, r.busy = r.buf[:0], buffer.Ends{}, false
	r.held.line.Release()
	if cap(r.buf) > 16*eventBuffer {
		r.buf = nil // a quiet stream must not keep the memory of one large message
	}
	for {
		part, end, err := r.piece()
		if err != nil {
			return nil, false, err
		}
		room := max - len(r.buf)
		if r.busy = r.busy || !r.held.line.Grow(min(max, len(r.buf)+len(part))); r.busy {
			room = 0
		}
		if len(part) > room {
			r.over.Add(part[room:])
			part, cut = part[:room], true
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

// field adds a line to the current block. The beginning of a cut line names its
// field.
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
		return // a comment, or an unknown field
	}
	r.some = true
}

func (r *EventReader) data(value []byte, cut bool) {
	r.lines++
	if r.lines > 1 {
		r.add([]byte("\n"))
	}
	r.add(value)
	if cut {
		r.drop()
		r.long.Busy = r.busy
		r.long.Join(&r.over)
	}
}

// add adds a piece to the data of the current block.
func (r *EventReader) add(piece []byte) {
	switch size := len(r.next.Data) + len(piece); {
	case r.long != nil:
	case size > r.limit:
		r.drop()
	case !r.held.block.Grow(size):
		r.drop()
		r.long.Busy = true
	}
	if r.long != nil {
		r.long.Add(piece)
		return
	}
	r.next.Data = append(r.next.Data, piece...)
}

// drop drops the data of the current block but for its ends.
func (r *EventReader) drop() {
	if r.long == nil {
		r.long = &buffer.Ends{}
		r.long.Add(r.next.Data)
		r.next.Data = nil
		r.held.block.Release()
	}
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

// validEventID reports whether an id can be sent as a header.
func validEventID(id []byte) bool {
	for _, c := range id {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}
