package multiplex_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

// The acceptance of shared sessions, a to e.

func TestFourParallelRequestsComplete(t *testing.T) {
	runScenarios(t, []scenario{{name: "of four clients", opts: shared, clients: 4, steps: []step{
		from(0, callA), from(1, callA), from(2, callA), from(3, callA), sent(call("1"), call("2"), call("3"), call("4")),
		server(result("2"), result("4"), result("1"), result("3")),
		at(0, answer(`"a"`)), at(1, answer(`"a"`)), at(2, answer(`"a"`)), at(3, answer(`"a"`)),
	}}})
}

func TestTimeoutOfOneAffectsNoOther(t *testing.T) {
	runScenarios(t, []scenario{{name: "of three", opts: multiplex.Options{Shared: true, RequestTimeout: 10 * time.Second}, clients: 3, steps: []step{
		from(0, callA), after(time.Second), from(1, callA), from(2, callA), discard, after(9 * time.Second),
		at(0, `fail "a": timeout, final (timeout)`), sent(cancelled("1", timedOut)), at(1), at(2),
		server(result("3"), result("2")), at(0), at(1, answer(`"a"`)), at(2, answer(`"a"`)),
	}}})
}

func TestAnswersInReverseOrder(t *testing.T) {
	const n = 100
	var forward, back []step
	for i := range n {
		forward = append(forward, from(0, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"x","params":{}}`, i)))
		back = append(back, server(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"n":%d}}`, n-i, n-i-1)),
			at(0, fmt.Sprintf(`answer %d: {"jsonrpc":"2.0","id":%d,"result":{"n":%d}}`, n-i-1, n-i-1, n-i-1)))
	}
	runScenarios(t, []scenario{{name: "hundred", opts: shared, steps: append(append(forward, discard), back...)}})
}

func TestAnswersWithoutIDsCompleteInOrderWhenSerialized(t *testing.T) {
	runScenarios(t, []scenario{{name: "three", opts: multiplex.Options{MaxInFlight: 1}, steps: []step{
		forward(callA, callB, callC), sent(call("1")),
		server(`{"jsonrpc":"2.0","id":null,"result":{"n":1}}`), got(`answer "a": {"jsonrpc":"2.0","id":"a","result":{"n":1}}`), sent(call("2")),
		server(`{"jsonrpc":"2.0","id":null,"result":{"n":2}}`), got(`answer "b": {"jsonrpc":"2.0","id":"b","result":{"n":2}}`), sent(call("3")),
		server(`{"jsonrpc":"2.0","id":null,"result":{"n":3}}`), got(`answer "c": {"jsonrpc":"2.0","id":"c","result":{"n":3}}`),
	}}})
}

const (
	crowd      = 64
	crowdCalls = 320 // of each: 20,480 in all
	crowdDepth = 8   // in flight at once, of each
)

// shuffler is a server that answers after a while of its own, and reports progress
// before, both with what only the client that asked can know.
type shuffler struct {
	in     chan []byte
	done   chan struct{}
	closed sync.Once
}

func (c *shuffler) Send(msg []byte) error {
	m, err := jsonrpc.Parse(msg)
	if err != nil || m.Kind != jsonrpc.Request {
		return err
	}
	secret, _ := jsonrpc.Member(m.Params(), "secret")
	token, ok := jsonrpc.Member(m.Params(), "_meta", "progressToken")
	if !ok || string(token) != string(m.ID) {
		return fmt.Errorf("the token %s is not the id %s", token, m.ID)
	}
	wait := rand.N(20 * time.Millisecond)
	time.AfterFunc(wait/2, func() {
		c.say(notification("notifications/progress", fmt.Sprintf(`{"progressToken":%s,"progress":1,"message":%s}`, token, secret)))
		time.AfterFunc(wait-wait/2, func() {
			c.say(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"secret":` + string(secret) + `}}`)
		})
	})
	return nil
}

func (c *shuffler) say(msg string) {
	select {
	case c.in <- []byte(msg):
	case <-c.done:
	}
}

func (c *shuffler) Recv() ([]byte, error) {
	select {
	case m := <-c.in:
		return m, nil
	case <-c.done:
		return nil, jsonrpc.ErrClosed
	}
}

func (c *shuffler) Close() error {
	c.closed.Do(func() { close(c.done) })
	return nil
}

// crowdClient makes calls under the same few ids and tokens as all others.
type crowdClient struct {
	fakeClient
	t    *testing.T
	name string
	free chan int // ids that are not in use

	mu         sync.Mutex
	open       map[string]string // secret by id
	progressed int
	answers    int
}

func (c *crowdClient) Answer(id jsonrpc.ID, response []byte, _ string) {
	c.mu.Lock()
	secret := c.open[string(id)]
	delete(c.open, string(id))
	c.answers++
	c.mu.Unlock()
	if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"secret":"%s"}}`, id, secret); secret == "" || want != string(response) {
		c.t.Errorf("%s got %s, want %s", c.name, response, want)
	}
	var n int
	_, _ = fmt.Sscan(string(id), &n)
	c.free <- n
}

func (c *crowdClient) Fail(id jsonrpc.ID, e *jsonrpc.Error, _ string) {
	c.t.Errorf("%s: request %s failed: %v", c.name, id, e)
}

func (c *crowdClient) Deliver(_ string, _ jsonrpc.ID, message []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.progressed++
	token, text := "", string(message)
	for id, secret := range c.open {
		if strings.Contains(text, `"`+secret+`"`) {
			token = id
		}
	}
	if token == "" || !strings.Contains(text, `"progressToken":`+token+`,`) {
		c.t.Errorf("%s got %s, which is not of its calls in flight", c.name, text)
	}
}

func (c *crowdClient) run(caller *caller) {
	for i := range crowdCalls {
		id := <-c.free
		secret := fmt.Sprintf("%s-%d", c.name, i)
		c.mu.Lock()
		c.open[fmt.Sprint(id)] = secret
		c.mu.Unlock()
		m := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"secret":"%s","_meta":{"progressToken":%d}}}`, id, secret, id)
		if err := caller.Forward(parse(c.t, m)); err != nil {
			c.t.Errorf("%s: %v", c.name, err)
		}
	}
	for range crowdDepth { // until all are answered
		<-c.free
	}
}

// 64 clients with identical ids and progress tokens over one session: each answer
// and each progress carries what only its sender knows, and none is crossed.
func TestNothingIsCrossed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &shuffler{in: make(chan []byte), done: make(chan struct{})}
		s := multiplex.New(conn, shared)
		var wg sync.WaitGroup
		clients := make([]*crowdClient, crowd)
		for i := range clients {
			c := &crowdClient{t: t, name: fmt.Sprintf("secret-of-%d", i), free: make(chan int, crowdDepth), open: make(map[string]string)}
			for id := range crowdDepth {
				c.free <- id
			}
			clients[i] = c
			caller := attach(s, c, c.name, c.name)
			wg.Go(func() { c.run(caller) })
		}
		wg.Wait()
		s.Close(errTestOver)
		<-s.Done()
		for _, c := range clients {
			if c.answers != crowdCalls || c.progressed != crowdCalls {
				t.Errorf("%s: %d answers and %d times progress for %d calls", c.name, c.answers, c.progressed, crowdCalls)
			}
		}
	})
}
