package load

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// state of a call.
type state uint8

const (
	waiting state = iota
	answered
	abandoned // by its deadline, or because the stream or the POST failed
)

// The event names that answers come under.
const (
	asMessage uint8 = 1 << iota
	asResponse
)

// call is a request of a client.
type call struct {
	client *client
	id     int64
	secret string // empty: it has none
	// marked says that the result must hold the secret; reports, that progress with a
	// message must.
	marked, reports bool

	// done receives the answer, once. It has room for it.
	done chan answer

	state state // guarded by client.mu
	names uint8 // that answers came under; guarded by client.mu
}

// answer is how a call ended.
type answer struct {
	at      time.Time
	result  json.RawMessage // nil: it was refused
	refusal string
	wrong   bool // it held another secret, or none: counted as a fault
}

// client is one stream, and the calls on it.
type client struct {
	run    *run
	number int // from 1
	stream *stream

	mu      sync.Mutex
	calls   map[int64]*call // by id; guarded by mu. Calls stay in it.
	session string          // of Streamable HTTP, once it is initialized; guarded by mu

	requests chan []byte   // answers to requests of the server, closed by the reader
	ended    chan struct{} // closed when the stream has ended
	closing  chan struct{} // closed by close, before ended
	wg       sync.WaitGroup
}

// openClient opens a stream and, unless the server does that, initializes it.
func (r *run) openClient(ctx context.Context, number int) (*client, error) {
	st, err := r.site.open(ctx)
	if err != nil {
		return nil, err
	}
	c := &client{
		run: r, number: number, stream: st, calls: map[int64]*call{},
		requests: make(chan []byte, 64), ended: make(chan struct{}), closing: make(chan struct{}),
	}
	if st.conn != nil {
		c.wg.Go(c.read) // ends with the stream, which close ends
	}
	c.wg.Go(c.respond) // ends with read, or close
	if r.opts.NoInitialize {
		return c, nil
	}
	if err := c.initialize(ctx); err != nil {
		c.close()
		return nil, fmt.Errorf("initialize: %w", err)
	}
	return c, nil
}

func (c *client) initialize(ctx context.Context) error {
	p := c.poster()
	defer p.close()
	if _, err := c.ask(ctx, p, 0, "initialize", initializeParams); err != nil {
		return err
	}
	c.mu.Lock()
	c.session = p.post.Header.Get(sessionHeader)
	c.mu.Unlock()
	return p.send(ctx, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
}

const protocolVersion = "2025-06-18"

const initializeParams = `{"protocolVersion":"` + protocolVersion + `","capabilities":{},"clientInfo":{"name":"leaktest","version":"1.0"}}`

// poster returns a poster for the client, which gives it what comes on responses.
func (c *client) poster() *poster {
	p := c.run.site.poster(c.stream.endpoint)
	if !c.run.site.streamable {
		return p
	}
	p.take = c.handleEvent
	p.post.Header.Set("Accept", "application/json, text/event-stream")
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != "" {
		p.post.Header.Set(sessionHeader, c.session)
		p.post.Header.Set("Mcp-Protocol-Version", protocolVersion)
	}
	return p
}

// ask sends a request without a secret and returns its result.
func (c *client) ask(ctx context.Context, p *poster, id int64, method, params string) (json.RawMessage, error) {
	k := &call{client: c, id: id, done: make(chan answer, 1)}
	c.begin(k)
	message := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
	if err := p.send(ctx, message); err != nil {
		return nil, err
	}
	timer := time.NewTimer(c.run.opts.Timeout)
	defer timer.Stop()
	a, err := c.await(ctx, k, timer)
	if err == nil && a.result == nil {
		err = fmt.Errorf("refused: %s", a.refusal)
	}
	return a.result, err
}

// begin notes a call before it is sent.
func (c *client) begin(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[k.id] = k
}

// await waits for the answer to a call that was sent.
func (c *client) await(ctx context.Context, k *call, timer *time.Timer) (answer, error) {
	var err error
	select {
	case a := <-k.done:
		return a, nil
	case <-timer.C:
		err = fmt.Errorf("no answer in %v", c.run.opts.Timeout)
	case <-c.ended:
		err = fmt.Errorf("the stream ended")
	case <-ctx.Done():
		err = ctx.Err()
	}
	if !c.abandon(k) {
		return <-k.done, nil // it came at that moment
	}
	return answer{}, err
}

// abandon gives up a call, and reports whether it was still waiting. If so, an
// answer that comes for it is late.
func (c *client) abandon(k *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.state != waiting {
		return false
	}
	k.state = abandoned
	return true
}

// find returns a call and its state, nil for an id that was never used.
func (c *client) find(id int64) (*call, state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.calls[id]
	if k == nil {
		return nil, waiting
	}
	return k, k.state
}

// read handles the events of the stream until it ends.
func (c *client) read() {
	defer close(c.requests)
	defer close(c.ended)
	for {
		e, err := c.stream.events.next()
		if err == nil {
			c.handleEvent(e)
			continue
		}
		select {
		case <-c.closing:
		default:
			c.run.tally.countFault(Cut, "the stream of client %d ended: %v", c.number, err)
		}
		return
	}
}

// respond answers requests of the server.
func (c *client) respond() {
	p := c.poster()
	p.take = nil // answers have none
	defer p.close()
	for message := range c.requests {
		// What the server does with it is not this program's concern.
		_ = p.send(context.Background(), message)
	}
}

// close ends the stream and waits for its goroutines, at most Timeout. Nothing may use the
// client any more.
func (c *client) close() {
	close(c.closing)
	if c.stream.conn != nil {
		_ = c.stream.conn.Close()
	} else {
		c.leave()
		close(c.requests)
	}
	c.wg.Wait()
}

// leave ends the session.
func (c *client) leave() {
	p := c.poster()
	defer p.close()
	if p.post.Header.Get(sessionHeader) == "" {
		return
	}
	_ = p.leave(context.Background()) // a server may not know DELETE
}
