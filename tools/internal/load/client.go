package load

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
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
	method string
	tool   string // empty: it calls none
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

// client is one client, its stream, and the calls that it makes.
type client struct {
	run     *run
	number  int // from 1
	site    *site
	stream  *stream     // nil: it has none of its own
	headers http.Header // of the session, for each request; immutable once it is open

	mu    sync.Mutex
	calls map[int64]*call // by id; guarded by mu. Calls stay in it.

	requests chan []byte   // answers to requests of the server, closed by close
	ended    chan struct{} // closed when the stream has ended; without one, by close
	closing  chan struct{} // closed by close, before ended
	wg       sync.WaitGroup
}

// openClient opens a stream and, unless the server does that, initializes it.
func (r *run) openClient(ctx context.Context, number int) (*client, error) {
	c := &client{
		run: r, number: number, site: r.site.as(number,
			r.opts.Tokens).at(r.host(number, 0)), headers: http.Header{}, calls: map[int64]*call{},
		requests: make(chan []byte, 64), ended: make(chan struct{}), closing: make(chan struct{}),
	}
	var err error
	if r.opts.Transport != SSE {
		err = c.openSession(ctx)
	} else if c.stream, err = c.site.open(ctx); err != nil {
		return nil, err
	}
	c.wg.Go(c.read)    // ends with the stream, which close ends
	c.wg.Go(c.respond) // ends with close
	if err == nil && r.opts.Transport == SSE && !r.opts.NoInitialize {
		p := c.poster()
		defer p.close()
		err = c.initialize(ctx, p)
		if err != nil {
			err = fmt.Errorf("initialize: %w", err)
		}
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// poster returns a poster for the messages of the client.
func (c *client) poster() *poster {
	if c.run.opts.Transport == SSE {
		return c.site.poster(c.stream.endpoint)
	}
	p := c.site.poster(c.site.target)
	p.post.Header.Set("Accept", "application/json, text/event-stream")
	maps.Copy(p.post.Header, c.headers)
	return p
}

func (c *client) initialize(ctx context.Context, p *poster) error {
	params := `{"protocolVersion":"` + versionInitialized + `","capabilities":` + c.run.opts.Capabilities +
		`,"clientInfo":{"name":"leaktest","version":"1.0"}}`
	if _, err := c.ask(ctx, p, 0, "initialize", params); err != nil {
		return err
	}
	return c.post(ctx, p, nil, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
}

// versionInitialized is the version of clients that initialize.
const versionInitialized = "2025-06-18"

// ask sends a request without a secret and returns its result.
func (c *client) ask(ctx context.Context, p *poster, id int64, method, params string) (json.RawMessage, error) {
	k := &call{client: c, id: id, method: method, done: make(chan answer, 1)}
	c.begin(k)
	if meta := c.meta(); meta != "" {
		params = strings.Replace(`{"_meta":{`+meta+`},`+params[1:], ",}", "}", 1)
	}
	message := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
	if err := c.post(ctx, p, k, message); err != nil {
		return nil, err
	}
	c.enter(p)
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
	defer close(c.ended)
	if c.stream == nil {
		<-c.closing
		return
	}
	for {
		e, err := c.stream.events.next()
		if err == nil {
			c.handleEvent(e, nil)
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
	defer p.close()
	for message := range c.requests {
		// The server may do with it what it likes.
		_ = c.post(context.Background(), p, nil, message)
	}
}

// close ends the session and the stream, and waits for their goroutines, at most
// Timeout. No call may be in flight.
func (c *client) close() {
	close(c.closing)
	if c.headers.Get(headerSession) != "" {
		c.endSession()
	}
	if c.stream != nil {
		_ = c.stream.conn.Close()
	}
	<-c.ended
	close(c.requests)
	c.wg.Wait()
}
