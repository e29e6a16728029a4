package sse

import (
	"errors"
	"io"
	"net/http"

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

// body is what has been read of a POST.
type body struct {
	bytes []byte
	held  int // bytes that were taken with Connection.HoldBody
}

var errTooLarge = errors.New("over the limit")

// readBody reads a body of at most MaxMessageBytes, within ReadTimeout. The caller must
// give back what the body holds, even after a refusal.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request, c *connstate.Connection) (body, *refusal) {
	var b body
	why := checkMedia(r)
	if why == nil {
		limit := h.reading.begin(w)
		defer h.reading.end(limit)
		why = h.refusedBody(b.read(r.Body, r.ContentLength, h.opts.MaxMessageBytes, c.HoldBody))
	}
	if why != nil {
		why.unread = true
	}
	return b, why
}

// checkMedia refuses a body that is not plain JSON.
func checkMedia(r *http.Request) *refusal {
	switch {
	case !isJSON(r.Header.Get("Content-Type")):
		return refused(http.StatusUnsupportedMediaType, metrics.PostMediaType, "the Content-Type must be application/json")
	case r.Header.Get("Content-Encoding") != "":
		return refused(http.StatusUnsupportedMediaType, metrics.PostMediaType, "the body must not have a Content-Encoding")
	}
	return nil
}

// refusedBody returns the refusal for a body whose read ended with err.
func (h *Handler) refusedBody(err error) *refusal {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errTooLarge):
		return refused(http.StatusRequestEntityTooLarge, metrics.PostTooLarge, "the message is over %d bytes", h.opts.MaxMessageBytes)
	case errors.Is(err, connstate.ErrBusy):
		return refusedBusy(err)
	}
	return refused(http.StatusBadRequest, metrics.PostBadRequest, "the body could not be read to its end")
}

// read reads a body of length bytes, -1 if unknown, and of at most limit. It calls
// hold for more bytes as they arrive: a client cannot make the gateway hold what it has
// not sent.
func (b *body) read(from io.Reader, length, limit int64, hold func(n, held int) error) error {
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
			if err := hold(size-b.held, b.held); err != nil {
				return err
			}
			b.held = size
		}
		grown := make([]byte, size)
		n := copy(grown, b.bytes)
		got, err := fill(grown[n:], from)
		b.bytes = grown[:n+got]
		switch {
		case int64(len(b.bytes)) > limit:
			return errTooLarge
		case err == io.EOF && length >= 0 && int64(len(b.bytes)) < length:
			return io.ErrUnexpectedEOF
		case err == io.EOF || err == nil && int64(size) == most:
			if len(b.bytes) < size-size/4 { // of unknown length: do not keep the rest
				b.bytes = append([]byte(nil), b.bytes...)
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
