// Package inprocess is an [http.RoundTripper] that calls an [http.Handler] of this
// program, without a socket.
package inprocess

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
)

// Transport is an http.RoundTripper that calls a handler. It is safe for concurrent use
// if the handler is.
type Transport struct{ Handler http.Handler }

// RoundTrip calls the handler in a new goroutine, and returns when the handler has
// written the head of the response. It fails when the request's context ends first, or
// the handler panics.
func (t Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	ctx, cancel := context.WithCancel(req.Context())
	pr, pw := io.Pipe()
	w := &writer{header: make(http.Header), body: pw, head: make(chan struct{})}
	stop := context.AfterFunc(req.Context(), func() { pr.CloseWithError(context.Cause(req.Context())) })
	go func() { // ends with the handler
		defer cancel()
		defer stop()
		err := t.call(w, serverRequest(ctx, req))
		if err == nil {
			w.WriteHeader(http.StatusOK)
		}
		_ = pw.CloseWithError(err) // nil ends the body; this cannot fail
		w.fail(err)                // nothing after a head
	}()
	select {
	case <-w.head:
	case <-ctx.Done(): // also after the handler has returned
		w.fail(context.Cause(ctx))
		<-w.head
	}
	if w.err != nil {
		cancel()
		pr.Close()
		return nil, w.err
	}
	return &http.Response{
		Status: strconv.Itoa(w.code) + " " + http.StatusText(w.code), StatusCode: w.code, Proto: "HTTP/1.1",
		ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: &body{pr, cancel}, ContentLength: -1, Request: req,
	}, nil
}

// call runs the handler, and returns a panic as an error.
func (t Transport) call(w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the handler panicked: %v", p)
		}
		if r.Body != nil {
			r.Body.Close()
		}
	}()
	t.Handler.ServeHTTP(w, r)
	return nil
}

// serverRequest returns the request as a server sees it.
func serverRequest(ctx context.Context, req *http.Request) *http.Request {
	r := req.Clone(ctx)
	r.RequestURI = req.URL.RequestURI()
	r.RemoteAddr = "127.0.0.1:0"
	if r.Host == "" {
		r.Host = req.URL.Host
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	return r
}

// body is the body of a response. Closing it ends the handler's context.
type body struct {
	*io.PipeReader
	cancel context.CancelFunc
}

// Close makes writes of the handler fail.
func (b *body) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

// writer is the ResponseWriter of a handler in process. The reader gets each write at
// once.
type writer struct {
	header http.Header // the handler's
	body   *io.PipeWriter

	once sync.Once     // for what follows
	head chan struct{} // closed when the rest is set
	code int
	sent http.Header
	err  error // why there is no head
}

// Header returns the headers of the response.
func (w *writer) Header() http.Header { return w.header }

// WriteHeader sends the head, once. It drops informational ones.
func (w *writer) WriteHeader(code int) {
	if code < 200 {
		return
	}
	w.once.Do(func() {
		w.code, w.sent = code, maps.Clone(w.header)
		close(w.head)
	})
}

// Write fails when nobody reads any more.
func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// Flush sends the head. The body needs no flush.
func (w *writer) Flush() { w.WriteHeader(http.StatusOK) }

// EnableFullDuplex does nothing: a handler can always write while it reads.
func (w *writer) EnableFullDuplex() error { return nil }

// fail ends the wait for a head that does not come.
func (w *writer) fail(err error) {
	w.once.Do(func() {
		w.err = err
		close(w.head)
	})
}

var (
	_ http.RoundTripper = Transport{}
	_ http.Flusher      = (*writer)(nil)
)
