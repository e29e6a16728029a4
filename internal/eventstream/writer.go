package eventstream

import (
	"bytes"
	"net/http"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
)

// Writer writes one stream. Its methods may be called by one goroutine at a time;
// Expire at any time.
type Writer struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	deadline *httpcheck.Deadline
	buf      []byte
}

// NewWriter returns a Writer for the response to r. A client may take timeout to read
// 64 KiB.
func NewWriter(w http.ResponseWriter, r *http.Request, timeout time.Duration) *Writer {
	control := http.NewResponseController(w)
	return &Writer{w: w, control: control, deadline: httpcheck.NewDeadline(control, timeout, r)}
}

// Begin sets the head of the stream, which the first Flush sends. The server's own
// deadlines are for requests that end, so Begin lifts the one for reading.
func (w *Writer) Begin() {
	_ = w.control.SetReadDeadline(time.Time{}) // not every ResponseWriter has deadlines
	header := w.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no")
	w.w.WriteHeader(http.StatusOK)
}

// Message adds an event named message. An empty id gives the event none. Data without
// bytes primes the client: it remembers the id and sees no event.
func (w *Writer) Message(id string, data []byte) {
	if id != "" {
		w.buf = append(append(append(w.buf, "id: "...), id...), '\n')
	}
	if len(data) > 0 {
		w.buf = append(w.buf, "event: message\n"...)
	}
	w.buf = append(append(w.buf, "data: "...), Line(data)...)
	w.buf = append(w.buf, "\n\n"...)
}

// Retry adds the time for which the client is to wait before it reconnects. It belongs
// to the event that follows.
func (w *Writer) Retry(wait time.Duration) {
	w.buf = strconv.AppendInt(append(w.buf, "retry: "...), wait.Milliseconds(), 10)
	w.buf = append(w.buf, '\n')
}

// Comment adds a comment, which clients skip.
func (w *Writer) Comment(text string) {
	w.buf = append(append(append(w.buf, ": "...), text...), "\n\n"...)
}

// Buffered returns the number of bytes that the next Flush writes.
func (w *Writer) Buffered() int { return len(w.buf) }

// Flush writes what was added. With an error the stream is over; httpcheck.ErrOver says that
// Expire had ended it before.
func (w *Writer) Flush() error {
	data := w.buf
	w.buf = nil
	_, err := w.deadline.Write(w.w, data, nil)
	return err
}

// Expire ends the stream: it makes a write that is under way return, and allows no
// other.
func (w *Writer) Expire() { w.deadline.Expire() }

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
