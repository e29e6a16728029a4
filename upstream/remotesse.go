package upstream

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
)

// endpointTimeout bounds the wait for the endpoint event, where the caller of Dial
// has no shorter one.
const endpointTimeout = 30 * time.Second

// remoteSSE is a session over HTTP+SSE, MCP 2024-11-05: a stream of the server's
// messages, and POSTs to the endpoint that it names first. The session is as long
// as the stream: it cannot be resumed.
type remoteSSE struct {
	x   *exchange // posts to the endpoint
	in  *queue
	out *poster
	// ctx lives as long as the session: it is no caller's, so it is kept here.
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	close  sync.Once
}

var _ jsonrpc.Attributed = (*remoteSSE)(nil)

// dialSSE opens the stream and waits for the endpoint. An answer that is no event
// stream is a *notSSEError.
func dialSSE(ctx context.Context, x *exchange) (*remoteSSE, error) {
	ctx, done := context.WithTimeout(ctx, endpointTimeout)
	defer done()
	c := &remoteSSE{in: newQueue(sendLimit)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, c.cancel)
	body, events, endpoint, err := openSSE(c.ctx, x)
	if !stop() && err == nil {
		body.Close()
		err = ctx.Err()
	}
	if err != nil {
		c.cancel()
		if ctx.Err() != nil {
			err = fmt.Errorf("GET %s: no endpoint event came: %w", x.place(), ctx.Err())
		}
		return nil, err
	}
	posts := *x
	posts.url = endpoint
	c.x = &posts
	c.out = newPoster(c.post)
	c.work.Go(func() { c.read(body, events) }) // ends with the stream
	c.work.Go(func() { c.out.run(c.ctx) })
	return c, nil
}

// notSSEError is the answer to a GET that is no event stream.
type notSSEError struct {
	place, status string
	code          int
}

func (e *notSSEError) Error() string {
	return "GET " + e.place + ": the answer is no event stream, but " + e.status
}

// openSSE opens the stream and reads it up to the endpoint. What comes before that
// does not belong there, and is skipped.
func openSSE(ctx context.Context, x *exchange) (body io.Closer, events *eventReader, endpoint string, err error) {
	resp, err := x.do(ctx, http.MethodGet, nil, nil)
	if err != nil {
		return nil, nil, "", err
	}
	defer func() {
		if err != nil {
			resp.Body.Close()
		}
	}()
	if refusesAccess(resp) {
		return nil, nil, "", newAccessError(x, resp)
	}
	if resp.StatusCode >= 300 || contentType(resp) != typeEvents {
		return nil, nil, "", &notSSEError{x.place(), status(resp), resp.StatusCode}
	}
	events = newEventReader(resp.Body, x.limit)
	for {
		ev, err := events.read()
		switch {
		case errors.Is(err, io.EOF):
			return nil, nil, "", fmt.Errorf("GET %s: the stream ended without an endpoint event", x.place())
		case err != nil:
			return nil, nil, "", fmt.Errorf("GET %s: no endpoint event came: %w", x.place(), err)
		case ev.name == "endpoint" && !ev.tooLong:
			endpoint, err = resolveEndpoint(resp.Request.URL, ev.data)
			if err != nil {
				return nil, nil, "", fmt.Errorf("GET %s: %w", x.place(), err)
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
	if !sameOrigin(stream, at) {
		return "", fmt.Errorf("the endpoint event names another origin, %.200s://%.200s: let the server name a path, or configure the address that it uses", at.Scheme, at.Host)
	}
	at.User = stream.User
	return at.String(), nil
}

// read takes what the server sends, to the end of the stream.
func (c *remoteSSE) read(body io.Closer, events *eventReader) {
	defer body.Close()
	for {
		ev, err := events.read()
		if err != nil {
			c.over(streamEnd(err))
			return
		}
		if ev.name != "" && ev.name != "message" {
			continue // a second endpoint too: where to post to does not change
		}
		if ev.tooLong {
			err = c.in.push(nil) // Recv tells
		} else if len(ev.data) > 0 {
			err = handOn(c.x, c.in, incoming{data: oneLine(ev.data)})
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
	return errors.New("the event stream broke off: " + plainCause(err))
}

// over ends the session for a reason that is not ours.
func (c *remoteSSE) over(err error) {
	c.out.queue.end(err) // first: who has seen the end cannot send any more
	c.in.end(err)
	c.cancel()
}

// Send queues msg to be posted. It fails with jsonrpc.ErrBusy when 8 MiB are not
// posted.
func (c *remoteSSE) Send(msg []byte) error { return c.out.queue.offer(msg) }

// Recv returns the next message of the stream.
func (c *remoteSSE) Recv() ([]byte, error) {
	msg, _, err := c.RecvFor()
	return msg, err
}

// RecvFor is Recv: on the one stream messages do not tell what they belong to.
func (c *remoteSSE) RecvFor() ([]byte, jsonrpc.ID, error) {
	msg, err := c.in.pop()
	if msg == nil && err == nil {
		err = jsonrpc.ErrTooLong
	}
	return msg, "", err
}

// Close posts what was sent before, and ends the stream. It takes at most 2 s.
func (c *remoteSSE) Close() error {
	c.close.Do(func() {
		c.in.abort(jsonrpc.ErrClosed)
		c.out.queue.end(jsonrpc.ErrClosed)
		ctx, cancel := context.WithTimeout(c.ctx, closeTimeout)
		c.out.drained(ctx)
		cancel()
		c.cancel()
		c.work.Wait()
	})
	return nil
}

// post posts one message. The answer to a request comes on the stream; a POST that
// fails is the answer itself.
func (c *remoteSSE) post(ctx context.Context, msg []byte) {
	m, err := jsonrpc.Parse(msg)
	if err != nil {
		return // it is not known what it was
	}
	resp, err := c.x.do(ctx, http.MethodPost, msg, nil)
	switch {
	case unreached(err):
		c.x.log.Warn("server not reached", "err", err)
		c.over(lostSession(err))
	case err != nil:
		c.fail(m, lostResponse(plainCause(err)))
	case resp.StatusCode < 300:
		discard(resp)
	case resp.StatusCode == http.StatusNotFound:
		resp.Body.Close()
		c.over(errForgotten)
	default:
		defer resp.Body.Close()
		r := refused(resp, m.ID, false)
		if r.over != nil {
			c.fail(m, remoteError(remoteData{Reason: reasonRefused, Status: resp.StatusCode}, "%v", r.over))
			return
		}
		c.answer(m, r.answer)
	}
}

func (c *remoteSSE) fail(m *jsonrpc.Message, e *jsonrpc.Error) {
	c.answer(m, jsonrpc.NewError(m.ID, e))
}

// answer answers a message, if it is one that has to be.
func (c *remoteSSE) answer(m *jsonrpc.Message, response []byte) {
	if m.Kind != jsonrpc.Request {
		c.x.log.Debug("message not posted", "method", m.Method)
		return
	}
	_ = c.in.push(response) // fails when nobody waits any more
}
