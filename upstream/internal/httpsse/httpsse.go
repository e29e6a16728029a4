// Package httpsse is the client side of HTTP+SSE, MCP 2024-11-05: one stream of the
// server's messages, and POSTs to the endpoint that the stream names first.
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
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/buffer"
	"github.com/mcp-sse/mcp-sse/upstream/internal/exchange"
)

// endpointTimeout bounds the wait for the endpoint event, where the caller of Dial
// has no shorter one.
const endpointTimeout = 30 * time.Second

// Conn is a session over HTTP+SSE, MCP 2024-11-05: a stream of the server's
// messages, and POSTs to the endpoint that it names first. The session is as long
// as the stream: it cannot be resumed.
type Conn struct {
	x   *exchange.Endpoint // posts to the endpoint
	in  *buffer.Queue
	out *exchange.Poster
	// ctx lives as long as the session: it is no caller's, so it is kept here.
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	close  sync.Once
}

var _ jsonrpc.Attributed = (*Conn)(nil)

// Dial opens the stream and waits for the endpoint. An answer that is no event
// stream is a *notSSEError.
func Dial(ctx context.Context, x *exchange.Endpoint) (*Conn, error) {
	ctx, done := context.WithTimeout(ctx, endpointTimeout)
	defer done()
	c := &Conn{in: buffer.NewQueue(buffer.SendLimit)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, c.cancel)
	body, events, endpoint, err := openStream(c.ctx, x)
	if !stop() && err == nil {
		body.Close()
		err = ctx.Err()
	}
	if err != nil {
		c.cancel()
		if ctx.Err() != nil {
			err = fmt.Errorf("GET %s: no endpoint event came: %w", x.Place(), ctx.Err())
		}
		return nil, err
	}
	posts := *x
	posts.URL = endpoint
	c.x = &posts
	c.out = exchange.NewPoster(c.post)
	c.work.Go(func() { c.read(body, events) }) // ends with the stream
	c.work.Go(func() { c.out.Run(c.ctx) })
	return c, nil
}

// NotStreamError is the answer to a GET that is no event stream.
type NotStreamError struct {
	place, Status string
	code          int
}

// Error names the place and what came instead.
func (e *NotStreamError) Error() string {
	return "GET " + e.place + ": the answer is no event stream, but " + e.Status
}

// openStream opens the stream and reads it up to the endpoint. What comes before that
// does not belong there, and is skipped.
func openStream(ctx context.Context, x *exchange.Endpoint) (body io.Closer, events *exchange.EventReader, endpoint string, err error) {
	resp, err := x.Do(ctx, http.MethodGet, nil, nil)
	if err != nil {
		return nil, nil, "", err
	}
	defer func() {
		if err != nil {
			resp.Body.Close()
		}
	}()
	if exchange.RefusesAccess(resp) {
		return nil, nil, "", exchange.NewAccessError(x, resp)
	}
	if resp.StatusCode >= 300 || exchange.ContentType(resp) != exchange.TypeEvents {
		return nil, nil, "", &NotStreamError{x.Place(), exchange.Status(resp), resp.StatusCode}
	}
	events = exchange.NewEventReader(resp.Body, x.Limit)
	for {
		ev, err := events.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil, nil, "", fmt.Errorf("GET %s: the stream ended without an endpoint event", x.Place())
		case err != nil:
			return nil, nil, "", fmt.Errorf("GET %s: no endpoint event came: %w", x.Place(), err)
		case ev.Name == "endpoint" && !ev.TooLong:
			endpoint, err = resolveEndpoint(resp.Request.URL, ev.Data)
			if err != nil {
				return nil, nil, "", fmt.Errorf("GET %s: %w", x.Place(), err)
			}
			return resp.Body, events, endpoint, nil
		}
	}
}

// resolveEndpoint returns where messages are posted to. It has to be of the origin
// of the stream: another one must not get the credentials.
func resolveEndpoint(stream *url.URL, data []byte) (string, error) {
	at, err := stream.Parse(string(bytes.TrimSpace(data)))
	if err != nil {
		return "", errors.New("the endpoint event holds no URL")
	}
	if !exchange.SameOrigin(stream, at) {
		return "", fmt.Errorf("the endpoint event names another origin, %.200s://%.200s: let the server name a path, or configure the address that it uses", at.Scheme, at.Host)
	}
	at.User = stream.User
	return at.String(), nil
}

// read takes what the server sends, to the end of the stream.
func (c *Conn) read(body io.Closer, events *exchange.EventReader) {
	defer body.Close()
	for {
		ev, err := events.Read()
		if err != nil {
			c.over(streamEnd(err))
			return
		}
		if ev.Name != "" && ev.Name != "message" {
			continue // a second endpoint too: where to post to does not change
		}
		if ev.TooLong {
			err = c.in.Push(nil) // Recv tells
		} else if len(ev.Data) > 0 {
			err = c.x.Deliver(c.in, exchange.Incoming{Data: exchange.OneLine(ev.Data)})
		}
		if err != nil {
			return
		}
	}
}

func streamEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the server ended the event stream: %w", io.EOF)
	}
	return errors.New("the event stream broke off: " + exchange.PlainCause(err))
}

// over ends the session for a reason that is not ours.
func (c *Conn) over(err error) {
	c.out.Queue.End(err) // first: who has seen the end cannot send any more
	c.in.End(err)
	c.cancel()
}

// Send queues msg to be posted. It fails with jsonrpc.ErrBusy when 8 MiB are not
// posted.
func (c *Conn) Send(msg []byte) error { return c.out.Queue.Offer(msg) }

// Recv returns the next message of the stream.
func (c *Conn) Recv() ([]byte, error) {
	msg, _, err := c.RecvFor()
	return msg, err
}

// RecvFor is Recv: on the one stream messages do not tell what they belong to.
func (c *Conn) RecvFor() ([]byte, jsonrpc.ID, error) {
	msg, err := c.in.Pop()
	if msg == nil && err == nil {
		err = jsonrpc.ErrTooLong
	}
	return msg, "", err
}

// Close posts what was sent before, and ends the stream. It takes at most 2 s.
func (c *Conn) Close() error {
	c.close.Do(func() {
		c.in.Abort(jsonrpc.ErrClosed)
		c.out.Queue.End(jsonrpc.ErrClosed)
		ctx, cancel := context.WithTimeout(c.ctx, exchange.CloseTimeout)
		c.out.Drained(ctx)
		cancel()
		c.cancel()
		c.work.Wait()
	})
	return nil
}

// post posts one message. The answer to a request comes on the stream; a POST that
// fails is the answer itself.
func (c *Conn) post(ctx context.Context, msg []byte) {
	m, err := jsonrpc.Parse(msg)
	if err != nil {
		return // it is not known what it was
	}
	resp, err := c.x.Do(ctx, http.MethodPost, msg, nil)
	switch {
	case exchange.Unreached(err):
		c.x.Log.Warn("server not reached", "err", err)
		c.over(exchange.LostSession(err))
	case err != nil:
		c.fail(m, exchange.LostResponse(exchange.PlainCause(err)))
	case resp.StatusCode < 300:
		exchange.Discard(resp)
	case resp.StatusCode == http.StatusNotFound:
		resp.Body.Close()
		c.over(exchange.ErrForgotten)
	default:
		defer resp.Body.Close()
		r := exchange.ReadRefusal(resp, m.ID, false)
		if r.Over != nil {
			c.fail(m, exchange.NewError(exchange.ErrorData{Reason: exchange.ReasonRefused, Status: resp.StatusCode}, "%v", r.Over))
			return
		}
		c.answer(m, r.Answer)
	}
}

func (c *Conn) fail(m *jsonrpc.Message, e *jsonrpc.Error) {
	c.answer(m, jsonrpc.NewError(m.ID, e))
}

// answer answers a message, if it is one that has to be.
func (c *Conn) answer(m *jsonrpc.Message, response []byte) {
	if m.Kind != jsonrpc.Request {
		c.x.Log.Debug("message not posted", "method", m.Method)
		return
	}
	_ = c.in.Push(response) // fails when nobody waits any more
}
