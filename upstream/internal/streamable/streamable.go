// Package streamable is the client side of Streamable HTTP with sessions, MCP
// 2025-03-26 to 2025-11-25: a POST for each message, resumption of responses, and
// a GET for what the server sends unasked.
package streamable

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/buffer"
	"github.com/mcp-sse/mcp-sse/upstream/internal/exchange"
)

// Conn is a session over Streamable HTTP, MCP 2025-03-26 to 2025-11-25. Each
// request is a POST in a goroutine of its own; its response may be a stream, on
// which the server sends other messages before the answer. A stream that breaks is
// resumed where the server has given its events ids. What is sent unasked comes on
// the stream of a GET. All else that we send is posted in order.
type Conn struct {
	x   *exchange.Endpoint
	in  *buffer.Queue // what the server has sent
	out *exchange.Poster
	// ctx lives as long as the session: it is no caller's, so it is kept here.
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup // the goroutines of the session
	close  sync.Once

	mu      sync.Mutex // guards all below
	session string     // the id that the server has given; empty: none
	version string     // of the protocol, once it is negotiated
	// accepted is closed when the server has taken notifications/initialized, nil
	// before that is sent. Requests that are sent later wait for it.
	accepted chan struct{}
	calls    exchange.Calls
	err      error         // why the session is over; nil while it is not
	gone     bool          // the server does not have the session any more
	asking   chan struct{} // closed when the server has been asked whether it lives; nil while it is not
}

var _ jsonrpc.Attributed = (*Conn)(nil)

// New returns a session with the server behind x.
func New(x *exchange.Endpoint) *Conn {
	c := &Conn{x: x, in: buffer.NewQueue(buffer.SendLimit)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.out = exchange.NewPoster(c.deliverOut)
	c.work.Go(func() { c.out.Run(c.ctx) })
	return c
}

// Send posts msg. It fails with jsonrpc.ErrBusy when 4096 requests, or 8 MiB of
// them, are not answered, or 8 MiB of other messages are not posted.
func (c *Conn) Send(msg []byte) error {
	m, err := jsonrpc.Parse(msg)
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if m.Kind == jsonrpc.Request {
		k, err := c.Begin(m)
		if err == nil {
			c.start(k, c.ask)
		}
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if err := c.out.Queue.Offer(msg); err != nil {
		return err
	}
	if m.Method == mcp.MethodInitialized && c.accepted == nil {
		c.accepted = make(chan struct{})
	}
	return nil
}

// start runs a goroutine of the session, unless that is closed: it ends with the
// session at the latest.
func (c *Conn) start(k *Call, run func(*Call)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.work.Go(func() { run(k) })
	}
}

// Recv returns the next message, from whichever response.
func (c *Conn) Recv() ([]byte, error) {
	msg, _, err := c.in.PopFor()
	return msg, err
}

// RecvFor is Recv, and names the request on whose response the message came.
func (c *Conn) RecvFor() ([]byte, jsonrpc.ID, error) { return c.in.PopFor() }

// End ends the session for a reason that is not ours. gone says that the server
// need not be told.
func (c *Conn) End(err error, gone bool) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.gone = c.gone || gone
	c.mu.Unlock()
	c.in.End(err)
	c.out.Queue.End(err)
	c.cancel()
}

// unreachable ends the session with a server that cannot be reached.
func (c *Conn) unreachable(err error) {
	c.x.Log.Warn("server not reached", "err", err)
	c.End(exchange.LostSession(err), true)
}

// Close posts what was sent before, tells the server that the session is over, and
// ends all requests. It takes at most 2 s.
func (c *Conn) Close() error {
	c.close.Do(func() {
		c.mu.Lock()
		over := c.err != nil
		if !over {
			c.err = jsonrpc.ErrClosed
		}
		c.mu.Unlock()
		c.in.Abort(jsonrpc.ErrClosed)
		c.out.Queue.End(jsonrpc.ErrClosed)
		ctx, cancel := context.WithTimeout(context.Background(), exchange.CloseTimeout)
		defer cancel()
		if !over {
			c.out.Drained(ctx)
		}
		c.delete(ctx)
		c.cancel()
		c.work.Wait()
	})
	return nil
}

// delete tells the server that the session is over. It may answer that it does not
// let clients do that (405), and whatever else it says changes nothing.
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

// header returns the headers of a request in the session; lastID is that of a
// stream to be resumed.
func (c *Conn) header(lastID string) http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := make(http.Header, 3)
	for name, value := range map[string]string{exchange.HeaderSession: c.session, exchange.HeaderVersion: c.version, exchange.HeaderLastID: lastID} {
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

// deliverOut posts a message that is no request. What comes after
// notifications/initialized waits until the server has taken it.
func (c *Conn) deliverOut(ctx context.Context, msg []byte) {
	m, err := jsonrpc.Parse(msg)
	if err != nil {
		return // Send has read it
	}
	c.postOut(ctx, m)
	switch m.Method {
	case mcp.MethodInitialized:
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
	case mcp.MethodCancelled:
		id, _ := jsonrpc.Member(m.Params(), "requestId")
		c.canceled(jsonrpc.ID(id))
	}
}

func (c *Conn) postOut(ctx context.Context, m *jsonrpc.Message) {
	header := c.header("")
	header["Idempotency-Key"] = nil // not sent: net/http may repeat it on another connection
	resp, err := c.x.Do(ctx, http.MethodPost, m.Raw(), header)
	switch {
	case exchange.Unreached(err):
		c.unreachable(err)
	case err != nil:
		c.x.Log.Debug("message not posted", "err", err)
	case resp.StatusCode < 300:
		exchange.Discard(resp)
	default:
		defer resp.Body.Close()
		r := exchange.ReadRefusal(resp, jsonrpc.Null, c.hasSession())
		c.x.Log.Debug("message not posted", "err", exchange.Status(resp))
		if r.Over != nil {
			c.End(r.Over, r.Over == exchange.ErrForgotten)
		}
	}
}
