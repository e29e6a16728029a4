package httpanswer

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// state is what of an answer has been written.
type state uint8

const (
	unwritten state = iota
	begun           // a stream of events, whose head the next Flush writes
	streaming       // its head is written
	whole           // as JSON
)

// Writer writes the answer to one request: JSON, or a stream of events. One goroutine may use
// it at a time; End may be called at any time.
type Writer struct {
	w        http.ResponseWriter
	deadline Deadline
	form     Form
	state    state
	buf      []byte // events that the next Flush writes
	err      error
}

// New returns the Writer of the answer to r. A client may take timeout to read 64 KiB; 0:
// DefaultTimeout. The answer may come later than the write timeout of the http.Server allows,
// which counts from the request.
func New(w http.ResponseWriter, r *http.Request, form Form, timeout time.Duration) *Writer {
	a := &Writer{w: w, form: form}
	a.deadline.init(w, r, timeout)
	if a.deadline.strict { // else the first write sets another one
		_ = a.deadline.control.SetWriteDeadline(time.Time{})
	}
	return a
}

// WriteJSON answers a request with JSON. A client that is gone needs no answer.
func WriteJSON(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	_ = New(w, r, FormJSON, 0).JSON(status, body)
}

// WriteValue is WriteJSON with a value.
func WriteValue(w http.ResponseWriter, r *http.Request, status int, v any) {
	New(w, r, FormJSON, 0).Value(status, v)
}

// Header returns the headers that go with the head of the answer.
func (a *Writer) Header() http.Header { return a.w.Header() }

// Form is how the client takes the answer.
func (a *Writer) Form() Form { return a.form }

// CanStream reports whether the answer may be a stream of events, for the client and for the
// ResponseWriter.
func (a *Writer) CanStream() bool { return a.form != FormJSON && CanFlush(a.w) }

// Streams reports whether the answer is a stream of events.
func (a *Writer) Streams() bool { return a.state == begun || a.state == streaming }

// Written reports whether a part of the answer has been written.
func (a *Writer) Written() bool { return a.state == streaming || a.state == whole }

// Err returns the error of a write: the client is gone, or does not read.
func (a *Writer) Err() error { return a.err }

// Begin makes the answer a stream of events, whose head the next Flush writes. It reports false
// if it cannot be one. The read timeout of the http.Server is for requests that end, so Begin
// lifts it.
func (a *Writer) Begin() bool {
	if a.state == unwritten && a.CanStream() {
		a.state = begun
		_ = a.deadline.control.SetReadDeadline(time.Time{}) // not every ResponseWriter has deadlines
		SetStreamHeader(a.w.Header())
		a.w.WriteHeader(http.StatusOK)
	}
	return a.Streams()
}

// SetStreamHeader sets the headers of a stream of events.
func SetStreamHeader(header http.Header) {
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no")
}

// Message adds an event named message, and begins the stream; without one there is no event.
// An empty id gives the event none. Data without bytes primes the client: it remembers the id
// and sees no event.
func (a *Writer) Message(id string, data []byte) {
	if !a.Begin() {
		return
	}
	if id != "" {
		a.buf = append(append(append(a.buf, "id: "...), id...), '\n')
	}
	if len(data) > 0 {
		a.buf = append(a.buf, "event: message\n"...)
	}
	a.buf = append(append(a.buf, "data: "...), Line(data)...)
	a.buf = append(a.buf, "\n\n"...)
}

// Retry adds the time for which the client is to wait before it reconnects to a stream that
// has begun. It belongs to the event that follows.
func (a *Writer) Retry(wait time.Duration) {
	a.buf = strconv.AppendInt(append(a.buf, "retry: "...), wait.Milliseconds(), 10)
	a.buf = append(a.buf, '\n')
}

// Comment adds a comment, which clients skip, to a stream that has begun.
func (a *Writer) Comment(text string) {
	a.buf = append(append(append(a.buf, ": "...), text...), "\n\n"...)
}

// Heartbeat shows the client, and what is between, that a stream that has begun is alive.
func (a *Writer) Heartbeat() error {
	a.Comment("heartbeat")
	return a.Flush()
}

// Flush writes what was added to a stream. With an error the answer is over; ErrOver says that
// End had ended it before.
func (a *Writer) Flush() error {
	if a.err != nil || a.state != begun && len(a.buf) == 0 {
		return a.err
	}
	data := a.buf
	a.buf = nil
	_, a.err = a.deadline.Write(a.w, data, nil)
	if a.err != ErrOver {
		a.state = streaming
	}
	return a.err
}

// Answer writes the message that the request gets, and ends the answer. It is the last event
// of a stream, or JSON with that status. A client that wants a stream gets one if the status
// is 200: others would be lost.
func (a *Writer) Answer(status int, message []byte) error {
	if a.form == FormEvents && status == http.StatusOK {
		a.Begin()
	}
	if !a.Streams() {
		return a.JSON(status, message)
	}
	defer a.End()
	a.Message("", message)
	return a.Flush()
}

// JSON writes an answer as JSON, which is all of it.
func (a *Writer) JSON(status int, body []byte) error {
	header, values := a.w.Header(), []string{"application/json", "no-store", "nosniff", strconv.Itoa(len(body))}
	for i, name := range []string{"Content-Type", "Cache-Control", "X-Content-Type-Options", "Content-Length"} {
		header[name] = values[i : i+1 : i+1]
	}
	a.w.WriteHeader(status)
	a.state = whole
	_, a.err = a.deadline.Write(a.w, body, nil)
	return a.err
}

// Value writes a value as JSON, which is all of the answer. A client that is gone needs none.
func (a *Writer) Value(status int, v any) {
	body, _ := json.Marshal(v) // the values are of types of the gateway's own
	_ = a.JSON(status, append(body, '\n'))
}

// End ends a stream: it makes a write that is under way return, allows no other, and gives
// net/http the time of one write to end the body in order.
func (a *Writer) End() { a.deadline.Expire() }

// Line puts data on one line that no client takes for a comment. In JSON line breaks only
// stand between tokens, so a space is as good.
func Line(data []byte) []byte {
	if len(data) == 0 || data[0] != ':' && bytes.IndexByte(data, '\n') < 0 && bytes.IndexByte(data, '\r') < 0 {
		return data
	}
	out := make([]byte, 0, len(data)+1)
	if data[0] == ':' {
		out = append(out, ' ')
	}
	for _, c := range data {
		if c == '\n' || c == '\r' {
			c = ' '
		}
		out = append(out, c)
	}
	return out
}
