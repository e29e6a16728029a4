package connstate_test

import (
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a registry with one connection, what stands behind and before it,
// and what the metrics say of them.
type world struct {
	t        testing.TB
	registry *connstate.Registry
	prom     *prometheus.Registry
	c        whole
	handler  *handler
	stream   *stream
}

// newWorld opens a connection for a client. Its stream takes nothing before
// attach is called.
func newWorld(t testing.TB, opts connstate.Options, client connstate.Client) *world {
	t.Helper()
	w := &world{t: t, prom: prometheus.NewRegistry(), handler: &handler{}}
	opts.Metrics = metrics.New(w.prom)
	if opts.Budget == nil {
		opts.Budget = budget.New(-1, opts.Metrics)
		t.Cleanup(func() {
			w.c.Close("test over")
			equal(t, "bytes are held after the end", w.series("mcp_sse_held_bytes"), 0)
		})
	}
	w.registry = connstate.NewRegistry(connstate.Limits{}, opts)
	c, err := w.registry.Open(client)
	must(t, err)
	w.c = wholeOf(c)
	w.stream = &stream{c: w.c}
	w.c.Bind(w.handler)
	return w
}

// attach lets the stream take at most room events that are not written.
func (w *world) attach(room int) {
	w.stream.mu.Lock()
	w.stream.room = room
	w.stream.mu.Unlock()
	w.c.Attach(w.stream.take)
}

// The checks that are used everywhere, by short names.
var must, equal = ssetest.Must, ssetest.Want

// series returns the value of one series, named as in ssetest.Series. It is 0 if the metrics have no such
// series.
func (w *world) series(name string) float64 {
	w.t.Helper()
	return ssetest.Series(w.t, w.prom)[name]
}

// stream stands for the GET: it takes events and says later that they are
// written.
type stream struct {
	c whole

	mu      sync.Mutex
	room    int
	events  []connstate.Event // all that were taken
	written int
}

func (s *stream) take(e connstate.Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.events)-s.written >= s.room {
		return false
	}
	s.events = append(s.events, e)
	return true
}

// write says that the oldest n events that were taken are written.
func (s *stream) write(n int) {
	s.mu.Lock()
	size := 0
	for _, e := range s.events[s.written : s.written+n] {
		size += e.Size()
	}
	s.written += n
	s.mu.Unlock()
	s.c.Written(size)
}

// writeAll writes until nothing is left that was taken.
func (s *stream) writeAll() {
	for {
		s.mu.Lock()
		n := len(s.events) - s.written
		s.mu.Unlock()
		if n == 0 {
			return
		}
		s.write(n)
	}
}

// got returns the events that were taken, each as name:data.
func (s *stream) got() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, e := range s.events {
		all = append(all, e.Name+":"+string(e.Data))
	}
	return all
}

func (s *stream) check(t testing.TB, want ...string) {
	t.Helper()
	equal(t, "events", s.got(), want)
}

// handler records what a connection tells it.
type handler struct {
	mu       sync.Mutex
	received []string
	refused  []string // message, then why
	closed   int
	drained  func() // nil: nothing happens then
}

func (h *handler) Receive(m *jsonrpc.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.received = append(h.received, label(m))
}

func (h *handler) Refused(r *connstate.Request, reason error) {
	m := r.Message
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused = append(h.refused, label(m)+": "+reason.Error())
}

func (h *handler) OnMemory() bool { return false }

func (h *handler) Drained() {
	if h.drained != nil {
		h.drained()
	}
}

func (h *handler) Closed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed++
}

func (h *handler) refusals() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.refused)
}

func (h *handler) closures() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// label names a message in a test's lists.
func label(m *jsonrpc.Message) string { return m.Method + "#" + string(m.ID) }

func parse(t testing.TB, in string) *jsonrpc.Message {
	t.Helper()
	m, err := jsonrpc.Parse([]byte(in))
	must(t, err)
	return m
}

func request(t testing.TB, id, method string) *jsonrpc.Message {
	t.Helper()
	return parse(t, string(jsonrpc.NewRequest(jsonrpc.ID(id), method, nil)))
}

func notification(t testing.TB, method string) *jsonrpc.Message {
	t.Helper()
	return parse(t, string(jsonrpc.NewNotification(method, nil)))
}

// wait brings a message to the gate and fails the test unless it goes as wanted: "waits", or the error.
func (w *world) wait(m *jsonrpc.Message, want string) *connstate.Request {
	w.t.Helper()
	r := &connstate.Request{ID: m.ID, Message: m}
	got := "waits"
	if err := w.c.Enqueue(r, false); err != nil {
		got = err.Error()
	}
	equal(w.t, "Enqueue("+label(m)+")", got, want)
	return r
}

// ask begins a request of the client.
func (w *world) ask(id jsonrpc.ID, method string) *connstate.Request {
	w.t.Helper()
	r, err := w.c.BeginRequest(request(w.t, string(id), method))
	must(w.t, err)
	return r
}

// finish answers a request, and reports whether that was its first answer.
func finish(r *connstate.Request, errorType string) bool {
	return r.Answer(jsonrpc.NewResult(r.ID, []byte("{}")), errorType)
}

// release makes the connection ready, and returns what waits at the gate, in order, as a session takes it.
func (w *world) release() (out []string) {
	w.t.Helper()
	_ = w.c.Move(connstate.Ready)
	for next := w.c.Next(); next != nil; next = w.c.Next() {
		out = append(out, label(next.Message))
		w.c.Sent(next)
	}
	return out
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// whole is a connection with the methods for its transport and for its handler.
type whole struct {
	*connstate.Connection
	connstate.ForTransport
	connstate.ForHandler
}

func wholeOf(c *connstate.Connection) whole {
	return whole{c, connstate.ForTransport{Connection: c}, connstate.ForHandler{Connection: c}}
}
