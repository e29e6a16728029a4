package sse_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// recorder is a ResponseWriter that notes each write, and a client that can stop
// reading: writes then wait as they do on a socket, until their deadline.
type recorder struct {
	header http.Header

	mu       sync.Mutex
	changed  *sync.Cond // of what follows, or the deadline has come
	status   int
	writes   []string
	times    []time.Time // of writes
	deadline time.Time
	fault    error // what writes fail with
	stalled  bool
}

func newRecorder() *recorder {
	r := &recorder{header: http.Header{}}
	r.changed = sync.NewCond(&r.mu)
	return r
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) { r.set(func() { r.status = status }) }

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		switch {
		case !r.deadline.IsZero() && !time.Now().Before(r.deadline):
			return 0, os.ErrDeadlineExceeded
		case r.fault != nil:
			return 0, r.fault
		case !r.stalled:
			r.writes, r.times = append(r.writes, string(p)), append(r.times, time.Now())
			return len(p), nil
		}
		r.changed.Wait()
	}
}

func (r *recorder) FlushError() error { return nil }

func (r *recorder) SetReadDeadline(time.Time) error { return nil }

func (r *recorder) SetWriteDeadline(d time.Time) error {
	r.set(func() { r.deadline = d })
	time.AfterFunc(time.Until(d), func() { r.set(func() {}) })
	return nil
}

func (r *recorder) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	r.changed.Broadcast()
}

func (r *recorder) stall()         { r.set(func() { r.stalled = true }) }
func (r *recorder) resume()        { r.set(func() { r.stalled = false }) }
func (r *recorder) fail(err error) { r.set(func() { r.fault = err }) }

// text is all that was written.
func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.writes, "")
}

// count is the number of writes.
func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.writes)
}

var errGone = errors.New("connection reset by peer")

// get is one GET /sse under way over a recorder.
type get struct {
	*recorder
	c      whole
	cancel context.CancelFunc // the client leaves
	done   chan struct{}      // closed when ServeHTTP has returned
}

// open runs a GET against the fixture and waits until the connection is there.
func (f *fixture) open(t testing.TB, target string, header ...string) *get {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := ssetest.Request(ctx, http.MethodGet, target, "", header...)
	g := &get{recorder: newRecorder(), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(g.done)
		f.ServeHTTP(g.recorder, r)
	}()
	select {
	case g.c = <-f.backend.accepted:
	case <-g.done:
		cancel()
		t.Fatalf("GET %s got no connection: %d %s", target, g.status, g.text())
	}
	return g
}

// leave ends the request as a client that goes away does.
func (g *get) leave() {
	g.cancel()
	<-g.done
}

// message posts one message to a connection.
func (f *fixture) message(g *get, body string) *httptest.ResponseRecorder {
	return ask(f, http.MethodPost, "/sse/"+g.c.ID()+"/message", body)
}
