package cluster

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime/debug"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
)

// maxServing bounds the requests of other replicas that are served at once.
const maxServing = 10_000

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
	x := n.beginLocked(id, f.from, cancel)
	n.running.Go(func() { n.serve(ctx, x) })
	n.mu.Unlock()
	x.take(f)
	return true
}

// serve has the handler of the server answer what call.encode has written.
func (n *Node) serve(ctx context.Context, x *exchange) {
	body, w := &request{x: x}, &response{x: x, header: make(http.Header)}
	defer func() {
		switch v := recover(); v {
		case nil:
		case httpcheck.ErrGone:
			w.WriteHeader(statusGone)
		default:
			if v != http.ErrAbortHandler {
				n.log.Error("handler panicked", "err", v, "stack", string(debug.Stack()))
			}
			x.abort(errOver)
		}
		_, _ = io.Copy(io.Discard, body) // the other side sends all of it first
		w.WriteHeader(http.StatusOK)
		if w.err != nil || x.send(w.data.Bytes(), true) != nil {
			x.abort(errOver)
		}
	}()
	reader := bufio.NewReaderSize(body, 1<<10)
	line, _ := reader.ReadString('\n')
	to, _ := url.ParseQuery(line[:max(0, len(line)-1)]) // of Values.Encode
	r, err := http.ReadRequest(reader)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if r.Method != http.MethodGet { // others bound the number of streams
		defer n.serving.Add(-1)
		if n.serving.Add(1) > maxServing {
			w.WriteHeader(statusBusy)
			return
		}
	}
	r.RemoteAddr = to.Get("addr")
	part, has := n.part(to.Get("server"), to.Get("id"))
	if part == nil || !has && (part.Draining() || to.Get("open") == "true") {
		w.WriteHeader(statusGone)
		return
	}
	part.Handler.ServeHTTP(w, r.WithContext(httpcheck.Forwarded(ctx, to.Get("principal"))))
}

// request reads the parts of an exchange.
type request struct {
	x    *exchange
	part []byte // is not read yet
	err  error  // follows
}

func (r *request) Read(p []byte) (n int, err error) {
	for len(r.part) == 0 && r.err == nil {
		r.part, r.err = r.x.receive()
	}
	if len(r.part) == 0 {
		return 0, r.err
	}
	n = copy(p, r.part)
	r.part = r.part[n:]
	return n, nil
}

// response is the http.ResponseWriter of a request of another replica. Like that of net/http,
// it is for one goroutine, but for the deadlines.
type response struct {
	x      *exchange
	header http.Header
	begun  bool
	whole  bool         // it has a length, and is sent at the end
	data   bytes.Buffer // is not sent yet
	err    error        // why a part is missing: nothing may follow it
}

// Header returns the header, which WriteHeader sends.
func (w *response) Header() http.Header { return w.header }

// WriteHeader begins the response. Informational ones are left out.
func (w *response) WriteHeader(status int) {
	if w.begun || status >= 100 && status < 200 {
		return
	}
	w.begun, w.whole = true, w.header.Get("Content-Length") != ""
	w.header.Del("Connection") // that is the entry's
	fmt.Fprintf(&w.data, "%d\r\n", status)
	_ = w.header.Write(&w.data) // a Buffer takes all
	w.data.WriteString("\r\n")
}

// Write sends what fills parts. It waits while the client does not read.
func (w *response) Write(p []byte) (int, error) {
	if w.WriteHeader(http.StatusOK); w.err != nil {
		return 0, w.err
	}
	w.data.Write(p)
	for w.err == nil && w.data.Len() > w.x.n.maxPart {
		w.err = w.x.send(w.data.Next(w.x.n.maxPart), false)
	}
	return len(p), w.err
}

// FlushError sends what is written of a response without a length.
func (w *response) FlushError() error {
	if w.WriteHeader(http.StatusOK); w.err == nil && !w.whole && w.data.Len() > 0 {
		w.err = w.x.send(w.data.Next(w.data.Len()), false)
	}
	return w.err
}

// SetReadDeadline does nothing: the exchange ends if the other replica sends no more.
func (w *response) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline bounds Write and Flush, which notice the end within a second.
func (w *response) SetWriteDeadline(t time.Time) error {
	w.x.mu.Lock()
	defer w.x.mu.Unlock()
	w.x.deadline = t
	w.x.changed.Broadcast()
	return nil
}
