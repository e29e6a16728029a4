package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"time"

	"github.com/mcp-sse/mcp-sse/front"
)

const (
	// maxServing bounds the requests of other replicas that are served at once.
	maxServing = 10_000
	// maxBodies bounds the bytes of requests of which parts are missing.
	maxBodies = 64 << 20
)

var errBusy = errors.New("too many requests of other replicas")

// accept begins to serve an exchange of another replica if f is its first frame. It reports
// false if the replica is not known, or the exchange is over.
func (n *Node) accept(id exchangeID, f *frame) bool {
	n.mu.Lock()
	from := n.members[f.from]
	over := n.closed || from == nil || from.seen.has(f.number)
	if over || f.kind != kindData || f.seq != 0 { // the first one has been lost, and comes again
		n.mu.Unlock()
		return !over
	}
	from.seen.add(f.number)
	ctx, cancel := context.WithCancel(context.Background())
	x := n.newExchange(id, f.from, cancel)
	n.exchanges[id] = x
	n.running.Go(func() { n.serve(ctx, x) })
	n.mu.Unlock()
	x.take(f)
	return true
}

// serve reads the request of an exchange, and has the handler of the server answer it.
func (n *Node) serve(ctx context.Context, x *exchange) {
	defer n.serving.Add(-1)
	defer func() {
		v := recover()
		if v != nil && v != http.ErrAbortHandler {
			n.log.Error("handler panicked", "err", v, "stack", string(debug.Stack()))
		}
		if v != nil {
			x.abort(errReset)
		}
	}()
	w := &response{x: x, header: make(http.Header)}
	switch data, err := n.readAll(x, n.serving.Add(1) > maxServing); err {
	case nil:
		n.handle(ctx, w, data)
	case errBusy:
		w.WriteHeader(statusBusy)
	default:
		return // the exchange is over
	}
	if w.finish() != nil {
		x.abort(errReset)
	}
}

// handle has the handler of the server answer what call.encode has written.
func (n *Node) handle(ctx context.Context, w *response, data []byte) {
	r, err := http.ReadRequest(bufio.NewReaderSize(bytes.NewReader(data), min(len(data), 4<<10)))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if r.Method == http.MethodGet { // others bound the number of streams
		n.serving.Add(-1)
		defer n.serving.Add(1)
	}
	to, _ := url.ParseQuery(r.Header.Get(headerTo))
	r.Header.Del(headerTo)
	if addr, err := netip.ParseAddr(to.Get("addr")); err == nil {
		r.RemoteAddr = netip.AddrPortFrom(addr, 0).String()
	}
	part, has := n.part(to.Get("server"), to.Get("id"))
	if part == nil || !has && part.Draining() {
		w.WriteHeader(statusGone)
		return
	}
	defer func() {
		if v := recover(); v == front.ErrGone {
			w.WriteHeader(statusGone)
		} else if v != nil {
			panic(v)
		}
	}()
	part.Handler.ServeHTTP(w, r.WithContext(front.Forwarded(ctx, to.Get("principal"))))
}

// readAll reads the request of an exchange to its end, and returns it unless this replica is
// or gets busy.
func (n *Node) readAll(x *exchange, busy bool) (data []byte, err error) {
	defer func() { n.bodies.Add(-int64(len(data))) }()
	for isLast := false; !isLast; {
		var part []byte
		if part, isLast, err = x.receive(); err != nil {
			return data, err
		}
		if busy = busy || n.bodies.Load()+int64(len(part)) > maxBodies; !busy {
			n.bodies.Add(int64(len(part)))
			data = append(data, part...)
		}
	}
	if busy {
		return data, errBusy
	}
	return data, nil
}

// response is the http.ResponseWriter of a request of another replica. Like that of net/http,
// it is for one goroutine, but for the deadlines.
type response struct {
	x      *exchange
	header http.Header
	begun  bool
	whole  bool         // it has a length, and is sent at the end
	data   bytes.Buffer // is not sent yet
}

var _ http.Flusher = (*response)(nil)

// Header returns the header, which WriteHeader sends.
func (w *response) Header() http.Header { return w.header }

// WriteHeader begins the response. Informational ones are left out.
func (w *response) WriteHeader(status int) {
	if w.begun || status >= 100 && status < 200 {
		return
	}
	w.begun = true
	w.whole = w.header.Get("Content-Length") != ""
	w.header.Del("Connection") // that is the entry's
	fmt.Fprintf(&w.data, "%d\r\n", status)
	_ = w.header.Write(&w.data) // a Buffer takes all
	w.data.WriteString("\r\n")
}

// Write sends what fills parts. It waits while the client does not read.
func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.data.Write(p)
	for w.data.Len() > w.x.n.maxPart {
		if err := w.x.send(w.data.Next(w.x.n.maxPart), false); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// FlushError sends what is written of a response without a length.
func (w *response) FlushError() error {
	if w.WriteHeader(http.StatusOK); w.whole || w.data.Len() == 0 {
		return nil
	}
	return w.x.send(w.data.Next(w.data.Len()), false)
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
	w.WriteHeader(http.StatusOK)
	return w.x.send(w.data.Next(w.data.Len()), true)
}
