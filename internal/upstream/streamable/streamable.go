// Package streamable is the client side of Streamable HTTP with sessions, MCP
// 2025-03-26 to 2025-11-25. It posts each message, resumes responses that break, and
// listens to a GET for what the server sends unasked.
package streamable

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"golang.org/x/sync/singleflight"

	"github.com/mcp-sse/mcp-sse/internal/buffer"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/upstream/exchange"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Conn is a session over Streamable HTTP, MCP 2025-03-26 to 2025-11-25. Each request
// is a POST in its own goroutine. Its response may be a stream, on which the server
// sends other messages before the answer; a stream that breaks is resumed if its
// events have ids. A GET carries what the server sends unasked. All other messages
// of the client are posted in order.
type Conn struct {
	*buffer.Queue // from the server; a message on the stream of the GET belongs to no request

	x   *exchange.Endpoint
	out *exchange.Poster
	// ctx lives as long as the session. It is no caller's, so it is kept here.
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup // the goroutines of the session
	close  sync.Once
	alive  singleflight.Group // asks whether the server still has the session
	tried  chan struct{}      // closed when the server has answered the first GET for its own messages

	mu      sync.Mutex // guards all below
	session string     // the id that the server has given; empty: none
	visits  bool       // the client has its person visit addresses
	version string     // the negotiated protocol version; empty before
	// opening is closed when the response to the last initialize has come, which has the id of the session, or
	// none comes; nil before that is sent.
	opening chan struct{}
	// accepted is closed when the server has taken notifications/initialized; nil
	// before that is sent. Requests that are sent later wait for it.
	accepted chan struct{}
	calls    exchange.Calls
	listens  bool  // the server has a stream for its own messages
	err      error // why the session is over; nil while it is not
	gone     bool  // the server no longer has the session
}

var _ jsonrpc.Attributed = (*Conn)(nil)

// New returns a session with the server behind x. It sends nothing.
func New(x *exchange.Endpoint) *Conn {
	c := &Conn{x: x, Queue: buffer.NewQueue(buffer.SendLimit), tried: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(x.Values)
	c.out = exchange.NewPoster(x, c.deliverOut)
	c.work.Go(func() { c.out.Run(c.ctx) }) // ends with the queue of out
	return c
}

// Send posts msg in the background. It fails with jsonrpc.ErrBusy while 4096
// requests, or 8 MiB of them, are unanswered, or 8 MiB of other messages are not
// posted, and with the reason after the end of the session.
func (c *Conn) Send(msg []byte) error {
	m, err := jsonrpc.Parse(msg)
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if m.Kind == jsonrpc.Request {
		return c.startCall(m, c.ask)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if k := c.calls.Open(jsonrpc.ID(m.RequestID.Value)); k != nil && m.Method == mcp.MethodCancelled {
		c.calls.Linger(k) // before the server knows: it may be slow to take that
	}
	if err := c.out.Queue.Offer(msg); err != nil {
		return err
	}
	if m.Method == mcp.MethodInitialized && c.accepted == nil {
		c.accepted = make(chan struct{})
	}
	return nil
}

// End ends the session because of err, which Recv returns after the last message.
// gone says that the server no longer has the session: Close need not delete it.
func (c *Conn) End(err error, gone bool) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.gone = c.gone || gone
	c.mu.Unlock()
	c.Queue.End(err)
	c.out.Queue.End(err)
	c.cancel()
}

// unreachable ends the session with a server that could not be reached for the request with that id,
// which is empty for any other message.
func (c *Conn) unreachable(id jsonrpc.ID, err error) {
	c.x.Log.Warn("server not reached", "err", err)
	c.End(&jsonrpc.NotTakenError{ID: id, Err: exchange.LostSession(err)}, true)
}

// Close posts what was sent before, tells the server that the session is over, and
// ends all requests. It waits for the answer to initialize, without which the server would keep the session. It
// takes at most 2 s.
func (c *Conn) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), exchange.CloseTimeout)
	defer cancel()
	return c.CloseWithin(ctx)
}

// CloseWithin is Close with another time than 2 s.
func (c *Conn) CloseWithin(ctx context.Context) error {
	c.close.Do(func() {
		c.mu.Lock()
		over := c.err != nil
		if !over {
			c.err = jsonrpc.ErrClosed
		}
		opening := c.opening
		c.mu.Unlock()
		c.Queue.Abort(jsonrpc.ErrClosed)
		c.out.Queue.End(jsonrpc.ErrClosed)
		if !over {
			c.out.Drained(ctx)
		}
		if !over && opening != nil {
			select {
			case <-opening:
			case <-ctx.Done():
			}
		}
		c.delete(ctx)
		c.cancel()
		c.work.Wait()
	})
	return nil
}

// delete tells the server that the session is over. The server may refuse (405); its
// answer changes nothing.
func (c *Conn) delete(ctx context.Context) {
	c.mu.Lock()
	tell := c.session != "" && !c.gone
	c.mu.Unlock()
	if !tell {
		return
	}
	resp, err := c.x.Do(ctx, http.MethodDelete, nil, c.header(""))
	if err != nil {
		c.x.Log.Debug("server not told of the end of the session", "err", err)
		return
	}
	exchange.Discard(resp)
}

// header returns the headers of a request in the session. lastID is the last event
// of a stream to be resumed; empty for none.
func (c *Conn) header(lastID string) http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := make(http.Header, 3)
	for name, value := range map[string]string{exchange.HeaderSession: c.session, exchange.HeaderVersion: c.version,
		"Last-Event-Id": lastID} {
		if value != "" {
			h[name] = []string{value}
		}
	}
	return h
}

func (c *Conn) hasSession() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session != ""
}

// deliverOut posts a message that is not a request. Messages after
// notifications/initialized wait until the server has taken that.
func (c *Conn) deliverOut(ctx context.Context, m *jsonrpc.Message) {
	if err := c.post(ctx, m); err != nil {
		c.x.Undelivered(m, err)
	}
	if m.Method != mcp.MethodInitialized {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.accepted:
	default:
		close(c.accepted)
		if c.err == nil {
			c.work.Go(c.listen)
		}
	}
}

// post posts a message whose response does not matter, unless it ends the session. It
// fails if the server has not taken the message.
func (c *Conn) post(ctx context.Context, m *jsonrpc.Message) error {
	resp, err := c.x.Do(exchange.Quietly(ctx), http.MethodPost, m.Raw(), exchange.Repeatable(c.header("")))
	switch {
	case exchange.Unreached(err):
		c.unreachable("", err)
		return err
	case err != nil:
		return err
	case resp.StatusCode < 300:
		exchange.Discard(resp)
		return nil
	}
	defer resp.Body.Close()
	c.endIfOver(resp)
	return errors.New(exchange.Status(resp))
}

// probe posts a ping, and ends the session if the server does not have it any more. That
// the ping is answered at all matters, unless a proxy answers for the server.
func (c *Conn) probe(ctx context.Context, ping *jsonrpc.Message) {
	resp, err := c.x.Do(exchange.Quietly(ctx), http.MethodPost, ping.Raw(), exchange.Repeatable(c.header("")))
	switch {
	case exchange.Unreached(err):
		c.unreachable("", err)
	case err != nil && ctx.Err() == nil:
		c.End(fmt.Errorf("the server does not answer a ping: %s", exchange.PlainCause(err)), false)
	case err != nil: // it is alive, and slow
	case resp.StatusCode < 300:
		exchange.Discard(resp)
	default:
		defer resp.Body.Close()
		c.endIfOver(resp)
		if resp.StatusCode >= 500 && resp.Header.Get("Retry-After") == "" { // unless it has ended already
			c.End(fmt.Errorf("the server answered %s, also to a ping", exchange.Status(resp)), false)
		}
	}
}

// endIfOver ends the session if an unsuccessful response says that it is over.
func (c *Conn) endIfOver(resp *http.Response) {
	r := exchange.Reader{Endpoint: c.x, ID: jsonrpc.Null, HasSession: c.hasSession()}
	_, err := r.Read(resp)
	if _, ok := errors.AsType[*jsonrpc.Error](err); !ok && err != nil {
		c.End(err, errors.Is(err, exchange.ErrForgotten))
	}
}
