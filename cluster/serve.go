package cluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/front"
)

const (
	// maxServing bounds the requests of other replicas that are served at once.
	maxServing = 10_000
	// maxBodies bounds the bytes of requests of which parts are missing.
	maxBodies = 64 << 20
)

var errBusy = errors.New("busy")

// accept begins to serve an exchange of another replica if f is its first frame. It reports
// false if the replica is not known, or the exchange is over.
func (n *Node) accept(id exchangeID, f *frame) bool {
	n.mu.Lock()
	from := n.members[f.from]
	if n.closed || from == nil || from.seen.has(f.number) {
		n.mu.Unlock()
		return false
	}
	if f.kind != kindData || f.seq != 0 {
		n.mu.Unlock()
		return true // the first one has been lost, and comes again
	}
	from.seen.add(f.number)
	ctx, cancel := context.WithCancel(context.Background())
	x := n.newExchange(id, f.from, cancel)
	n.exchanges[id] = x
	n.running.Add(1)
	n.mu.Unlock()
	x.take(f)
	go func() {
		defer n.running.Done()
		n.serve(ctx, x)
	}()
	return true
}

// serve reads the request of an exchange, and has the handler of the server answer it.
func (n *Node) serve(ctx context.Context, x *exchange) {
	defer n.serving.Add(-1)
	w := &response{x: x, header: make(http.Header), length: -1}
	data, err := []byte(nil), errBusy
	if n.serving.Add(1) <= maxServing {
		data, err = n.readAll(x)
	}
	if errors.Is(err, errBusy) {
		_ = x.send(encodeHead(statusBusy, nil), true)
		return
	}
	if err != nil {
		return // the exchange is over
	}
	req, server, id, ok := decodeRequest(ctx, data)
	if !ok {
		x.abort(errReset)
		return
	}
	part, has := n.part(server, id)
	if part == nil || !has && part.Draining() {
		_ = x.send(encodeHead(statusGone, nil), true)
		return
	}
	defer func() {
		if v := recover(); v != nil {
			if v != http.ErrAbortHandler {
				n.log.Error("handler panicked", "err", v, "stack", string(debug.Stack()))
			}
			x.abort(errReset)
		}
	}()
	part.Handler.ServeHTTP(w, req)
	if w.finish() != nil {
		x.abort(errReset)
	}
}

// readAll returns the request of an exchange.
func (n *Node) readAll(x *exchange) (data []byte, err error) {
	defer func(before *[]byte) { n.bodies.Add(-int64(len(*before))) }(&data)
	for {
		part, isLast, err := x.receive()
		if err != nil || isLast && data == nil {
			return part, err
		}
		if data = append(data, part...); n.bodies.Add(int64(len(part))) > maxBodies {
			return data, errBusy
		}
		if isLast {
			return data, nil
		}
	}
}

// decodeRequest reads what call.encode has written.
func decodeRequest(ctx context.Context, data []byte) (req *http.Request, server, id string, ok bool) {
	r := &reader{rest: data}
	server, id = r.text(), r.text()
	principal, addr := r.text(), r.text()
	req = &http.Request{
		Method: r.text(), RequestURI: r.text(), Host: r.text(), Header: r.header(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	var err error
	if req.URL, err = url.ParseRequestURI(req.RequestURI); err != nil || r.bad {
		return nil, "", "", false
	}
	if client, err := netip.ParseAddr(addr); err == nil {
		req.RemoteAddr = netip.AddrPortFrom(client, 0).String()
	}
	req.Body, req.ContentLength = http.NoBody, int64(len(r.rest))
	if len(r.rest) > 0 {
		req.Body = io.NopCloser(bytes.NewReader(r.rest))
	}
	return req.WithContext(front.Forwarded(ctx, principal)), server, id, true
}

// response is the http.ResponseWriter of a request of another replica. Like that of net/http,
// it is for one goroutine, but for the deadlines.
type response struct {
	x       *exchange
	header  http.Header
	begun   bool
	ended   bool
	length  int    // of the whole body; -1: not known
	written int    // bytes of it
	data    []byte // is not sent yet
}

var _ http.Flusher = (*response)(nil)

// Header returns the header, which WriteHeader sends.
func (w *response) Header() http.Header { return w.header }

// WriteHeader begins the response. Informational ones are left out.
func (w *response) WriteHeader(status int) {
	if w.begun || status < 200 {
		return
	}
	w.begun = true
	if n, err := strconv.Atoi(w.header.Get("Content-Length")); err == nil {
		w.length = n
	}
	w.data = encodeHead(status, w.header)
}

// Write sends what fills parts. It waits while the client does not read.
func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.written += len(p)
	w.data = append(w.data, p...)
	for len(w.data) >= w.x.n.maxPart {
		if err := w.x.send(w.data[:w.x.n.maxPart], false); err != nil {
			return 0, err
		}
		w.data = append(w.data[:0], w.data[w.x.n.maxPart:]...)
	}
	return len(p), nil
}

// FlushError sends all that is written, and says that it is all if the length tells so.
func (w *response) FlushError() error {
	w.WriteHeader(http.StatusOK)
	whole := w.length >= 0 && w.written >= w.length
	if w.ended || len(w.data) == 0 && !whole {
		return nil
	}
	w.ended = whole
	err := w.x.send(w.data, whole)
	w.data = w.data[:0]
	return err
}

// Flush is FlushError.
func (w *response) Flush() { _ = w.FlushError() }

// SetWriteDeadline bounds Write and Flush.
func (w *response) SetWriteDeadline(t time.Time) error {
	w.x.setDeadline(t)
	return nil
}

// SetReadDeadline does nothing: the whole body has been read.
func (w *response) SetReadDeadline(time.Time) error { return nil }

// finish ends the response.
func (w *response) finish() error {
	if w.ended {
		return nil
	}
	w.WriteHeader(http.StatusOK)
	return w.x.send(w.data, true)
}
