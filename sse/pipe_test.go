package sse_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
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
	c  *connstate.Connection // nil when the fixture is not known
}

// get opens a stream; the test closes its Body.
func openStream(t testing.TB, client *http.Client, url string, f *fixture, header ...string) *reader {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{Response: res, t: t, br: bufio.NewReader(res.Body)}
	if res.StatusCode == http.StatusOK && f != nil {
		r.c = <-f.backend.accepted
	}
	return r
}

// next reads one event that is no comment, with a bound.
func (r *reader) next() event {
	r.t.Helper()
	type result struct {
		e   event
		err error
	}
	got := make(chan result, 1)
	go func() {
		for {
			e, err := ssetest.Read(r.br)
			if err != nil || !e.IsComment() {
				got <- result{e, err}
				return
			}
		}
	}()
	select {
	case g := <-got:
		if g.err != nil {
			r.t.Fatalf("read an event: %v", g.err)
		}
		return g.e
	case <-time.After(time.Minute):
		r.Body.Close()
		<-got
		r.t.Fatal("no event came")
	}
	return event{}
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
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	return do(t, client, req)
}

// do sends a request and reads the whole answer.
func do(t testing.TB, client *http.Client, req *http.Request) (*http.Response, string) {
	t.Helper()
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(answer)
}
