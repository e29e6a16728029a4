package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// chaosClient is one stream or session of a chaos run, and the requests on it. All that
// it sends and gets stands on its page.
type chaosClient struct {
	*page
	link    chaosLink
	rng     *rand.Rand
	http    *http.Client
	slow    bool     // reads with pauses
	answers bool     // what the server asks
	tools   []string // to call
	isView  bool     // whose lists are no server's own

	ctx    context.Context // of the stream and its POSTs
	cancel context.CancelFunc
	posts  sync.WaitGroup
	// replies are the posts that the reader of the stream begins: they can be waited
	// for when that has ended.
	replies sync.WaitGroup
	ended   chan struct{} // closed when the reader has ended
	cut     error         // why the stream ended though the client had not left; read after ended
	next    int           // number of the next request
}

// chaosLink is the transport of a chaosClient.
type chaosLink interface {
	// open connects in the manner, once the client has a page. Then read has something to
	// read.
	open(target string, m manner) error
	// read puts what comes unasked on the page, and with HTTP+SSE the answers too, until
	// the stream or the session has ended.
	read()
	// request posts a request, and notes what became of it.
	request(id, body string)
	// post posts another message and returns the status.
	post(body string) (int, error)
	// leave ends the session, if the transport has a way to say so.
	leave()
}

// manner is one way of a client to open its stream.
type manner struct {
	over        transport
	query       string
	names       []string // of the events that carry its answers
	initializes bool
}

var manners = []manner{
	{overSSE, "", []string{"message"}, true},
	{overSSE, "?event=message", []string{"message"}, false},
	{overSSE, "?event=mcp-response", []string{"mcp-response"}, false},
	{overSSE, "", []string{"message", "mcp-response"}, false},
	{streamable, "", []string{"message"}, true},
	{streamable, "", []string{"message"}, false},
	{streamable, "", []string{"message"}, true},
}

// mannerAt returns a manner, as it is at the server of the URL: without
// auto-initialize nobody waits for answers under two names.
func mannerAt(target string, n int) manner {
	m := manners[n]
	if strings.Contains(target, "/plain/") && m.query == "" {
		m.names = []string{"message"}
		m.initializes = m.initializes || m.over == streamable // otherwise there is no session
	}
	return m
}

// open opens a stream in the manner.
func (run *chaosRun) open(target string, m manner, rng *rand.Rand) (*chaosClient, error) {
	c := &chaosClient{rng: rng, slow: rng.IntN(4) == 0, answers: rng.IntN(3) > 0, ended: make(chan struct{})}
	c.tools, c.isView = run.tools, run.views != nil
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.http = &http.Client{Transport: &http.Transport{DisableCompression: true, DialContext: c.dial}}
	c.link = &chaosSSE{chaosClient: c}
	if m.over == streamable {
		c.link = &chaosStreamable{chaosClient: c}
	}
	c.page = run.ledger.open(m.names...)
	c.page.forgets = m.over == overSSE // over Streamable HTTP the POST has to end
	if err := c.link.open(target, m); err != nil {
		c.cancel()
		return nil, fmt.Errorf("open stream: %w", err)
	}
	go func() { // ends with the stream, which leave ends
		defer close(c.ended)
		c.link.read()
	}()
	if m.initializes && m.over == overSSE {
		capabilities := c.choose("{}", `{"roots":{},"sampling":{},"elicitation":{}}`)
		c.request(`"first"`, "initialize", `{"protocolVersion":"2025-11-25","capabilities":`+capabilities+`,"clientInfo":{"name":"chaos","version":"1"}}`, true)
		_, _ = c.link.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`) // the ledger sees what follows
	}
	return c, nil
}

// dial connects; a slow client takes little at a time.
func (c *chaosClient) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err == nil && c.slow {
		err = conn.(*net.TCPConn).SetReadBuffer(4096)
	}
	return conn, err
}

// chaosSSE is a client over HTTP+SSE.
type chaosSSE struct {
	*chaosClient
	stream *ssetest.Client
}

// open implements chaosLink.
func (c *chaosSSE) open(target string, m manner) (err error) {
	if c.stream, err = ssetest.Dial(c.http, target+m.query, nil); err == nil {
		context.AfterFunc(c.ctx, c.stream.Close)
	}
	return err
}

func (c *chaosSSE) leave() {}

func (c *chaosClient) choose(among ...string) string { return among[c.rng.IntN(len(among))] }

// read implements chaosLink.
func (c *chaosSSE) read() {
	for n := 0; ; n++ {
		e, err := c.stream.Next()
		switch {
		case err != nil && c.ctx.Err() == nil:
			c.cut = err
			return
		case err != nil:
			return
		case e.Data == "" || e.Name == "heartbeat":
			continue
		}
		c.take(e.Name, e.Data, n)
	}
}

// take puts the nth event of a stream on the page, and answers what the server asks.
func (c *chaosClient) take(name, data string, n int) {
	if asked := c.got(name, data); asked.ID != nil && c.answers {
		c.replies.Go(func() { c.reply(asked) })
	}
	if c.slow && n%4 == 0 {
		time.Sleep(20 * time.Millisecond) // a slow client is what is played
	}
}

// reply answers a request of the server.
func (c *chaosClient) reply(asked answer) {
	body := `"error":{"code":-1,"message":"no"}`
	if asked.Method == "ping" {
		body = `"result":{}`
	}
	_, _ = c.link.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, asked.ID, body)) // the stream may be gone
}

// post implements chaosLink.
func (c *chaosSSE) post(body string) (int, error) {
	return status(c.send(c.ctx, http.MethodPost, c.stream.Post, body))
}

// send sends an HTTP request with headers: names and values, of which empty ones are left out.
func (c *chaosClient) send(ctx context.Context, method, url, body string, headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for pair := range slices.Chunk(append(headers, "Content-Type", "application/json"), 2) {
		if pair[1] != "" {
			req.Header.Set(pair[0], pair[1])
		}
	}
	return c.http.Do(req)
}

// status reads a response to its end, and returns its status.
func status(resp *http.Response, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// request sends a request, and notes what became of the POST.
func (c *chaosClient) request(id, method, params string, silent bool) {
	nonce := c.ask(id, method, silent)
	c.link.request(id, requestJSON(id, method, strings.ReplaceAll(params, "NONCE", nonce)))
}

// request implements chaosLink.
func (c *chaosSSE) request(id, body string) {
	switch status, err := c.post(body); {
	case err != nil && c.ctx.Err() == nil:
		c.refuse(id, err)
		c.fault(wrong, nil, "a POST on an open stream failed: %v", err)
	case err != nil:
		c.refuse(id, err)
	case status != http.StatusAccepted:
		c.refuse(id, status)
		if !c.isOver() {
			c.fault(wrong, nil, "a POST on an open stream got %d", status)
		}
	default:
		c.accept(id)
	}
}

// isOver reports whether the stream ends within a moment.
func (c *chaosClient) isOver() bool {
	select {
	case <-c.ended:
		return true
	case <-time.After(time.Second):
		return false
	}
}

// ids are the forms of an id; all clients use the same ones.
var ids = []string{"%d", `"%d"`, "%d.500", "12345678901234567%03d", `"\u0061-%d"`}

// some sends a few requests at the same time.
func (c *chaosClient) some() {
	for range 1 + c.rng.IntN(4) {
		c.next++
		id := fmt.Sprintf(c.choose(ids...), c.next)
		method := c.choose("tools/call", "tools/call", "tools/list", "resources/read", "vendor/x", "ping")
		meta := c.choose("{}", `{"progressToken":`+id+`}`, `{"progressToken":"mine"}`)
		params := fmt.Sprintf(`{"name":"%s","arguments":{"message":"NONCE","pad":"%s"},"_meta":%s}`,
			c.choose(c.tools...), strings.Repeat("y", c.rng.IntN(3000)), meta)
		silent := method == "ping" || c.isView && method == "tools/list"
		c.posts.Go(func() { c.request(id, method, params, silent) })
	}
}

// cancelSome cancels a request that is not answered.
func (c *chaosClient) cancelSome() {
	waiting := c.waiting()
	if len(waiting) == 0 {
		return
	}
	id := c.choose(waiting...)
	c.page.cancel(id)
	c.posts.Go(func() {
		_, _ = c.link.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`) // the stream may be gone
	})
}

// act takes random steps.
func (c *chaosClient) act(steps int, over <-chan struct{}) {
	for range steps {
		select {
		case <-over:
			return
		case <-c.ended:
			return
		default:
		}
		switch c.rng.IntN(10) {
		case 0, 1:
			c.cancelSome()
		case 2:
			time.Sleep(upTo(c.rng, 500*time.Millisecond))
		default:
			c.some()
		}
		time.Sleep(upTo(c.rng, 100*time.Millisecond))
	}
}

// leave ends the stream, after the answers to all requests if it waits, and closes
// the page.
func (c *chaosClient) leave(waits bool) {
	alive := false
	if waits {
		c.posts.Wait()
		c.settle()
		alive = c.isOpen()
	}
	if waits || c.rng.IntN(2) == 0 {
		c.link.leave()
	}
	c.cancel()
	<-c.ended
	c.posts.Wait()
	c.replies.Wait()
	c.http.CloseIdleConnections()
	c.end(alive, c.cut)
}

func (c *chaosClient) isOpen() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// result calls each tool until there is a result, and returns how the last request was
// answered if there is none in time.
func (c *chaosClient) result(within time.Duration) (outcome string) {
	deadline := time.Now().Add(within)
	for _, tool := range c.tools {
		for {
			c.next++
			id := fmt.Sprint(c.next)
			c.request(id, "tools/call", `{"name":"`+tool+`","arguments":{"message":"NONCE"}}`, false)
			c.settle()
			outcome = c.outcome(id)
			if outcome == "result" {
				break
			}
			if !c.isOpen() || time.Now().After(deadline) {
				return outcome
			}
			time.Sleep(200 * time.Millisecond)
		}
	}
	return outcome
}
