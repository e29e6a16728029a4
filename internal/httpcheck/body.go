package httpcheck

import (
	"cmp"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/internal/wire"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
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

// ReadBody reads a body of at most MaxMessageBytes, within ReadTimeout. As bytes arrive it
// calls hold to reserve n more for a body that already holds some. The caller must give
// back what the body holds, even after a refusal.
func (f *Checker) ReadBody(w http.ResponseWriter, r *http.Request, hold func(n, held int) error) (b Body,
	why *Refusal) {
	why = checkMedia(r)
	if why == nil {
		// A shorter ReadTimeout of the server stands. net/http lifts the bound at the end of the body.
		if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); !ok || s.ReadTimeout <= 0 ||
			s.ReadTimeout > f.opts.ReadTimeout {
			// Not every ResponseWriter has deadlines.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(f.opts.ReadTimeout))
		}
		switch err := b.read(r.Body, r.ContentLength, f.opts.MaxMessageBytes, hold); {
		case err == nil:
			return b, nil
		case errors.Is(err, errTooLarge):
			return b, f.tooLarge(&b, r)
		case errors.Is(err, connstate.ErrBusy):
			why = RefusedBusy(err)
		default:
			why = Refused(http.StatusBadRequest, metrics.RejectedBadRequest, "the body could not be read to its end")
		}
	}
	why.Unread = true
	return b, why
}

const (
	// maxFront is where the id of a request is looked for in a body over the limit, in bytes.
	maxFront = 4 << 10
	// maxDiscarded bounds what is read of such a body and thrown away, in bytes, within ReadTimeout. A
	// client that sends all before it reads would lose the answer, because its TCP connection is reset.
	maxDiscarded = 64 << 20
)

// tooLarge refuses a body over the limit, and reads the rest of it. The refusal has the id of the request
// if that stands in front.
func (f *Checker) tooLarge(b *Body, r *http.Request) *Refusal {
	why := Refused(http.StatusRequestEntityTooLarge, metrics.PostTooLarge,
		"the message is over %d bytes: send less, or raise max-message-bytes", f.opts.MaxMessageBytes)
	expects := r.Header.Get("Expect") != "" // it waits for leave to send the body
	if r.ContentLength > maxDiscarded || expects {
		why.Unread = true
		return why
	}
	front := b.Bytes
	b.Bytes = nil
	if len(front) == 0 { // refused for its length alone
		front = make([]byte, min(maxFront, f.opts.MaxMessageBytes+1))
		n, _ := io.ReadFull(r.Body, front) // the discarding below notices its end
		front = front[:n]
	}
	why.ID = wire.RequestIDInFront(front[:min(len(front), maxFront)])
	_, err := io.CopyN(io.Discard, r.Body, maxDiscarded)
	why.Unread = err != io.EOF
	return why
}

// checkMedia refuses a body that is not plain JSON.
func checkMedia(r *http.Request) *Refusal {
	switch {
	case !isJSONType(r.Header.Get("Content-Type")):
		return Refused(http.StatusUnsupportedMediaType, metrics.PostMediaType,
			"the Content-Type must be application/json")
	case !slices.Contains([]string{"", "identity"}, strings.ToLower(r.Header.Get("Content-Encoding"))):
		return Refused(http.StatusUnsupportedMediaType, metrics.PostMediaType,
			"the body must not have a Content-Encoding")
	}
	return nil
}

func isJSONType(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	t, params, err := mime.ParseMediaType(contentType)
	charset := strings.ToLower(cmp.Or(params["charset"], "utf-8"))
	return err == nil && (charset == "utf-8" || charset == "utf8") &&
		(t == "application/json" || strings.HasPrefix(t, "application/") && strings.HasSuffix(t, "+json"))
}

// read reads a body of length bytes, -1 if unknown, and of at most limit. It calls
// hold for more bytes as they arrive: a client cannot make the gateway hold what it has
// not sent.
func (b *Body) read(from io.Reader, length, limit int64, hold func(n, held int) error) error {
	if length > limit {
		return errTooLarge
	}
	size, most := int64(freeBody)+1, limit+1 // one more byte, to see the end
	if length >= 0 {
		size, most = firstBody, length+1
	}
	from = io.LimitReader(from, most)
	for {
		if len(b.Bytes) == cap(b.Bytes) {
			size = min(size, most)
			if n := int(size) - 1; n > freeBody {
				if err := hold(n-b.Held, b.Held); err != nil {
					return err
				}
				b.Held = n
			}
			b.Bytes = append(make([]byte, 0, size), b.Bytes...)
			size *= 2
		}
		n, err := from.Read(b.Bytes[len(b.Bytes):cap(b.Bytes)])
		b.Bytes = b.Bytes[:len(b.Bytes)+n]
		switch {
		case int64(len(b.Bytes)) > limit:
			return errTooLarge
		case err == io.EOF:
			if cap(b.Bytes)-len(b.Bytes) > cap(b.Bytes)/4 { // of unknown length: do not keep the rest
				b.Bytes = slices.Clone(b.Bytes)
			}
			return nil
		case err != nil:
			return err
		}
	}
}

// ParseMessage returns the message in a body.
func ParseMessage(body []byte) (*jsonrpc.Message, *Refusal) {
	m, err := wire.ParseClient(body)
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		reason := metrics.PostInvalidRequest
		if e.Code == jsonrpc.CodeParseError {
			reason = metrics.PostInvalidJSON
		}
		return nil, RefusedWith(http.StatusBadRequest, reason, e)
	}
	if e := connstate.CheckClear(m); e != nil {
		refusal := RefusedWith(http.StatusBadRequest, metrics.PostInvalidRequest, e)
		if m.Certain() && m.Kind == jsonrpc.Request { // else the id is not
			refusal.ID = m.ID
		}
		return nil, refusal
	}
	if m.Kind == jsonrpc.Response && m.ID == jsonrpc.Null {
		return nil, Refused(http.StatusBadRequest, metrics.PostInvalidRequest, "the id of a response must not be null")
	}
	return m, nil
}

// HasBody reports whether a request has a body, as far as its head tells. On HTTP/2
// a body of unknown length may be empty.
func HasBody(r *http.Request) bool {
	return r.ContentLength > 0 || r.ContentLength < 0 && r.ProtoMajor == 1
}

// ErrBody is why a request that needs no body is refused: net/http would keep what
// comes of it, and wait for the rest.
var ErrBody = errors.New("this request must not have a body")
