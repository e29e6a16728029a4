package statelessserver

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream/internal/buffer"
	"github.com/mcp-sse/mcp-sse/upstream/internal/exchange"
)

// Pipe is a session with a server on a pipe, of any version. It passes messages as they
// are, until the server refuses initialize. Then it asks server/discover: a server of MCP
// 2026-07-28 alone is served by a Conn, whose HTTP requests a pipeClient takes to the pipe.
// Any other server has refused.
//
// A refusal starts a goroutine that reads the pipe, and one that asks. Both end with it.
type Pipe struct {
	pipe jsonrpc.Conn
	x    *exchange.Endpoint

	settled atomic.Bool                  // the server has answered initialize: nothing more to find out
	modern  atomic.Pointer[Conn]         // set at the decision, if that is for it
	queue   atomic.Pointer[buffer.Queue] // of what Recv returns after a refusal; nil before

	mu     sync.Mutex // guards what follows
	closed bool
	first  *jsonrpc.Message // the initialize that the server has not answered; nil: none
	work   sync.WaitGroup   // of the goroutines
}

var _ jsonrpc.Attributed = (*Pipe)(nil)

// NewPipe returns a session over pipe, which it then owns. Messages have at most limit bytes.
func NewPipe(pipe jsonrpc.Conn, limit int, log *slog.Logger) *Pipe {
	p := &Pipe{pipe: pipe}
	p.x = &exchange.Endpoint{URL: "http://server", Limit: limit, Log: log}
	p.x.Client = &http.Client{Transport: &pipeClient{pipe: pipe, open: make(map[jsonrpc.ID]*response)}}
	return p
}

func (p *Pipe) client() *pipeClient { return p.x.Client.Transport.(*pipeClient) }

// Send sends msg to the server.
func (p *Pipe) Send(msg []byte) error {
	if c := p.modern.Load(); c != nil {
		return c.Send(msg)
	}
	if !p.settled.Load() {
		if m, err := jsonrpc.Parse(msg); err == nil && m.Kind == jsonrpc.Request && m.Method == mcp.MethodInitialize {
			p.mu.Lock()
			p.first = m
			p.mu.Unlock()
		}
	}
	return p.pipe.Send(msg)
}

// Recv is RecvFor without the request.
func (p *Pipe) Recv() ([]byte, error) {
	msg, _, err := p.RecvFor()
	return msg, err
}

// RecvFor returns the next message, and the request that it came with if that is known.
func (p *Pipe) RecvFor() ([]byte, jsonrpc.ID, error) {
	if p.queue.Load() == nil {
		msg, err := p.pipe.Recv()
		if err != nil || p.settled.Load() || !p.refused(msg) {
			return msg, "", err
		}
	}
	return p.queue.Load().RecvFor()
}

// refused reports whether msg refuses initialize, and begins to find out why.
func (p *Pipe) refused(msg []byte) bool {
	m, err := jsonrpc.Parse(msg)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil || p.closed || m.Kind != jsonrpc.Response || p.first == nil || m.ID != p.first.ID {
		return false
	}
	p.settled.Store(true)
	if m.Error() == nil {
		p.first = nil
		return false
	}
	queue := buffer.NewQueue(buffer.SendLimit)
	p.queue.Store(queue)
	ctx, cancel := context.WithCancel(context.Background())
	p.work.Go(func() { p.read(queue, cancel) })     // ends with the pipe
	p.work.Go(func() { p.decide(ctx, queue, msg) }) // ends with the answer, after 10 s, or with ctx
	return true
}

// decide finds out whether the server that has sent the refusal is modern.
func (p *Pipe) decide(ctx context.Context, queue *buffer.Queue, refusal []byte) {
	found, _ := Discover(ctx, p.x) // what fails it says less than the refusal
	if found == nil {
		_ = queue.Push(refusal, "") // fails at the end of the pipe
		return
	}
	c := New(p.x, found)
	c.Queue = queue
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = c.Send(p.first.Raw()) // has room, and is not closed
	p.modern.Store(c)
	if ctx.Err() != nil { // the pipe has ended meanwhile
		c.gone(p.client().why)
	}
}

// read passes on what the server sends, until the pipe ends. Then it calls ended.
func (p *Pipe) read(queue *buffer.Queue, ended func()) {
	for {
		msg, err := p.pipe.Recv()
		if err != nil {
			p.client().end(err)
			queue.End(err)
			ended() // a decision after this sees it, one before is seen here
			if c := p.modern.Load(); c != nil {
				c.gone(err)
			}
			return
		}
		m, err := jsonrpc.Parse(msg)
		switch c := p.modern.Load(); {
		case err == nil && p.client().take(m):
		case c == nil, err == nil && m.Kind == jsonrpc.Notification:
			_ = queue.Push(msg, "") // fails at the end
		case m != nil:
			c.drop(m)
		}
	}
}

// gone ends the session, because its pipe has ended.
func (c *Conn) gone(why error) {
	c.setClosed(why)
	c.cancel()
}

// Close ends the session.
func (p *Pipe) Close() error {
	if c := p.modern.Load(); c != nil {
		_ = c.Close() // never fails
	}
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	if queue := p.queue.Load(); queue != nil {
		queue.Abort(jsonrpc.ErrClosed)
	}
	err := p.pipe.Close()
	p.work.Wait()
	return err
}

// pipeClient is the http.RoundTripper of a Conn on a pipe: it sends the message of a POST
// to the pipe, and makes an event stream of the answer and what belongs to it.
type pipeClient struct {
	pipe jsonrpc.Conn

	mu   sync.Mutex // guards what follows
	last int
	open map[jsonrpc.ID]*response // by their ids on the pipe
	why  error                    // why the pipe has ended; nil before
}

// response is an HTTP response on its way.
type response struct {
	id    jsonrpc.ID // of the request
	token string     // its progress token; empty for none
	body  *io.PipeWriter
}

// RoundTrip sends the message of req. The response is there at once.
func (t *pipeClient) RoundTrip(req *http.Request) (*http.Response, error) {
	data, err := io.ReadAll(req.Body)
	_ = req.Body.Close()
	if err != nil {
		return nil, err
	}
	m, err := jsonrpc.Parse(data)
	if err != nil {
		return nil, err
	}
	body, w := io.Pipe()
	r := &response{id: m.ID, token: string(m.Token.Value), body: w}
	wire, err := t.add(r)
	if err != nil {
		return nil, err
	}
	if err := t.pipe.Send(m.WithID(wire)); err != nil {
		t.remove(wire)
		return nil, err
	}
	context.AfterFunc(req.Context(), func() { // the context of a request of a Conn ends with it
		_ = w.CloseWithError(context.Cause(req.Context()))
		if t.remove(wire) {
			params := `{"requestId":` + string(wire) + `,"reason":"no longer needed"}`
			_ = t.pipe.Send(jsonrpc.NewNotification(mcp.MethodCancelled, []byte(params))) // best effort
		}
	})
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body, ContentLength: -1, Request: req,
	}, nil
}

func (t *pipeClient) add(r *response) (wire jsonrpc.ID, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.why != nil {
		return "", t.why
	}
	t.last++
	wire = jsonrpc.ID(strconv.Quote("s-" + strconv.Itoa(t.last))) // none of the ids before the decision
	t.open[wire] = r
	return wire, nil
}

func (t *pipeClient) remove(wire jsonrpc.ID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, open := t.open[wire]
	delete(t.open, wire)
	return open
}

// take writes a message of the server to the response that it belongs to. It reports false
// if it is not known to belong to one.
func (t *pipeClient) take(m *jsonrpc.Message) bool {
	wire := m.ID
	if m.Kind == jsonrpc.Notification {
		wire = t.of(m)
	}
	t.mu.Lock()
	r := t.open[wire]
	last := r != nil && (m.Kind == jsonrpc.Response || m.Method == mcp.MethodCancelled)
	if last {
		delete(t.open, wire)
	}
	t.mu.Unlock()
	if r == nil || m.Kind == jsonrpc.Request {
		return false
	}
	data := m.Raw()
	if m.Kind == jsonrpc.Response {
		data = m.WithID(r.id)
	}
	if m.Method != mcp.MethodCancelled { // that ends a response without an answer
		_, _ = r.body.Write([]byte("data: " + string(data) + "\n\n")) // fails when nobody reads it any more
	}
	if last {
		_ = r.body.Close() // never fails
	}
	return true
}

// of returns the id on the pipe of the request that a notification belongs to; empty if that
// is not known.
func (t *pipeClient) of(m *jsonrpc.Message) jsonrpc.ID {
	if m.Method == mcp.MethodCancelled {
		return jsonrpc.ID(m.RequestID.Value)
	}
	if raw, ok := jsonrpc.Member(m.Params(), "_meta", mcp.MetaSubscription); ok {
		return jsonrpc.ID(raw)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for wire, r := range t.open {
		if m.Method == mcp.MethodProgress && r.token != "" && r.token == string(m.Token.Value) {
			return wire
		}
	}
	return ""
}

// end ends all responses, because the pipe has ended.
func (t *pipeClient) end(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.why = why
	for wire, r := range t.open {
		delete(t.open, wire)
		_ = r.body.CloseWithError(why)
	}
}
