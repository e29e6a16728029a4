package statelessserver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/mcp-sse/mcp-sse/internal/buffer"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/upstream/exchange"
	"github.com/mcp-sse/mcp-sse/internal/wire"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Pipe is a session with a server on a pipe, of any version. It passes messages as they
// are, until the server refuses initialize. Then it asks server/discover: a server of MCP
// 2026-07-28 alone is served by a Conn, whose requests go to the pipe. Any other server has
// refused.
//
// A refusal starts a goroutine that reads the pipe, and one that asks. Both end with it.
type Pipe struct {
	pipe jsonrpc.Conn
	log  *slog.Logger

	settled atomic.Bool                  // the server has answered initialize: nothing more to find out
	modern  atomic.Pointer[Conn]         // set at the decision, if that is for it
	queue   atomic.Pointer[buffer.Queue] // of what Recv returns after a refusal; nil before

	mu     sync.Mutex // guards what follows
	closed bool
	first  *jsonrpc.Message         // the initialize that the server has not answered; nil: none
	calls  map[jsonrpc.ID]*pipeCall // the requests of the gateway, by their ids on the pipe
	work   sync.WaitGroup           // of the goroutines
}

var (
	_ jsonrpc.Attributed = (*Pipe)(nil)
	_ wire.Formed        = (*Pipe)(nil)
	_ jsonrpc.Stateless  = (*Pipe)(nil)
)

// NewPipe returns a session over pipe, which it then owns.
func NewPipe(pipe jsonrpc.Conn, log *slog.Logger) *Pipe {
	return &Pipe{pipe: pipe, log: log, calls: make(map[jsonrpc.ID]*pipeCall)}
}

// Stateless reports whether the server speaks MCP 2026-07-28 alone.
func (p *Pipe) Stateless() bool { return p.modern.Load() != nil }

// Printed returns what the pipe has of text on stdout, if it has some.
func (p *Pipe) Printed() string {
	if t, ok := p.pipe.(interface{ Printed() string }); ok {
		return t.Printed()
	}
	return ""
}

// LastWords returns those of the pipe, if it has some.
func (p *Pipe) LastWords() string {
	if t, ok := p.pipe.(interface{ LastWords() string }); ok {
		return t.LastWords()
	}
	return ""
}

// Memory returns what the processes of the pipe hold, in bytes; 0 where that is unknown.
func (p *Pipe) Memory() int64 {
	if t, ok := p.pipe.(interface{ Memory() int64 }); ok {
		return t.Memory()
	}
	return 0
}

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

// RecvFor is RecvForm for messages that are plain.
func (p *Pipe) RecvFor() ([]byte, jsonrpc.ID, error) {
	for {
		if msg, request, form, err := p.RecvForm(); err != nil || form == wire.Plain {
			return msg, request, err
		}
	}
}

// RecvForm returns the next message, the request that it came with if that is known, and its form.
func (p *Pipe) RecvForm() ([]byte, jsonrpc.ID, wire.Form, error) {
	if p.queue.Load() == nil {
		msg, form, err := p.recvForm()
		if err != nil || p.settled.Load() || !p.refused(msg) {
			return msg, "", form, err
		}
	}
	msg, request, err := p.queue.Load().RecvFor()
	return msg, request, wire.Plain, err
}

func (p *Pipe) recvForm() ([]byte, wire.Form, error) {
	if formed, ok := p.pipe.(wire.Formed); ok {
		msg, _, form, err := formed.RecvForm()
		return msg, form, err
	}
	msg, err := p.pipe.Recv()
	return msg, wire.Plain, err
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
	ctx, cancel := context.WithCancelCause(context.Background())
	p.work.Go(func() { p.read(queue, cancel) })     // ends with the pipe
	p.work.Go(func() { p.decide(ctx, queue, msg) }) // ends with the answer, after 10 s, or with ctx
	return true
}

// decide finds out whether the server that has sent the refusal is modern.
func (p *Pipe) decide(ctx context.Context, queue *buffer.Queue, refusal []byte) {
	asked, cancel := context.WithTimeout(ctx, discoverTimeout)
	defer cancel()
	m, err := p.roundTrip(asked, discoverID, discoverRequest(), nil, func(*jsonrpc.Message) error { return nil })
	if err != nil || !supports(m.Result()) { // it says less than the refusal
		_ = queue.Push(refusal, "") // fails at the end of the pipe
		return
	}
	c := New(&exchange.Endpoint{URL: "http://server", Log: p.log, Values: context.Background()}, m.Result())
	c.Queue, c.roundTrip = queue, p.roundTrip
	p.mu.Lock()
	defer p.mu.Unlock()
	p.modern.Store(c)         // before the answer to initialize, after which come more messages
	_ = c.Send(p.first.Raw()) // has room
	if ctx.Err() != nil {     // the pipe has ended meanwhile
		c.gone(context.Cause(ctx))
	}
}

// read passes on what the server sends, until the pipe ends. Then it calls ended.
func (p *Pipe) read(queue *buffer.Queue, ended func(why error)) {
	for {
		msg, err := p.pipe.Recv()
		if err != nil {
			queue.End(err)
			ended(err) // a decision after this sees it, one before is seen here
			if c := p.modern.Load(); c != nil {
				c.gone(err)
			}
			return
		}
		m, err := jsonrpc.Parse(msg)
		switch c := p.modern.Load(); {
		case err == nil && p.deliver(m):
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

// pipeCall is a request of the gateway on a pipe.
type pipeCall struct {
	id    jsonrpc.ID // on the pipe
	token string     // its progress token; empty for none
	other func(*jsonrpc.Message) error
	done  chan pipeResult // has room for the one that there is
}

// pipeResult is a response, or why there is none.
type pipeResult struct {
	m   *jsonrpc.Message
	err error
}

// roundTrip is that of a Conn. The server is told when the response is no longer needed.
func (p *Pipe) roundTrip(ctx context.Context, id jsonrpc.ID, body []byte, _ http.Header,
	other func(*jsonrpc.Message) error) (*jsonrpc.Message, error) {
	m, err := jsonrpc.Parse(body)
	if err != nil {
		return nil, err
	}
	k := &pipeCall{
		id:    jsonrpc.ID(`"s-` + string(id) + `"`), // none of the ids before the decision
		token: string(m.Token.Value), other: other, done: make(chan pipeResult, 1),
	}
	p.mu.Lock()
	p.calls[k.id] = k
	p.mu.Unlock()
	defer p.remove(k)
	switch err := p.pipe.Send(m.WithID(k.id)); {
	case errors.Is(err, jsonrpc.ErrBusy):
		return nil, exchange.Busy()
	case err != nil:
		return nil, err
	}
	r := pipeResult{}
	select {
	case r = <-k.done:
	case <-ctx.Done():
		r.err = ctx.Err()
	}
	if r.err != nil {
		params := `{"requestId":` + string(k.id) + `,"reason":"no longer needed"}`
		_ = p.pipe.Send(jsonrpc.NewNotification(mcp.MethodCancelled, []byte(params))) // best effort
	}
	return r.m, r.err
}

func (p *Pipe) remove(k *pipeCall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, k.id)
}

// errEcho is the end of a request that has come back.
var errEcho = errors.New("the program only sends back what it gets")

// deliver gives a message of the server to the request that it belongs to. It reports false if
// it is not known to belong to one.
func (p *Pipe) deliver(m *jsonrpc.Message) bool {
	k, r := p.find(m), pipeResult{}
	switch {
	case k == nil:
		return false
	case m.Kind == jsonrpc.Response:
		r.m = m
	case m.Kind == jsonrpc.Request: // no server asks that: the program sends back what it gets
		r.err = errEcho
	case m.Method == mcp.MethodCancelled: // that ends a request without an answer
		r.err = exchange.LostResponse(nil)
	default:
		r.err = k.other(m)
		if r.err == nil {
			return true
		}
	}
	p.remove(k)
	k.done <- r
	return true
}

// find returns the request that a message of the server belongs to; nil if that is not known.
func (p *Pipe) find(m *jsonrpc.Message) *pipeCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case m.Kind == jsonrpc.Request && m.Method != mcp.MethodDiscover:
		return nil
	case m.Kind != jsonrpc.Notification:
		return p.calls[m.ID]
	case m.Method == mcp.MethodCancelled:
		return p.calls[jsonrpc.ID(m.RequestID.Value)]
	}
	if raw, ok := rawjson.Member(m.Params(), "_meta", mcp.MetaSubscription); ok {
		return p.calls[jsonrpc.ID(raw)]
	}
	for _, k := range p.calls {
		if m.Method == mcp.MethodProgress && k.token != "" && k.token == string(m.Token.Value) {
			return k
		}
	}
	return nil
}
