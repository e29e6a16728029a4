package httpanswer

import (
	"cmp"
	"errors"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
)

// Deadline bounds the writes to one client. Not every ResponseWriter has deadlines;
// without them, only a full queue ends a stalled client. Its methods are safe for
// concurrent use.
type Deadline struct {
	control *http.ResponseController
	timeout time.Duration
	// strict: it must stand only while something is written. On HTTP/2 a
	// deadline that passes ends the stream, also an idle one.
	strict bool

	mu      sync.Mutex // guards what follows
	armed   time.Time  // when the deadline was last set
	writing bool
	over    bool
}

// DefaultTimeout is how long a client may take to read 64 KiB where no option says it.
const DefaultTimeout = 10 * time.Second

// NewDeadline returns the deadline of the response to r, each of whose writes may take
// timeout; 0: DefaultTimeout.
func NewDeadline(w http.ResponseWriter, r *http.Request, timeout time.Duration) *Deadline {
	d := new(Deadline)
	d.init(w, r, timeout)
	return d
}

func (d *Deadline) init(w http.ResponseWriter, r *http.Request, timeout time.Duration) {
	d.control, d.timeout = http.NewResponseController(w), cmp.Or(timeout, DefaultTimeout)
	d.strict = r.ProtoMajor >= 2
}

// beginWrite bounds the write that follows. It reports false when the stream is over and
// nothing may be written any more. It keeps a deadline that is almost as far away
// as a new one: writes come in thousands, and each would pay for a new one.
func (d *Deadline) beginWrite() bool {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return false
	}
	d.writing = true
	if d.strict || now.Sub(d.armed) >= d.timeout/8 {
		d.armed = now
		_ = d.control.SetWriteDeadline(now.Add(d.timeout))
	}
	return true
}

// endWrite takes the error of the write and returns the reason to close the connection;
// "" after a write that succeeded.
func (d *Deadline) endWrite(err error) (reason connstate.Reason) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writing = false
	switch {
	case err == nil:
		if d.strict && !d.over {
			_ = d.control.SetWriteDeadline(time.Time{})
		}
		return ""
	case !time.Now().Before(d.armed.Add(d.timeout)):
		return connstate.ClosedWriteTimeout
	case d.strict, errors.Is(err, os.ErrDeadlineExceeded): // the stream is no more, or Expire was called
		return connstate.ClosedClient
	}
	return connstate.ClosedWriteError
}

// chunkBytes is how much a client must take within the timeout of a Deadline.
const chunkBytes = 64 << 10

// Write writes and flushes data, and flushes if there is none. Each 64 KiB have the time of
// one write, so that a client that reads steadily gets data of any size. Write calls wrote,
// which may be nil, after each of them. With an error it returns the reason to close the
// connection; after Expire it fails with ErrOver and no reason.
func (d *Deadline) Write(w http.ResponseWriter, data []byte, wrote func()) (reason connstate.Reason, err error) {
	for first := true; err == nil && (first || len(data) > 0); first = false {
		if !d.beginWrite() {
			return "", ErrOver
		}
		chunk := data[:min(len(data), chunkBytes)]
		data = data[len(chunk):]
		_, err = w.Write(chunk)
		if err == nil {
			err = d.control.Flush()
			if errors.Is(err, http.ErrNotSupported) {
				err = nil
			}
		}
		reason = d.endWrite(err)
		if err == nil && wrote != nil {
			wrote()
		}
	}
	return reason, err
}

// ErrOver reports that a response had been ended when something was to be written.
var ErrOver = errors.New("the response is over")

// Expire ends the stream: it makes a write that is under way return, and allows no
// other. If no write is under way, net/http gets the time of one write to end the
// body in order.
func (d *Deadline) Expire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return // the ResponseWriter may be another request's by now
	}
	d.over = true
	until := time.Now().Add(d.timeout)
	if d.writing {
		until = time.Unix(1, 0) // past: the write returns at once
	}
	_ = d.control.SetWriteDeadline(until)
}
