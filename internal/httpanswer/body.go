package httpanswer

import (
	"net/http"
	"strconv"
)

// bound is a ResponseWriter each of whose writes has a deadline.
type bound struct {
	http.ResponseWriter
	deadline *Deadline
}

// Bound returns w with the Deadline of the response to r on each write, for handlers that write by themselves, such as
// http.ServeContent. It flushes after each write, so the handler has to set the length of the body.
func Bound(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	return &bound{w, NewDeadline(w, r, 0)}
}

func (b *bound) Write(data []byte) (int, error) {
	if _, err := b.deadline.Write(b.ResponseWriter, data, nil); err != nil {
		return 0, err
	}
	return len(data), nil
}

// Unwrap is for http.ResponseController.
func (b *bound) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// WriteBody answers a request with a body of any type; its caller has set the headers but for the length. A client that
// is gone needs no answer.
func WriteBody(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = Bound(w, r).Write(body)
}
