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

// Transport is an http.RoundTripper that calls a handler.
type Transport struct{ Handler http.Handler }

// RoundTrip calls the handler and returns when that has written the head of the
// response.
func (t Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	ctx, cancel := context.WithCancel(req.Context())
	pr, pw := io.Pipe()
	w := &writer{header: make(http.Header), body: pw, head: make(chan struct{})}
	stop := context.AfterFunc(req.Context(), func() { pr.CloseWithError(context.Cause(req.Context())) })
	go func() { // ends when the handler returns
		defer cancel()
		defer stop()
		err := t.call(w, serverRequest(ctx, req))
		if err == nil {
			w.WriteHeader(http.StatusOK)
		}
		_ = pw.CloseWithError(err) // nil is the end of the body; it cannot fail
		w.fail(err)
	}()
	select {
	case <-w.head:
	case <-ctx.Done(): // or the handler has just returned
		w.fail(context.Cause(ctx))
	}
	if err := w.failed(); err != nil {
		cancel()
		pr.Close()
		return nil, err
	}
	return w.response(req, &body{pr, cancel}), nil
}

// call runs the handler; a panic of it is an error.
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

// body is the body of a response; closing it ends the handler's context.
type body struct {
	*io.PipeReader
	cancel context.CancelFunc
}

// Close lets writes of the handler fail.
func (b *body) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

// writer is the ResponseWriter of a handler in process. What is written is
// there for the reader at once.
type writer struct {
	header http.Header // the handler's
	body   *io.PipeWriter
	head   chan struct{} // closed with the head, or err

	mu   sync.Mutex // guards the next three until head is closed
	code int        // 0: not written
	sent http.Header
	err  error // why there is no head
}

// Header returns the headers to be sent.
func (w *writer) Header() http.Header { return w.header }

// WriteHeader sends the head, once; informational ones are dropped.
func (w *writer) WriteHeader(code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if code < 200 || w.code != 0 || w.err != nil {
		return
	}
	w.code, w.sent = code, maps.Clone(w.header)
	close(w.head)
}

// Write fails when nobody reads any more.
func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// FlushError sends the head; all else is on its way already.
func (w *writer) FlushError() error {
	w.WriteHeader(http.StatusOK)
	return nil
}

// Flush is FlushError.
func (w *writer) Flush() { w.WriteHeader(http.StatusOK) }

// EnableFullDuplex is there because reading never hinders writing here.
func (w *writer) EnableFullDuplex() error { return nil }

// fail ends the wait for a head that does not come.
func (w *writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.code != 0 || w.err != nil || err == nil {
		return
	}
	w.err = err
	close(w.head)
}

func (w *writer) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *writer) response(req *http.Request, body io.ReadCloser) *http.Response {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &http.Response{
		Status: strconv.Itoa(w.code) + " " + http.StatusText(w.code), StatusCode: w.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: body, ContentLength: -1, Request: req,
	}
}

var (
	_ http.RoundTripper = Transport{}
	_ http.Flusher      = (*writer)(nil)
)
