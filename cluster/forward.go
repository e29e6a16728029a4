package cluster

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Statuses of a response that are not of HTTP.
const (
	statusGone = iota + 1 // no such connection, and this replica takes no new ones
	statusBusy
)

// headerTo says in a forwarded request what front.Forward does.
const headerTo = "Mcp-Cluster-To"

// call is a request that is forwarded.
type call struct {
	n     *Node
	w     http.ResponseWriter
	r     *http.Request
	f     front.Forward
	began time.Time
}

// Forward has the replica that holds a connection serve a request, as front.Cluster says. It
// panics with http.ErrAbortHandler if the replica is lost after the response has begun.
func (n *Node) Forward(w http.ResponseWriter, r *http.Request, f front.Forward) bool {
	owner, _, _ := strings.Cut(f.ID, ".")
	if len(owner) != idBytes || owner == n.id && !n.draining(f.Server) {
		return false
	}
	c := &call{n, w, r, f, time.Now()}
	if c.to(owner) || f.Resumes && c.resume(owner) {
		return true
	}
	n.metrics.Forwarded(metrics.ForwardGone)
	return false
}

// resume forwards a request for a connection whose own replica is gone. It reports false if
// the connection is to go on here.
func (c *call) resume(owner string) (answered bool) {
	adopter, err := c.n.ask(c.r.Context(), c.n.adopted(c.f.Server, c.f.ID))
	switch {
	case err == nil && adopter == c.n.id:
		return false
	case err == nil && c.to(adopter):
		return true
	case err != nil && !errors.Is(err, nats.ErrNoResponders):
		return c.unavailable()
	}
	for _, replica := range c.n.candidates(c.f.Server, c.f.ID) {
		if replica == c.n.id && !c.n.draining(c.f.Server) {
			return false
		}
		if replica != owner && replica != adopter && c.to(replica) {
			return true
		}
	}
	return false
}

// to forwards the request to a replica. It reports false if that is this one or gone, or has
// no such connection and takes no new ones.
func (c *call) to(replica string) (answered bool) {
	if replica == c.n.id {
		return false
	}
	connected, presence := c.n.state(replica)
	if !connected {
		return c.unavailable()
	}
	if presence != present { // a request might reach it later, when the client repeats it
		if _, err := c.n.ask(c.r.Context(), c.n.frames(replica, "q")); err != nil {
			return presence != gone && !errors.Is(err, nats.ErrNoResponders) && c.unavailable()
		}
	}
	data := c.encode()
	if data == nil {
		return c.failed(errReset)
	}
	x := c.begin(replica)
	defer context.AfterFunc(c.r.Context(), func() { x.abort(context.Canceled) })()
	for len(data) > 0 {
		part := data[:min(len(data), c.n.maxPart)]
		data = data[len(part):]
		if err := x.send(part, len(data) == 0); err != nil {
			return c.failed(err)
		}
	}
	return c.respond(x)
}

// begin makes an exchange with a replica.
func (c *call) begin(replica string) *exchange {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	c.n.number++
	x := c.n.newExchange(exchangeID{number: c.n.number}, replica, func() {})
	if c.r.Method == http.MethodGet {
		x.stream = c.f.Server
	}
	if c.n.closed {
		x.err = errClosed
		return x
	}
	c.n.exchanges[x.id] = x
	return x
}

// encode returns the request, as of HTTP/1.1.
func (c *call) encode() []byte {
	to := url.Values{"server": {c.f.Server}, "id": {c.f.ID}, "principal": {c.f.Principal}, "addr": {c.f.Addr.String()}}
	q := &http.Request{Method: c.r.Method, URL: c.r.URL, Host: cmp.Or(c.r.Host, "-"), Header: c.r.Header.Clone(), ContentLength: int64(len(c.f.Body))}
	q.Header.Set(headerTo, to.Encode())
	if q.UserAgent() == "" {
		q.Header["User-Agent"] = nil // not that of net/http
	}
	if len(c.f.Body) > 0 {
		q.Body = io.NopCloser(bytes.NewReader(c.f.Body))
	}
	var b bytes.Buffer
	if q.Write(&b) != nil { // of HTTP/2, and not one of HTTP/1.1
		return nil
	}
	return b.Bytes()
}

// respond writes the response of the replica. It reports false if there is none because the
// connection is not there.
func (c *call) respond(x *exchange) (answered bool) {
	part, isLast, err := x.receive()
	if err != nil {
		return c.failed(err)
	}
	defer x.end(errDone)
	b := bytes.NewBuffer(part)
	r := textproto.NewReader(bufio.NewReaderSize(b, min(len(part), 4<<10)))
	line, _ := r.ReadLine()
	status, err := strconv.Atoi(line)
	header, headErr := r.ReadMIMEHeader()
	switch {
	case errors.Join(err, headErr) != nil:
		x.abort(errReset)
		return c.failed(errReset)
	case status == statusGone:
		return false
	case status == statusBusy:
		return c.refuse(metrics.ForwardBusy, jsonrpc.ReasonError("the replica of this connection is busy: try again later", "server_busy", true))
	}
	c.n.metrics.ForwardBegan(time.Since(c.began))
	for name, values := range header {
		c.w.Header()[name] = values
	}
	c.w.WriteHeader(status)
	part, _ = io.ReadAll(r.R)
	result := c.copy(x, part, isLast)
	if c.n.metrics.Forwarded(result); result == metrics.ForwardCut {
		panic(http.ErrAbortHandler)
	}
	return true
}

// copy writes the rest of a response, which begins with part. A stream ends in order when
// this replica shuts down, as the client opens another one then.
func (c *call) copy(x *exchange, part []byte, isLast bool) (result string) {
	control := http.NewResponseController(c.w)
	deadline := front.NewDeadline(control, cmp.Or(c.f.WriteTimeout, 10*time.Second), c.r)
	for err := error(nil); ; part, isLast, err = x.receive() {
		switch {
		case errors.Is(err, errDraining):
			return metrics.ForwardOK
		case errors.Is(err, context.Canceled):
			return metrics.ForwardCanceled
		case err != nil:
			return metrics.ForwardCut
		}
		if len(part) > 0 || !isLast {
			if _, err := deadline.Write(c.w, part, nil); err != nil {
				x.abort(err)
				return metrics.ForwardCanceled
			}
		}
		if isLast {
			_ = control.SetWriteDeadline(time.Time{}) // the TCP connection may serve other requests
			return metrics.ForwardOK
		}
	}
}

// failed answers a request whose exchange is over before a response. It reports false if no
// replica has received the request.
func (c *call) failed(err error) (answered bool) {
	switch {
	case errors.Is(err, errGone):
		return false
	case errors.Is(err, errDraining):
		return c.unavailable()
	case errors.Is(err, context.Canceled):
		c.n.metrics.Forwarded(metrics.ForwardCanceled)
		return true
	}
	return c.refuse(metrics.ForwardUnreachable, jsonrpc.ReasonError("the replica of this connection was lost with the request", "replica_unreachable", false))
}

// unavailable answers a request that cannot be forwarded now.
func (c *call) unavailable() bool {
	c.w.Header().Set("Retry-After", "1")
	return c.refuse(metrics.ForwardUnavailable, jsonrpc.ReasonError("the replica of this connection cannot be reached now: try again later", "cluster_unavailable", true))
}

// refuse answers with 503, and returns true.
func (c *call) refuse(result string, e *jsonrpc.Error) bool {
	c.n.metrics.Forwarded(result)
	id := jsonrpc.Null
	if m, err := jsonrpc.Parse(c.f.Body); err == nil && m.Kind == jsonrpc.Request {
		id = m.ID
	}
	body := append(jsonrpc.NewError(id, e), '\n')
	_ = front.WriteJSON(c.w, c.r, http.StatusServiceUnavailable, body, 10*time.Second) // a client that is gone needs no answer
	return true
}
