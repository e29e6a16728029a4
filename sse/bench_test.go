package sse_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
)

// sink is a ResponseWriter that takes everything and tells of each flush.
type sink struct {
	header  http.Header
	started chan struct{} // closed by WriteHeader; nil: nobody is told
	flushed chan struct{} // nil: nobody is told
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }

func (s *sink) WriteHeader(int) {
	if s.started != nil {
		close(s.started)
	}
}

func (s *sink) FlushError() error {
	if s.flushed != nil {
		s.flushed <- struct{}{}
	}
	return nil
}

func (s *sink) SetWriteDeadline(time.Time) error { return nil }
func (s *sink) SetReadDeadline(time.Time) error  { return nil }

// benchStream opens a stream into s and returns its connection.
func benchStream(b testing.TB, f *fixture, s *sink) *connstate.Connection {
	b.Helper()
	s.started = make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.ServeHTTP(s, httptest.NewRequestWithContext(ctx, http.MethodGet, "/sse?auto=0&event=message", nil))
	}()
	b.Cleanup(func() { cancel(); <-done })
	c := <-f.backend.accepted
	<-s.started
	return c
}

var benchEvent = []byte(`{"jsonrpc":"2.0","id":123456,"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", 100) + `"}]}}`)

// As many events as one stream takes: flushes are shared.
func BenchmarkOneStream(b *testing.B) {
	c := benchStream(b, newFixture(b, config{}), &sink{header: http.Header{}})
	b.ReportAllocs()
	b.SetBytes(int64(len(benchEvent)))
	for b.Loop() {
		if err := c.Send("", benchEvent); err != nil {
			b.Fatal(err)
		}
	}
}

// The way of one event alone, from Send to its flush.
func BenchmarkSendToFlush(b *testing.B) {
	s := &sink{header: http.Header{}, flushed: make(chan struct{}, 1)}
	c := benchStream(b, newFixture(b, config{}), s)
	<-s.flushed
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Send("", benchEvent); err != nil {
			b.Fatal(err)
		}
		<-s.flushed
	}
}

// One POST without its network: routing, checks, parsing, the backend's answer.
func BenchmarkPost(b *testing.B) {
	f := newFixture(b, config{})
	c := benchStream(b, f, &sink{header: http.Header{}})
	w := &sink{header: http.Header{}}
	body := strings.NewReader("")
	const message = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}`
	r := httptest.NewRequest(http.MethodPost, "/sse/"+c.ID()+"/message", body)
	r.Header.Set("Content-Type", "application/json")
	r.Body, r.ContentLength = io.NopCloser(body), int64(len(message))
	b.ReportAllocs()
	for b.Loop() {
		body.Reset(message)
		f.ServeHTTP(w, r)
	}
}

// A stream's whole life: GET, endpoint, end.
func BenchmarkConnect(b *testing.B) {
	f := newFixture(b, config{})
	b.ReportAllocs()
	for b.Loop() {
		ctx, cancel := context.WithCancel(context.Background())
		s := &sink{header: http.Header{}, flushed: make(chan struct{}, 1)}
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.ServeHTTP(s, httptest.NewRequestWithContext(ctx, http.MethodGet, "/sse?auto=0", nil))
		}()
		<-s.flushed
		cancel()
		<-done
		<-f.backend.accepted
		<-f.backend.closed
	}
}
