package compose_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/internal/asker"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a member that a test plays. It answers initialize and lists by itself, inside the call, unless it is told not
// to. It writes down all else.
type fake struct {
	mu     sync.Mutex
	lists  map[string]string // the results of lists, by their methods
	says   string            // the result of initialize
	silent map[string]bool   // methods of requests that it does not answer; "*": all
	fault  map[string]string // the errors that it answers
	refuse error             // of Dial
	asks   map[string]int    // how often the view has asked, by the methods
	dials  int
	conns  []*fakeConn

	isConditional bool // its connections know its condition
	condition     asker.Condition
	changed       chan struct{} // closed at the next change of it
}

// newFake returns a member with these tools.
func newFake(tools ...string) *fake {
	return &fake{
		says:  `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"f","version":"1"}}`,
		lists: map[string]string{"tools/list": listOf("tools", "name", tools...)}, silent: map[string]bool{}, fault: map[string]string{},
		asks: map[string]int{},
	}
}

// listOf returns the result of a list.
func listOf(member, key string, names ...string) string {
	entries := make([]string, len(names))
	for i, name := range names {
		entries[i] = fmt.Sprintf(`{%q:%s}`, key, rawjson.Quote(name))
	}
	return fmt.Sprintf(`{%q:[%s]}`, member, strings.Join(entries, ","))
}

func (f *fake) Dial(context.Context) (jsonrpc.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dials++
	if f.refuse != nil {
		return nil, f.refuse
	}
	c := &fakeConn{of: f}
	f.conns = append(f.conns, c)
	if f.isConditional {
		return conditionalConn{c}, nil
	}
	return c, nil
}

// be gives the member a condition.
func (f *fake) be(condition asker.Condition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.isConditional, f.condition = true, condition
	if f.changed != nil {
		close(f.changed)
	}
	f.changed = make(chan struct{})
}

// conditionalConn is a connection with a fake whose condition is known.
type conditionalConn struct{ *fakeConn }

func (c conditionalConn) Condition() (asker.Condition, <-chan struct{}) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	return c.of.condition, c.of.changed
}

// conn returns the newest connection, when all goroutines have come to rest.
func (f *fake) conn() *fakeConn {
	synctest.Wait()
	return f.newest()
}

// newest is conn for another goroutine than that of the test, which alone may wait for all.
func (f *fake) newest() *fakeConn {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.conns[len(f.conns)-1]
}

// nth returns a connection by its number, when all goroutines have come to rest.
func (f *fake) nth(n int) *fakeConn {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.conns[n]
}

// dialled returns how often it was dialled, when all goroutines have come to rest.
func (f *fake) dialled() int {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dials
}

// asked returns how often the view has asked it for a method, when all goroutines have come to rest.
func (f *fake) asked(method string) int {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asks[method]
}

// set changes what the member does.
func (f *fake) set(change func(f *fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// fakeConn is a connection with a fake.
type fakeConn struct {
	of      *fake
	receive func(msg []byte, request jsonrpc.ID, err error)

	mu     sync.Mutex
	values []context.Context // that came with requests
	got    []string
	held   []jsonrpc.ID // of the view's own requests that are not answered
	busy   error        // of Send and SendRequest
	closed bool
}

func (c *fakeConn) Push(receive func(msg []byte, err error)) { panic("PushFor is there") }

func (c *fakeConn) PushFor(receive func(msg []byte, request jsonrpc.ID, err error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.receive = receive
}

func (c *fakeConn) Recv() ([]byte, error) { panic("it pushes") }

func (c *fakeConn) SendRequest(m *jsonrpc.Message, number int64) error {
	if m.Context != nil {
		c.mu.Lock()
		c.values = append(c.values, m.Context)
		c.mu.Unlock()
	}
	return c.Send(m.Renumbered(jsonrpc.NumberID(number)))
}

func (c *fakeConn) Send(msg []byte) error {
	m, err := jsonrpc.Parse(msg)
	if err != nil {
		panic(err)
	}
	c.mu.Lock()
	if c.closed || c.busy != nil {
		defer c.mu.Unlock()
		return errors.Join(c.busy, map[bool]error{true: jsonrpc.ErrClosed}[c.closed])
	}
	c.of.mu.Lock()
	answer, known := c.of.lists[m.Method]
	if m.Method == "initialize" {
		answer, known = c.of.says, true
	}
	fault := c.of.fault[m.Method]
	silent := c.of.silent[m.Method] || c.of.silent["*"]
	own := strings.HasPrefix(string(m.ID), "90000000") && m.Kind == jsonrpc.Request
	if own {
		c.of.asks[m.Method]++
	}
	c.of.mu.Unlock()
	switch {
	case own && silent:
		c.held = append(c.held, m.ID)
	case own && fault != "":
		c.mu.Unlock()
		c.say(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":` + fault + `}`)
		return nil
	case own && known:
		c.mu.Unlock()
		c.say(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + answer + `}`)
		return nil
	default:
		c.got = append(c.got, strings.ReplaceAll(string(msg), `"jsonrpc":"2.0",`, ""))
	}
	c.mu.Unlock()
	return nil
}

// say has the member send messages, sayFor one that came with a request.
func (c *fakeConn) say(msgs ...string) {
	for _, msg := range msgs {
		c.sayFor("", msg)
	}
}

func (c *fakeConn) sayFor(request jsonrpc.ID, msg string) {
	c.receive([]byte(msg), request, nil)
}

// end has the connection end.
func (c *fakeConn) end(err error) { c.receive(nil, "", err) }

// answerHeld answers the oldest of the view's own requests that were not answered, refuseHeld with an error.
func (c *fakeConn) answerHeld(result string) { c.endHeld("result", result) }

func (c *fakeConn) refuseHeld(fault string) { c.endHeld("error", fault) }

func (c *fakeConn) endHeld(member, value string) {
	c.mu.Lock()
	id := c.held[0]
	c.held = c.held[1:]
	c.mu.Unlock()
	c.say(`{"jsonrpc":"2.0","id":` + string(id) + `,"` + member + `":` + value + `}`)
}

// take returns what the member has got of the client since the last call.
func (c *fakeConn) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.got
	c.got = nil
	return got
}

// contexts returns those that have come with requests of the client.
func (c *fakeConn) contexts() []context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.values
}

func (c *fakeConn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func (c *fakeConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return nil
}

// client is the gateway in front of a view, with its client.
type client struct {
	t    *testing.T
	conn jsonrpc.Relay

	hook func(line string) // called with each message before it is written down; nil: nothing is

	mu   sync.Mutex
	got  []string
	ends []error
}

// named are members of those names, in their order: name, fake, name, fake …
func members(pairs ...any) (all []compose.Member) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, compose.Member{Name: pairs[i].(string), Upstream: pairs[i+1].(jsonrpc.Dialer)})
	}
	return all
}

// newView returns a view.
func newView(t *testing.T, of []compose.Member) *compose.View {
	t.Helper()
	v, err := compose.New(of, compose.Options{Name: "team"})
	ssetest.Must(t, err)
	return v
}

// dial opens a session, which the test ends.
func dial(t *testing.T, v *compose.View) *client {
	t.Helper()
	return dialWith(t.Context(), t, v)
}

// dialWith is dial with what a context says of the client.
func dialWith(ctx context.Context, t *testing.T, v *compose.View) *client {
	t.Helper()
	c := &client{t: t}
	conn, err := v.Dial(ctx)
	ssetest.Must(t, err)
	c.listen(conn.(jsonrpc.Relay))
	return c
}

// listen has the messages of a session written down, and ends it with the test.
func (c *client) listen(conn jsonrpc.Relay) {
	t := c.t
	c.conn = conn
	conn.PushFor(func(msg []byte, request jsonrpc.ID, err error) {
		if c.hook != nil {
			c.hook(string(msg))
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if err != nil {
			c.ends = append(c.ends, err)
			return
		}
		m, err := jsonrpc.Parse(msg)
		if err != nil {
			t.Errorf("%s: %v", msg, err)
		}
		line := strings.ReplaceAll(string(msg), `"jsonrpc":"2.0",`, "")
		if request != "" && (m.Kind != jsonrpc.Response || request != m.ID) {
			line = "for " + string(request) + ": " + line
		}
		c.got = append(c.got, line)
	})
	t.Cleanup(func() { _ = conn.Close() })
}

// open is dial, and initializes.
func open(t *testing.T, v *compose.View) *client {
	t.Helper()
	c := dial(t, v)
	c.initialize()
	return c
}

func (c *client) initialize() {
	c.t.Helper()
	c.request(1, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// request sends a request.
func (c *client) request(number int64, method, params string) {
	c.t.Helper()
	ssetest.Must(c.t, c.tryRequest(number, method, params))
}

func (c *client) tryRequest(number int64, method, params string) error {
	m, err := jsonrpc.Parse(jsonrpc.NewRequest("0", method, json.RawMessage(params)))
	if err != nil {
		panic(err)
	}
	return c.conn.SendRequest(m, number)
}

// send sends another message.
func (c *client) send(msg string) {
	c.t.Helper()
	ssetest.Must(c.t, c.conn.Send([]byte(msg)))
}

// take returns what the client has got since the last call, when all goroutines have come to rest.
func (c *client) take() []string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.got
	c.got = nil
	return got
}

// want compares what the client has got since the last call.
func (c *client) want(what string, lines ...string) {
	c.t.Helper()
	ssetest.Want(c.t, what, strings.Join(c.take(), "\n"), strings.Join(lines, "\n"))
}

// wantGot compares what a member has got of the client since the last call.
func (f *fake) wantGot(t *testing.T, what string, lines ...string) {
	t.Helper()
	ssetest.Want(t, what, strings.Join(f.conn().take(), "\n"), strings.Join(lines, "\n"))
}

// tools returns the answer with a list of tools.
func tools(number int64, names ...string) string {
	return fmt.Sprintf(`{"id":%d,"result":%s}`, number, listOf("tools", "name", names...))
}
