package front

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/metrics"
)

const (
	// freeBody is the length up to which a body takes nothing from the budget,
	// in bytes. Cancellations and most answers of clients are shorter, and must pass
	// when the budget is used up.
	freeBody = budget.Free
	// firstBody is the size of the first buffer of a longer body, in bytes.
	firstBody = 64 << 10
)

// Body is what has been read of a POST.
type Body struct {
	Bytes []byte
	// Held is how many bytes were taken for it with the function hold of ReadBody.
	Held int
}

var errTooLarge = errors.New("over the limit")

// ReadBody reads a body of at most MaxMessageBytes, within ReadTimeout. It calls hold
// for n more bytes, of which the body has held some so far, as they arrive. The caller
// must give back what the body holds, even after a refusal.
func (f *Front) ReadBody(w http.ResponseWriter, r *http.Request, hold func(n, held int) error) (Body, *Refusal) {
	var b Body
	why := checkMedia(r)
	if why == nil {
		f.boundReading(w, r)
		why = f.refusedBody(b.read(r.Body, r.ContentLength, f.opts.MaxMessageBytes, hold))
	}
	if why != nil {
		why.unread = true
	}
	return b, why
}

// boundReading bounds the reading of a body, unless the ReadTimeout of the server is
// shorter. net/http lifts the bound at the end of the body.
func (f *Front) boundReading(w http.ResponseWriter, r *http.Request) {
	if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && s.ReadTimeout > 0 && s.ReadTimeout <= f.opts.ReadTimeout {
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(f.opts.ReadTimeout)) // not every ResponseWriter has deadlines
}

// checkMedia refuses a body that is not plain JSON.
func checkMedia(r *http.Request) *Refusal {
	switch {
	case !isJSON(r.Header.Get("Content-Type")):
		return Refused(http.StatusUnsupportedMediaType, metrics.PostMediaType, "the Content-Type must be application/json")
	case r.Header.Get("Content-Encoding") != "":
		return Refused(http.StatusUnsupportedMediaType, metrics.PostMediaType, "the body must not have a Content-Encoding")
	}
	return nil
}

// refusedBody returns the refusal for a body whose read ended with err.
func (f *Front) refusedBody(err error) *Refusal {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errTooLarge):
		return Refused(http.StatusRequestEntityTooLarge, metrics.PostTooLarge, "the message is over %d bytes", f.opts.MaxMessageBytes)
	case errors.Is(err, connstate.ErrBusy):
		return RefusedBusy(err)
	}
	return Refused(http.StatusBadRequest, metrics.PostBadRequest, "the body could not be read to its end")
}

// read reads a body of length bytes, -1 if unknown, and of at most limit. It calls
// hold for more bytes as they arrive: a client cannot make the gateway hold what it has
// not sent.
func (b *Body) read(from io.Reader, length, limit int64, hold func(n, held int) error) error {
	most := limit + 1 // to see that there is more
	if length >= 0 {
		most = length
	}
	if most > limit && length >= 0 {
		return errTooLarge
	}
	size := int(min(most, firstBody))
	if length < 0 {
		size = int(min(most, freeBody))
	}
	for {
		if size > freeBody {
			if err := hold(size-b.Held, b.Held); err != nil {
				return err
			}
			b.Held = size
		}
		grown := make([]byte, size)
		n := copy(grown, b.Bytes)
		got, err := fill(grown[n:], from)
		b.Bytes = grown[:n+got]
		switch {
		case int64(len(b.Bytes)) > limit:
			return errTooLarge
		case err == io.EOF && length >= 0 && int64(len(b.Bytes)) < length:
			return io.ErrUnexpectedEOF
		case err == io.EOF || err == nil && int64(size) == most:
			if len(b.Bytes) < size-size/4 { // of unknown length: do not keep the rest
				b.Bytes = append([]byte(nil), b.Bytes...)
			}
			return nil
		case err != nil:
			return err
		}
		size = int(min(most, 2*int64(size)))
	}
}

// fill reads until p is full, or reading fails.
func fill(p []byte, from io.Reader) (n int, err error) {
	for n < len(p) && err == nil {
		var got int
		got, err = from.Read(p[n:])
		n += got
	}
	return n, err
}
