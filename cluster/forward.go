package cluster

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Statuses of a response that are not of HTTP.
const (
	statusGone = iota + 1 // no such connection, and this replica takes no new ones
	statusBusy
)

// notForwarded are the headers that encode writes by itself, or that say how the client sends.
var notForwarded = map[string]bool{"Host": true, "Content-Length": true, "Transfer-Encoding": true, "Trailer": true}

var oneLine = strings.NewReplacer("\r", "", "\n", "").Replace // middleware may put headers into a URL

// call is a request that is forwarded.
type call struct {
	n     *Node
	w     http.ResponseWriter
	r     *http.Request
	f     httpcheck.Forward
	began time.Time
}

// Forward has the replica that holds a connection serve a request, as httpcheck.Cluster says. It
// panics with http.ErrAbortHandler if the replica is lost after the response has begun.
func (n *Node) Forward(w http.ResponseWriter, r *http.Request, f httpcheck.Forward) bool {
	owner, _, _ := strings.Cut(f.ID, ".")
	if len(owner) != idBytes || owner == n.id && !n.draining(f.Server) {
		return false
	}
	c := &call{n, w, r, f, time.Now()}
	_, _, gone := n.state(owner) // if not, it may have the call that this request belongs to
	at, _ := n.moved.Get([2]string{f.Server, f.ID})
	_, silent, _ := n.state(at)
	if gone && !silent && c.to(at, true) || c.to(owner, false) || f.Resumes && c.resume() {
		return true
	}
	n.metrics.Forwarded(metrics.ForwardGone)
	return false
}

// resume forwards a request for a connection whose own replica is gone. It reports false if that goes on here.
func (c *call) resume() (answered bool) {
	replicas := c.n.candidates(c.f.Server, c.f.ID)
	adopter, err := c.n.ask(c.n.adopted(c.f.Server, c.f.ID), false)
	switch isConnected, _, _ := c.n.state(c.n.id); {
	case err == nil:
		replicas = slices.Insert(replicas, 0, adopter)
	case errors.Is(err, nats.ErrNoResponders):
	case errors.Is(err, nats.ErrTimeout) && isConnected: // who listens there is no replica that lives
	default:
		return c.failed(errAway)
	}
	for i, replica := range replicas {
		if replica == c.n.id && !c.n.draining(c.f.Server) {
			return false
		}
		if c.to(replica, i == 0 && err == nil) {
			c.n.moved.Add([2]string{c.f.Server, c.f.ID}, replica)
			return true
		}
	}
	return false
}

// to forwards the request to a replica. It reports false if that is this one or gone, or has
// no such connection and takes no new ones. With open, no replica takes a new one.
func (c *call) to(replica string, open bool) (answered bool) {
	if replica == c.n.id {
		return false
	}
	connected, silent, gone := c.n.state(replica)
	if !connected {
		return c.failed(errAway)
	}
	if silent { // a request might reach it later, when the client repeats it
		if _, err := c.n.ask(c.n.frames(replica, "q"), gone); err != nil {
			return !gone && !errors.Is(err, nats.ErrNoResponders) && c.failed(errAway)
		}
	}
	c.n.mu.Lock()
	c.n.number++
	x := c.n.beginLocked(exchangeID{number: c.n.number}, replica, func() {})
	x.server, x.stream = c.f.Server, c.r.Method == http.MethodGet
	c.n.mu.Unlock()
	defer context.AfterFunc(c.r.Context(), func() { x.abort(context.Canceled) })()
	for data := c.encode(open); len(data) > 0; {
		part := data[:min(len(data), c.n.maxPart)]
		data = data[len(part):]
		if err := x.send(part, len(data) == 0); err != nil {
			return c.failed(err)
		}
	}
	return c.respond(x)
}

// encode returns a line with what httpcheck.Forward says, and the request, as of HTTP/1.1.
func (c *call) encode(open bool) []byte {
	to := url.Values{"server": {c.f.Server}, "id": {c.f.ID}, "open": {strconv.FormatBool(open)}, "principal": {c.f.Principal}, "addr": {netip.AddrPortFrom(c.f.Addr, 0).String()}}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n",
		to.Encode(), c.r.Method, oneLine(c.r.URL.RequestURI()), oneLine(cmp.Or(c.r.Host, "-")), len(c.f.Body))
	_ = c.r.Header.WriteSubset(&b, notForwarded) // a Buffer takes all
	b.WriteString("\r\n")
	b.Write(c.f.Body)
	return b.Bytes()
}

// respond writes the response of the replica. It reports false if the connection is not there.
func (c *call) respond(x *exchange) (answered bool) {
	part, err := x.receive()
	if err != nil && err != io.EOF {
		return c.failed(err)
	}
	defer x.end(errOver)
	b := bytes.NewBuffer(part)
	r := textproto.NewReader(bufio.NewReaderSize(b, min(len(part), 4<<10)))
	line, _ := r.ReadLine()
	status, lineErr := strconv.Atoi(line)
	header, headErr := r.ReadMIMEHeader()
	switch {
	case errors.Join(lineErr, headErr) != nil:
		return c.failed(errOver)
	case status == statusGone:
		return c.failed(errGone)
	case status == statusBusy:
		return c.failed(errBusy)
	}
	c.n.metrics.ForwardBegan(time.Since(c.began))
	maps.Copy(c.w.Header(), header)
	c.w.WriteHeader(status)
	part, _ = io.ReadAll(r.R)
	result := c.copy(x, part, err)
	if c.n.metrics.Forwarded(result); result == metrics.ForwardCut {
		panic(http.ErrAbortHandler)
	}
	return true
}

// copy writes the rest of a response, which begins with part. A stream ends in order when
// this replica shuts down, as the client opens another one then.
func (c *call) copy(x *exchange, part []byte, err error) (result string) {
	control := http.NewResponseController(c.w)
	deadline := httpcheck.NewDeadline(control, cmp.Or(c.f.WriteTimeout, 10*time.Second), c.r)
	for ; ; part, err = x.receive() {
		if len(part) > 0 || err == nil {
			if _, err := deadline.Write(c.w, part, nil); err != nil {
				x.abort(err)
				return metrics.ForwardCanceled
			}
		}
		switch {
		case err == io.EOF, errors.Is(err, errDraining):
			_ = control.SetWriteDeadline(time.Time{}) // the TCP connection may serve other requests
			return metrics.ForwardOK
		case errors.Is(err, context.Canceled):
			return metrics.ForwardCanceled
		case err != nil:
			return metrics.ForwardCut
		}
	}
}

// failed answers a request that has no response with 503. It reports false if no replica has
// received the request, or none has the connection.
func (c *call) failed(err error) (answered bool) {
	result, text, reason, again := metrics.ForwardUnreachable, "the replica of this connection was lost with the request", "replica_unreachable", false
	switch {
	case errors.Is(err, errGone):
		return false
	case errors.Is(err, context.Canceled):
		c.n.metrics.Forwarded(metrics.ForwardCanceled)
		return true
	case errors.Is(err, errBusy):
		result, text, reason, again = metrics.ForwardBusy, "the replica of this connection is busy: try again later", "server_busy", true
	case errors.Is(err, errAway), errors.Is(err, errDraining):
		c.w.Header().Set("Retry-After", "1")
		result, text, reason, again = metrics.ForwardUnavailable, "the replica of this connection cannot be reached now: try again later", "cluster_unavailable", true
	}
	c.n.metrics.Forwarded(result)
	id := jsonrpc.Null
	if m, err := jsonrpc.Parse(c.f.Body); err == nil && m.Kind == jsonrpc.Request {
		id = m.ID
	}
	body := append(jsonrpc.NewError(id, jsonrpc.ReasonError(text, reason, again)), '\n')
	_ = httpcheck.WriteJSON(c.w, c.r, http.StatusServiceUnavailable, body, 10*time.Second) // a client that is gone needs no answer
	return true
}
