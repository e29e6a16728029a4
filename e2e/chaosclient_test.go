package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// chaosClient is one stream of a chaos run, and the requests on it. All that it
// sends and gets stands on its page.
type chaosClient struct {
	*page
	rng      *rand.Rand
	http     *http.Client
	slow     bool // reads with pauses
	answers  bool // what the server asks
	endpoint string

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

// manner is one way of a client to open its stream.
type manner struct {
	query       string
	names       []string // of the events that carry its answers
	initializes bool
}

var manners = []manner{
	{"", []string{"message"}, true},
	{"?event=message", []string{"message"}, false},
	{"?event=mcp-response", []string{"mcp-response"}, false},
	{"", []string{"message", "mcp-response"}, false},
}

// mannerAt returns a manner, as it is at the server of the URL: without
// auto-initialize nobody waits for answers under two names.
func mannerAt(target string, n int) manner {
	m := manners[n]
	if strings.Contains(target, "/plain/") && m.query == "" {
		m.names = []string{"message"}
	}
	return m
}

// openChaosClient opens a stream in the manner.
func openChaosClient(l *ledger, target string, m manner, rng *rand.Rand) (*chaosClient, error) {
	c := &chaosClient{rng: rng, slow: rng.IntN(4) == 0, answers: rng.IntN(3) > 0, ended: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.http = &http.Client{Transport: &http.Transport{DisableCompression: true, DialContext: c.dial}}
	body, in, err := c.get(target, m.query)
	if err != nil {
		c.cancel()
		return nil, fmt.Errorf("open stream: %w", err)
	}
	c.page = l.open(m.names...)
	go c.read(body, in) // ends with the stream, which leave ends
	if m.initializes {
		capabilities := c.choose("{}", `{"roots":{},"sampling":{},"elicitation":{}}`)
		c.request(`"first"`, "initialize", `{"protocolVersion":"2025-11-25","capabilities":`+capabilities+`,"clientInfo":{"name":"chaos","version":"1"}}`, true)
		_, _ = c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`) // the ledger sees what follows
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

// get begins the stream and reads its endpoint.
func (c *chaosClient) get(target, query string) (io.Closer, *bufio.Reader, error) {
	base, err := url.Parse(target)
	if err != nil {
		return nil, nil, err
	}
	req, err := http.NewRequestWithContext(c.ctx, http.MethodGet, target+query, nil)
	if err != nil {
		return nil, nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, nil, err
	}
	in := bufio.NewReader(resp.Body)
	first, err := ssetest.Read(in)
	if err == nil && (resp.StatusCode != http.StatusOK || first.Name != "endpoint") {
		err = fmt.Errorf("GET = %s, first event %q", resp.Status, first.Raw)
	}
	endpoint, bad := base.Parse(first.Data)
	if err = errors.Join(err, bad); err != nil {
		resp.Body.Close()
		return nil, nil, err
	}
	c.endpoint = endpoint.String()
	return resp.Body, in, nil
}

func (c *chaosClient) choose(among ...string) string { return among[c.rng.IntN(len(among))] }

// read puts each event on the page.
func (c *chaosClient) read(body io.Closer, in *bufio.Reader) {
	defer close(c.ended)
	defer body.Close()
	for n := 0; ; n++ {
		e, err := ssetest.Read(in)
		switch {
		case err != nil && c.ctx.Err() == nil:
			c.cut = err
			return
		case err != nil:
			return
		case e.IsComment() || e.Name == "heartbeat":
			continue
		}
		if asked := c.got(e.Name, e.Data); asked.ID != nil && c.answers {
			c.replies.Go(func() { c.reply(asked) })
		}
		if c.slow && n%4 == 0 {
			time.Sleep(20 * time.Millisecond) // a slow client is what is played
		}
	}
}

// reply answers a request of the server.
func (c *chaosClient) reply(asked answer) {
	body := `"error":{"code":-1,"message":"no"}`
	if asked.Method == "ping" {
		body = `"result":{}`
	}
	_, _ = c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, asked.ID, body)) // the stream may be gone
}

// post returns the status.
func (c *chaosClient) post(body string) (int, error) {
	req, err := http.NewRequestWithContext(c.ctx, http.MethodPost, c.endpoint, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
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
	switch status, err := c.post(requestJSON(id, method, strings.ReplaceAll(params, "NONCE", nonce))); {
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
		params := fmt.Sprintf(`{"name":"echo","arguments":{"message":"NONCE","pad":"%s"},"_meta":%s}`, strings.Repeat("y", c.rng.IntN(3000)), meta)
		c.posts.Go(func() { c.request(id, method, params, method == "ping") })
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
		_, _ = c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`) // the stream may be gone
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

// result asks until there is a result, and returns how the last request was
// answered if there is none in time.
func (c *chaosClient) result(within time.Duration) string {
	for deadline := time.Now().Add(within); ; {
		c.next++
		id := fmt.Sprint(c.next)
		c.request(id, "tools/call", `{"name":"echo","arguments":{"message":"NONCE"}}`, false)
		c.settle()
		outcome := c.outcome(id)
		if outcome == "result" || !c.isOpen() || time.Now().After(deadline) {
			return outcome
		}
		time.Sleep(200 * time.Millisecond)
	}
}
