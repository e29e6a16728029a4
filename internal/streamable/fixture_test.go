package streamable_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/signedid"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/streamable"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// backend stands behind the sessions of a test. It answers initialize like a server,
// "echo" with its params, and "never" never; all else goes to receive.
type backend struct {
	receive func(connstate.ForHandler, *jsonrpc.Message)
	refuses bool          // it refuses initialize,
	after   time.Duration // so long after it came

	mu       sync.Mutex
	accepted []connstate.ForHandler
	messages []string // methods, or "response", in the order in which they came
}

func (b *backend) Accept(c *connstate.Connection) connstate.Handler {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := connstate.ForHandler{Connection: c}
	b.accepted = append(b.accepted, own)
	return &server{b, own}
}

// last returns the newest connection.
func (b *backend) last() connstate.ForHandler {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.accepted[len(b.accepted)-1]
}

func (b *backend) opened() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.accepted)
}

func (b *backend) got() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.messages, " ")
}

// server is the end of one connection.
type server struct {
	b *backend
	c connstate.ForHandler
}

func (s *server) Receive(m *jsonrpc.Message) {
	s.b.mu.Lock()
	if m.Kind == jsonrpc.Response {
		s.b.messages = append(s.b.messages, "response")
	} else {
		s.b.messages = append(s.b.messages, strings.TrimSpace(m.Method+" "+string(m.RequestID.Value)))
	}
	s.b.mu.Unlock()
	if m.Kind == jsonrpc.Request {
		if _, err := s.c.BeginRequest(m); err != nil {
			s.c.RespondNow(m.ID, jsonrpc.NewError(m.ID, jsonrpc.Errorf(-32603, "%v", err)))
			return
		}
	}
	switch {
	case m.Method == "initialize" && s.b.refuses:
		time.AfterFunc(s.b.after, func() {
			answer(s.c, m.ID, jsonrpc.NewError(m.ID, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "no")), "-32602")
		})
	case m.Method == "initialize":
		version, _ := rawjson.Member(m.Params(), "protocolVersion")
		answer(s.c, m.ID, jsonrpc.NewResult(m.ID, []byte(`{"protocolVersion":`+string(version)+`,"capabilities":{}}`)), "")
	case m.Method == "echo":
		answer(s.c, m.ID, jsonrpc.NewResult(m.ID, m.Params()), "")
	case m.Method == "fail":
		answer(s.c, m.ID, jsonrpc.NewError(m.ID, jsonrpc.Errorf(-32000, "no")), "-32000")
	case m.Method == "never":
	case s.b.receive != nil:
		s.b.receive(s.c, m)
	}
}

// answer answers the request with that id, if it has no answer yet.
func answer(c connstate.ForHandler, id jsonrpc.ID, response []byte, errorType string) {
	if r := c.Request(id); r != nil {
		r.Answer(response, errorType)
	}
}

func (s *server) Refused(*connstate.Request, error) {}
func (s *server) Drained()                          {}
func (s *server) Closed()                           {}
func (s *server) OnMemory() bool                    { return false }

// fixture is a Handler on a server without sockets, and all that a test looks at.
type fixture struct {
	t        testing.TB
	backend  *backend
	handler  *streamable.Handler
	registry *connstate.Registry
	budget   *budget.Account
	prom     *prometheus.Registry
	srv      *pipetest.Server
}

// bubble runs a test of a Handler in a synctest bubble.
func bubble(t *testing.T, opts streamable.Options, limits connstate.Limits, test func(*fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, opts, limits)
		defer func() {
			f.stop()
			ssetest.Want(t, "connections that are left", f.registry.Len(), 0)
		}()
		test(f)
	})
}

// stop ends the gateway as a crash does.
func (f *fixture) stop() {
	f.closeAll()
	f.srv.Stop()
}

// closeAll closes all connections.
func (f *fixture) closeAll() {
	for _, c := range f.registry.All() {
		c.Close(connstate.ClosedShutdown)
	}
}

// key is that of the ids of all fixtures: a new one is the same gateway, started again.
var key = make([]byte, signedid.MinKey)

func newFixture(t testing.TB, opts streamable.Options, limits connstate.Limits) *fixture {
	t.Helper()
	prom := metrics.NewRegistry()
	m := metrics.New(prom)
	opts.Metrics = m
	b, account := &backend{}, budget.New(1<<30, m)
	registry := connstate.NewRegistry(limits, connstate.Options{Metrics: m, Budget: account, IDs: signedid.New(key, "", "")})
	h := streamable.New(b, registry, opts)
	return &fixture{t, b, h, registry, account, prom, pipetest.Serve(h, nil, nil)}
}

// count returns the sum of the series of a counter or gauge.
func (f *fixture) count(name string) float64 {
	f.t.Helper()
	return ssetest.Sum(f.t, f.prom, name)
}

// queued returns the bytes that wait for clients, without those that are kept for clients
// that may come back.
func (f *fixture) queued() float64 {
	return f.count("mcp_sse_held_bytes") - float64(f.handler.Kept())
}

const (
	acceptBoth = "application/json, text/event-stream"
	initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`
)

// reply is a response, of which the test reads the body.
type reply struct {
	*http.Response
	t      testing.TB
	in     *bufio.Reader
	cancel context.CancelFunc
}

// do sends a request with the headers of a client; header replaces or, with an empty
// value, removes some. A name that begins with + adds a value.
func (f *fixture) do(method, body string, header ...string) *reply {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	req := ssetest.Request(ctx, method, "http://localhost/mcp", body, "Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		if name, more := strings.CutPrefix(header[i], "+"); more {
			req.Header.Add(name, header[i+1])
			continue
		}
		req.Header.Del(header[i])
		if header[i+1] != "" {
			req.Header.Set(header[i], header[i+1])
		}
	}
	res, err := f.srv.Client.Do(req)
	if err != nil {
		cancel()
		f.t.Fatalf("%s: %v", method, err)
	}
	return &reply{res, f.t, bufio.NewReader(res.Body), cancel}
}

func (f *fixture) post(body string, header ...string) *reply {
	f.t.Helper()
	return f.do(http.MethodPost, body, header...)
}

// wantGone checks that there is no session for requests with these headers.
func (f *fixture) wantGone(header ...string) {
	f.t.Helper()
	f.post(request("1", "echo"), header...).wantStatus(http.StatusNotFound)
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		f.do(method, "", header...).wantStatus(http.StatusNotFound)
	}
}

// byHeader authenticates a client as what its Authorization says.
func byHeader(r *http.Request) (principal string, err error) {
	if principal = r.Header.Get("Authorization"); principal == "" {
		err = errors.New("no")
	}
	return principal, err
}

// in returns the headers of a request in a session.
func in(session string, more ...string) []string {
	return append([]string{"Mcp-Session-Id", session}, more...)
}

// initialize opens a session of a version, and returns its id.
func (f *fixture) initialize(version string) string {
	f.t.Helper()
	res := f.post(strings.Replace(initialize, "2025-11-25", version, 1))
	defer res.close()
	if id := res.Header.Get("Mcp-Session-Id"); res.StatusCode == http.StatusOK && id != "" {
		return id
	}
	f.t.Fatalf("initialize: %s: %s", res.Status, res.rest())
	return ""
}

// rest returns the rest of the body.
func (r *reply) rest() string {
	r.t.Helper()
	rest, err := io.ReadAll(r.in)
	ssetest.Must(r.t, err)
	return string(rest)
}

// close abandons the response, as a client that is cut.
func (r *reply) close() {
	r.cancel()
	_ = r.Body.Close()
}

// next returns the id and the data of the next event, heartbeats aside. The id is that of
// the stream and the event alone.
func (r *reply) next() (id, data string) {
	r.t.Helper()
	id, data = r.nextWhole()
	parts := strings.SplitN(id, "-", 3)
	return strings.Join(parts[:min(2, len(parts))], "-"), data
}

// nextWhole is next with the id as it came.
func (r *reply) nextWhole() (id, data string) {
	r.t.Helper()
	for {
		e, err := ssetest.Read(r.in)
		ssetest.Must(r.t, err)
		if !e.IsComment() {
			return e.ID, e.Data
		}
	}
}

// want checks status and body, and closes the response.
func (r *reply) want(status int, body string) {
	r.t.Helper()
	got := r.rest()
	if r.StatusCode != status || strings.TrimSpace(got) != body {
		r.t.Errorf("got %s %s, want %d %s", r.Status, got, status, body)
	}
	r.close()
}

// wantStatus checks the status, and that the body holds what the client must be told. It
// closes the response.
func (r *reply) wantStatus(status int, told ...string) {
	r.t.Helper()
	body := ""
	if len(told) > 0 {
		body = r.rest()
	}
	for _, text := range append(told, "") {
		if r.StatusCode != status || !strings.Contains(body, text) {
			r.t.Errorf("%s: got %s %s, want %d with %q", r.Request.Method, r.Status, body, status, text)
		}
	}
	r.close()
}

// wantEvent checks the next event.
func (r *reply) wantEvent(id, data string) {
	r.t.Helper()
	if gotID, got := r.next(); gotID != id || got != data {
		r.t.Errorf("got the event %q %s, want %q %s", gotID, got, id, data)
	}
}

// wantEnd checks that the stream ends in order.
func (r *reply) wantEnd() {
	r.t.Helper()
	ssetest.Want(r.t, "the rest", strings.TrimSpace(strings.NewReplacer(": heartbeat", "", "retry: 1000", "").Replace(r.rest())), "")
	r.close()
}

func request(id, method string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{"n":` + id + `}}`
}

func result(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{"n":` + id + `}}` }

const second = time.Second
