package cluster

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Statuses of a response that are not of HTTP.
const (
	statusGone = iota // no such connection, and this replica takes no new ones
	statusBusy
)

var errDraining = errors.New("this replica shuts down")

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
		c.unavailable()
		return true
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

// to forwards the request to a replica, which may be this one. It reports false if that is
// gone, or has no such connection and takes no new ones.
func (c *call) to(replica string) (answered bool) {
	switch {
	case replica == c.n.id:
		return false
	case !c.n.connected():
		c.unavailable()
		return true
	}
	if c.n.isSilent(replica) {
		_, err := c.n.ask(c.r.Context(), c.n.frames(replica, "q"))
		if err != nil && !errors.Is(err, nats.ErrNoResponders) {
			c.unavailable()
		}
		if err != nil {
			return !errors.Is(err, nats.ErrNoResponders)
		}
	}
	x := c.n.begin(replica, c)
	stop := context.AfterFunc(c.r.Context(), func() { x.abort(context.Canceled) })
	defer stop()
	if err := x.sendAll(c.encode()); err != nil && !errors.Is(err, errAnswered) {
		return c.failed(err)
	}
	return c.respond(x)
}

// begin makes an exchange with a replica.
func (n *Node) begin(replica string, c *call) *exchange {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.number++
	x := n.newExchange(exchangeID{number: n.number}, replica, func() {})
	if c.r.Method == http.MethodGet {
		x.stream = c.f.Server
	}
	if n.closed {
		x.err = errClosed
	}
	n.exchanges[x.id] = x
	return x
}

// sendAll sends data in as many parts as are needed.
func (x *exchange) sendAll(data []byte) error {
	for {
		part := data[:min(len(data), x.n.maxPart)]
		data = data[len(part):]
		if err := x.send(part, len(data) == 0); err != nil || len(data) == 0 {
			return err
		}
	}
}

// encode returns the request as serve reads it.
func (c *call) encode() []byte {
	addr := ""
	if c.f.Addr.IsValid() {
		addr = c.f.Addr.String()
	}
	b := appendText(nil, c.f.Server, c.f.ID, c.f.Principal, addr, c.r.Method, c.r.URL.RequestURI(), c.r.Host)
	return append(appendHeader(b, c.r.Header), c.f.Body...)
}

// respond writes the response of the replica. It reports false if there is none because the
// connection is not there.
func (c *call) respond(x *exchange) (answered bool) {
	part, isLast, err := x.receive()
	if err != nil {
		return c.failed(err)
	}
	r := &reader{rest: part}
	status := r.number()
	switch {
	case status == statusGone && !r.bad:
		x.end(errDone)
		return false
	case status == statusBusy:
		x.end(errDone)
		c.refuse(metrics.ForwardBusy, jsonrpc.ReasonError("the replica of this connection is busy: try again later", "server_busy", true))
		return true
	}
	header := r.header()
	if r.bad || status < 200 || status > 999 {
		x.abort(errReset)
		return c.failed(errReset)
	}
	c.n.metrics.ForwardBegan(time.Since(c.began))
	for name, values := range header {
		c.w.Header()[name] = values
	}
	c.w.WriteHeader(status)
	c.copy(x, r.rest, isLast)
	return true
}

// copy writes the rest of a response, which begins with part.
func (c *call) copy(x *exchange, part []byte, isLast bool) {
	control := http.NewResponseController(c.w)
	deadline := front.NewDeadline(control, cmp.Or(c.f.WriteTimeout, 10*time.Second), c.r)
	for {
		if len(part) > 0 || !isLast {
			if _, err := deadline.Write(c.w, part, nil); err != nil {
				x.abort(err)
				c.n.metrics.Forwarded(metrics.ForwardCanceled)
				return
			}
		}
		if isLast {
			break
		}
		var err error
		if part, isLast, err = x.receive(); err != nil {
			c.cut(err)
			break
		}
	}
	_ = control.SetWriteDeadline(time.Time{}) // the TCP connection may serve other requests
	x.end(errDone)
	c.n.metrics.Forwarded(metrics.ForwardOK)
}

// cut ends a response that has begun: in order if this replica drains, as the client opens
// another stream then, else by force.
func (c *call) cut(err error) {
	switch {
	case errors.Is(err, errDraining):
	case errors.Is(err, context.Canceled):
		c.n.metrics.Forwarded(metrics.ForwardCanceled)
		panic(http.ErrAbortHandler)
	default:
		c.n.metrics.Forwarded(metrics.ForwardCut)
		panic(http.ErrAbortHandler)
	}
}

// failed answers a request whose exchange is over before a response. It reports false if no
// replica has received the request.
func (c *call) failed(err error) (answered bool) {
	switch {
	case errors.Is(err, errGone), errors.Is(err, errDraining):
		return false
	case errors.Is(err, context.Canceled):
		c.n.metrics.Forwarded(metrics.ForwardCanceled)
	default:
		e := jsonrpc.ReasonError("the replica of this connection was lost with the request", "replica_unreachable", false)
		c.refuse(metrics.ForwardUnreachable, e)
	}
	return true
}

// unavailable answers a request that cannot be forwarded now.
func (c *call) unavailable() {
	e := jsonrpc.ReasonError("the replica of this connection cannot be reached now: try again later", "cluster_unavailable", true)
	c.w.Header().Set("Retry-After", "1")
	c.refuse(metrics.ForwardUnavailable, e)
}

// refuse answers with 503.
func (c *call) refuse(result string, e *jsonrpc.Error) {
	c.n.metrics.Forwarded(result)
	id := jsonrpc.Null
	if m, err := jsonrpc.Parse(c.f.Body); err == nil && m.Kind == jsonrpc.Request {
		id = m.ID
	}
	body := append(jsonrpc.NewError(id, e), '\n')
	_ = front.WriteJSON(c.w, c.r, http.StatusServiceUnavailable, body, 10*time.Second) // a client that is gone needs no answer
}

// encodeHead returns the head of a response as respond reads it.
func encodeHead(status int, header http.Header) []byte {
	b := binary.AppendUvarint(nil, uint64(status))
	if header == nil {
		return b
	}
	return appendHeader(b, header)
}
