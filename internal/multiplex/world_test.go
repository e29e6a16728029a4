package multiplex_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/wire"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// fakeConn is a server that a test plays: it remembers what was sent and says
// what it is told to say.
type fakeConn struct {
	in   chan incoming
	done chan struct{}

	mu      sync.Mutex
	sent    []string
	pings   bool // the gateway's pings are for the test; else the server answers them
	sendErr error
	closed  bool
}

type incoming struct {
	data    []byte
	related jsonrpc.ID // the related request, for an attributedConn
	form    wire.Form  // for a formedConn
	retires bool       // an attributedConn does not take the related request, for the reason err
	err     error
}

// attributedConn is a fakeConn that tells the related request of its messages, and may be retired.
type attributedConn struct {
	*fakeConn
	retire func(request jsonrpc.ID, why error)
}

var (
	_ jsonrpc.Attributed  = (*attributedConn)(nil)
	_ multiplex.Retirable = (*attributedConn)(nil)
)

func (c *attributedConn) OnRetire(retire func(request jsonrpc.ID, why error)) { c.retire = retire }

func (c *attributedConn) RecvFor() ([]byte, jsonrpc.ID, error) {
	for {
		select {
		case m := <-c.in:
			if !m.retires {
				return m.data, m.related, m.err
			}
			c.retire(m.related, m.err)
		case <-c.done:
			return nil, "", jsonrpc.ErrClosed
		}
	}
}

// formedConn is a fakeConn that tells in which form its messages came.
type formedConn struct{ *fakeConn }

var _ wire.Formed = formedConn{}

func (c formedConn) RecvForm() ([]byte, jsonrpc.ID, wire.Form, error) {
	select {
	case m := <-c.in:
		return m.data, "", m.form, m.err
	case <-c.done:
		return nil, "", wire.Plain, jsonrpc.ErrClosed
	}
}

var gatewayPing = regexp.MustCompile(`^{"jsonrpc":"2.0","id":([0-9]+),"method":"ping"}$`)

func newFakeConn() *fakeConn {
	return &fakeConn{in: make(chan incoming, 1024), done: make(chan struct{})}
}

func (c *fakeConn) Send(msg []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return jsonrpc.ErrClosed
	case c.sendErr != nil:
		return c.sendErr
	}
	if found := gatewayPing.FindSubmatch(msg); found != nil && !c.pings {
		c.in <- incoming{data: []byte(result(string(found[1])))}
		return nil
	}
	c.sent = append(c.sent, string(msg))
	return nil
}

func (c *fakeConn) Recv() ([]byte, error) {
	select {
	case m := <-c.in:
		return m.data, m.err
	case <-c.done:
		return nil, jsonrpc.ErrClosed
	}
}

func (c *fakeConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		close(c.done)
	}
	return nil
}

// take returns what was sent since the last call.
func (c *fakeConn) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	sent := c.sent
	c.sent = nil
	return sent
}

// fakeClient writes down what reaches one client, a line each.
type fakeClient struct {
	serves []string

	mu  sync.Mutex
	got []string
}

func (c *fakeClient) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, fmt.Sprintf(format, args...))
}

func (c *fakeClient) Answer(id jsonrpc.ID, response []byte, errorType string) {
	c.note("answer %s: %s%s", id, response, suffix(errorType))
}

func (c *fakeClient) Fail(id jsonrpc.ID, e *jsonrpc.Error, errorType string) {
	raw, _ := json.Marshal(e.Data)
	var data struct {
		Reason    string
		Retryable bool
	}
	_ = json.Unmarshal(raw, &data)
	kept := "final"
	if data.Retryable {
		kept = "retryable"
	}
	c.note("fail %s: %s, %s%s", id, data.Reason, kept, suffix(errorType))
}

func suffix(errorType string) string {
	if errorType == "" {
		return ""
	}
	return " (" + errorType + ")"
}

func (c *fakeClient) Deliver(_ string, _ jsonrpc.ID, message []byte) { c.note("deliver %s", message) }

func (c *fakeClient) Lost(m *jsonrpc.Message, e *jsonrpc.Error) {
	if raw, _ := json.Marshal(e.Data); string(raw) != `{"reason":"session_lost","retryable":true}` {
		c.note("lost with data %s", raw)
	}
	c.note("lost %s", m.Raw())
}

func (c *fakeClient) SeesDetails() bool { return true }

func (c *fakeClient) Serves(m *jsonrpc.Message) bool { return slices.Contains(c.serves, m.Method) }

func (c *fakeClient) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.got
	c.got = nil
	return got
}

// world is a session between a server and clients, all played by a test inside
// a synctest bubble.
type world struct {
	testing.TB
	conn    *fakeConn
	session *multiplex.Session
	clients []*fakeClient
	callers []*caller
	metrics *prometheus.Registry
	ended   []error // what OnClose was told
}

func newWorld(t testing.TB, opts multiplex.Options, clients int) *world {
	w := &world{TB: t, conn: newFakeConn(), metrics: prometheus.NewRegistry()}
	w.open(w.conn, opts)
	for i := range clients {
		w.attach(fmt.Sprintf("user-%d", i))
	}
	return w
}

func (w *world) open(conn jsonrpc.Conn, opts multiplex.Options) {
	opts.Metrics = metrics.New(w.metrics)
	opts.OnClose = func(err error) { w.ended = append(w.ended, err) }
	w.session = multiplex.New(conn, opts)
}

func (w *world) attach(principal string) {
	c := &fakeClient{}
	name := fmt.Sprintf("client-%d", len(w.clients))
	w.clients = append(w.clients, c)
	w.callers = append(w.callers, attach(w.session, c, name, principal))
}

// joins has one more client come, leaves has one go.
func joins(principal string) step { return func(w *world) { w.attach(principal) } }
func leaves(client int) step      { return func(w *world) { w.callers[client].Detach() } }

// with is server for a Conn that knows the related request of a message.
func with(related string, msgs ...string) step {
	return func(w *world) {
		for _, m := range msgs {
			w.conn.in <- incoming{data: []byte(m), related: jsonrpc.ID(related)}
		}
	}
}

// finish ends the session and checks that nothing happened that no step asked
// for.
func (w *world) finish() {
	w.Helper()
	w.session.Close(errTestOver)
	<-w.session.Done()
	if sent := w.conn.take(); len(sent) > 0 {
		w.Errorf("sent to the server, not expected: %q", sent)
	}
	for i, c := range w.clients {
		if got := c.take(); len(got) > 0 {
			w.Errorf("client %d got, not expected: %q", i, got)
		}
	}
	ssetest.Want(w, "calls of OnClose", len(w.ended), 1)
}

func parse(t testing.TB, msg string) *jsonrpc.Message {
	t.Helper()
	m, err := jsonrpc.Parse([]byte(msg))
	if err != nil {
		t.Fatalf("parse %.80s: %v", msg, err)
	}
	return m
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
