// Package httpsse is the client side of HTTP+SSE, MCP 2024-11-05: it reads one stream
// of the server's messages, and posts to the endpoint that the stream names first.
package httpsse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/buffer"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/upstream/exchange"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// endpointTimeout bounds the wait for the endpoint event; the context of Dial may
// shorten it.
const endpointTimeout = 30 * time.Second

// Conn is a session over HTTP+SSE, MCP 2024-11-05. It lasts as long as the stream,
// which cannot be resumed. Messages of a server on one stream do not say which
// request they belong to.
type Conn struct {
	*buffer.Queue // from the server; its messages name no request

	x   *exchange.Endpoint // posts to the endpoint
	out *exchange.Poster
	// ctx lives as long as the session. It is no caller's, so it is kept here.
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	close  sync.Once
	visits atomic.Bool // the client has its person visit addresses
}

var _ jsonrpc.Attributed = (*Conn)(nil)

// Dial opens the stream and waits for the endpoint, at most 30 s. It fails with a
// *[NotStreamError] when the server answers with something else, and with an
// *[exchange.AccessError] when it refuses the credentials.
func Dial(ctx context.Context, x *exchange.Endpoint) (*Conn, error) {
	ctx, done := context.WithTimeout(ctx, endpointTimeout)
	defer done()
	c := &Conn{Queue: buffer.NewQueue(buffer.SendLimit)}
	c.ctx, c.cancel = context.WithCancel(x.Values)
	stop := context.AfterFunc(ctx, c.cancel)
	body, events, endpoint, err := openStream(c.ctx, x)
	if !stop() && err == nil {
		body.Close()
		err = ctx.Err()
	}
	if err != nil {
		c.cancel()
		switch {
		case errors.Is(ctx.Err(), context.Canceled):
			err = &closedError{x.Place()}
		case ctx.Err() != nil:
			err = fmt.Errorf("GET %s: no endpoint event came: %w", x.Place(), ctx.Err())
		}
		return nil, err
	}
	posts := *x
	posts.URL = endpoint
	c.x = &posts
	c.out = exchange.NewPoster(c.x, c.post)
	push := func(m *jsonrpc.Message) error { return c.Queue.Push(m.Raw(), "") }
	c.work.Go(func() { // ends with the stream
		defer body.Close()
		if err := c.x.Deliver(push, events); err != nil { // a second endpoint is no message
			c.over(c.streamEnd(err))
		}
	})
	c.work.Go(func() { c.out.Run(c.ctx) }) // ends with the queue of out
	return c, nil
}

// closedError says that the session was closed while it waited for the endpoint. It is context.Canceled.
type closedError struct{ place string }

func (e *closedError) Error() string {
	return "GET " + e.place + ": no endpoint event came before the session was closed"
}
func (e *closedError) Unwrap() error { return context.Canceled }

// NotStreamError says that the answer to the GET is no event stream.
type NotStreamError struct {
	Status string // such as "404 Not Found", with the target of a redirect
	place  string
}

// Error names the place and the status.
func (e *NotStreamError) Error() string {
	return "GET " + e.place + ": the answer is not an event stream but " + e.Status
}

// openStream opens the stream and reads up to the endpoint event. It skips the events
// before, which do not belong there.
func openStream(ctx context.Context, x *exchange.Endpoint) (body io.Closer, events *exchange.EventReader,
	endpoint string, err error) {
	resp, err := x.Do(ctx, http.MethodGet, nil, nil)
	if err != nil {
		return nil, nil, "", err
	}
	in := exchange.NewEventReader(resp.Body, x.Limit, exchange.Cursor{})
	defer func() {
		if err != nil {
			resp.Body.Close()
		}
	}()
	if err := x.CheckAccess(resp); err != nil {
		return nil, nil, "", err
	}
	switch {
	case exchange.IsRedirect(resp):
		return nil, nil, "", &NotStreamError{fmt.Sprintf("%s (a redirect to %s)", exchange.Status(resp),
			x.Target(resp)), x.Place()}
	case !exchange.IsStream(resp):
		return nil, nil, "", &NotStreamError{exchange.Status(resp), x.Place()}
	}
	if err := exchange.Encoded(resp); err != nil {
		return nil, nil, "", fmt.Errorf("GET %s: %w", x.Place(),
			&EndpointError{fmt.Sprintf("the event stream %v", err)})
	}
	for {
		ev, err := in.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil, nil, "", fmt.Errorf("GET %s: the stream ended without an endpoint event", x.Place())
		case err != nil:
			return nil, nil, "", fmt.Errorf("GET %s: no endpoint event came: %w", x.Place(), err)
		case ev.Name == "endpoint":
			endpoint, err = resolveEndpoint(resp.Request.URL, ev.Data)
			if err != nil {
				return nil, nil, "", fmt.Errorf("GET %s: %w", x.Place(), err)
			}
			return resp.Body, in, endpoint, nil
		}
	}
}

// EndpointError says that the stream names no address to which messages can be posted, or
// cannot be read.
type EndpointError struct{ why string }

func (e *EndpointError) Error() string { return e.why }

// resolveEndpoint returns the URL for POSTs. It must be at the server of the stream:
// another origin must not get the credentials.
func resolveEndpoint(stream *url.URL, data []byte) (string, error) {
	at, err := stream.Parse(string(bytes.TrimSpace(data)))
	if err != nil {
		return "", &EndpointError{"the endpoint event holds no URL"}
	}
	if !exchange.SameServer(stream, at) {
		return "", &EndpointError{fmt.Sprintf("the endpoint event names another origin, %.200s://%.200s: "+
			"let the server name a path, or configure the address that it uses", at.Scheme, at.Host)}
	}
	at.User = stream.User
	return at.String(), nil
}

func (c *Conn) streamEnd(err error) error {
	switch {
	case errors.Is(err, jsonrpc.ErrTooLong):
		return c.x.TooLong()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the server ended the event stream: %w", io.EOF)
	}
	return errors.New("the event stream broke off: " + exchange.PlainCause(err))
}

// over ends the session because of err.
func (c *Conn) over(err error) {
	c.out.Queue.End(err) // first: Send fails for those who have seen the end
	c.Queue.End(err)
	c.cancel()
}

// Send posts msg in the background, in order. It fails with jsonrpc.ErrBusy while
// 8 MiB are not posted, and with the reason after the end of the session.
func (c *Conn) Send(msg []byte) error { return c.out.Queue.Offer(msg) }

// Close posts what was sent before, and ends the stream. It takes at most 2 s.
func (c *Conn) Close() error {
	c.close.Do(func() {
		c.Queue.Abort(jsonrpc.ErrClosed)
		c.out.Queue.End(jsonrpc.ErrClosed)
		ctx, cancel := context.WithTimeout(c.ctx, exchange.CloseTimeout)
		c.out.Drained(ctx)
		cancel()
		c.cancel()
		c.work.Wait()
	})
	return nil
}

// post posts one message. The answer to a request comes on the stream, but a failed
// POST is itself the answer.
func (c *Conn) post(ctx context.Context, m *jsonrpc.Message) {
	if m.Method == mcp.MethodInitialize {
		c.visits.Store(mcp.VisitsURLs(m.Param("capabilities").Value))
	}
	resp, err := c.x.Do(ctx, http.MethodPost, m.Raw(), nil)
	var response []byte
	switch {
	case exchange.Unreached(err):
		c.x.Log.Warn("server not reached", "err", err)
		c.over(notTaken(m, exchange.LostSession(err)))
		return
	case err != nil:
		response = jsonrpc.NewError(m.ID, exchange.LostResponse(err))
	case resp.StatusCode < 300:
		exchange.Discard(resp)
		return
	case resp.StatusCode == http.StatusNotFound:
		resp.Body.Close()
		c.over(notTaken(m, exchange.ErrForgotten))
		return
	default:
		defer resp.Body.Close()
		err = errors.New(exchange.Status(resp))
		if m.Kind == jsonrpc.Request { // else nobody waits for the body
			response = c.refusal(m, resp)
		}
	}
	if m.Kind != jsonrpc.Request {
		c.x.Undelivered(m, err)
		return
	}
	_ = c.Queue.Push(response, "") // fails at the end of the session, when nobody waits
}

// notTaken returns err, with which the session ends before the server has taken m.
func notTaken(m *jsonrpc.Message, err error) error {
	if m.Kind == jsonrpc.Request {
		return &jsonrpc.NotTakenError{ID: m.ID, Err: err}
	}
	return err
}

// refusal returns the answer for an unsuccessful response. 5xx does not end the
// session: the stream tells whether the server has it.
func (c *Conn) refusal(m *jsonrpc.Message, resp *http.Response) []byte {
	r := exchange.Reader{Endpoint: c.x, ID: m.ID, IsCall: m.Method == mcp.MethodCallTool,
		VisitsURLs: c.visits.Load()}
	response, err := r.Read(resp)
	if err == nil {
		return response.Raw()
	}
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		e = exchange.NewError(exchange.ErrorData{Reason: exchange.ReasonRefused, Status: resp.StatusCode}, "%v", err)
	}
	return jsonrpc.NewError(m.ID, e)
}
