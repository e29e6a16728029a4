package sse_test

import (
	"bufio"
	"io"
	"net/http"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// protocols returns the ones of HTTP/1.1 or of HTTP/2 without TLS.
func protocols(name string) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(name == "h1")
	p.SetUnencryptedHTTP2(name == "h2c")
	return p
}

// reader is a stream as an HTTP client reads it.
type reader struct {
	*http.Response
	t  testing.TB
	br *bufio.Reader
	c  whole
}

// openStream opens a stream; the test closes its Body.
func openStream(t testing.TB, client *http.Client, url string, f *fixture, header ...string) *reader {
	t.Helper()
	res, err := client.Do(ssetest.Request(t.Context(), http.MethodGet, url, "", header...))
	ssetest.Must(t, err)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %d", url, res.StatusCode)
	}
	return &reader{Response: res, t: t, br: bufio.NewReader(res.Body), c: <-f.backend.accepted}
}

// next reads one event that is no comment.
func (r *reader) next() event {
	r.t.Helper()
	for {
		e, err := ssetest.Read(r.br)
		if err != nil {
			r.t.Fatalf("read an event: %v", err)
		}
		if !e.IsComment() {
			return e
		}
	}
}

// rest reads to the end of the stream and returns its events, and how it ended.
func (r *reader) rest() ([]event, error) {
	var events []event
	for {
		e, err := ssetest.Read(r.br)
		if err == io.EOF {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

// post sends one message and returns status and body.
func post(t testing.TB, client *http.Client, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	res, err := client.Do(ssetest.Request(t.Context(), http.MethodPost, url, body, header...))
	ssetest.Must(t, err)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	ssetest.Must(t, err)
	return res, string(answer)
}
