package statelessclient_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/budget"
	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/streamable/internal/statelessclient"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server stands behind the connections of a test: a server of 2025-11-25 that a script
// describes. It answers initialize, logging/setLevel and subscriptions by itself.
type server struct {
	capabilities string
	// failing is the error that initialize gets; empty: it works.
	failing string
	// tools is the result of tools/list; empty: serve answers.
	tools string
	// closes says that each connection is closed at once, as when the gateway shuts down.
	closes bool
	// silent are the methods that get no answer.
	silent []string
	// serve handles all other requests; nil: the result is {}.
	serve func(c *conn, m *jsonrpc.Message)
	// responded is called with each response of the client; may be nil.
	responded func(c *conn)

	mu     sync.Mutex
	conns  []*conn
	faults []string
}

// wrong notes something that must not happen.
func (s *server) wrong(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

// conn is one connection, as its server sees it.
type conn struct {
	connstate.ForHandler
	s *server

	mu  sync.Mutex
	got []*jsonrpc.Message // all but initialize
}

func (s *server) Accept(c *connstate.Connection) connstate.Handler {
	if s.closes {
		c.Close("shutdown")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = append(s.conns, &conn{ForHandler: connstate.ForHandler{Connection: c}, s: s})
	return s.conns[len(s.conns)-1]
}

// connections returns the connections that there have been.
func (s *server) connections() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.conns)
}

func (c *conn) Receive(m *jsonrpc.Message) {
	if m.Method == "initialize" {
		if c.s.failing != "" {
			c.RespondNow(m.ID, []byte(`{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":`+c.s.failing+`}`))
			return
		}
		c.answer(m, `{"protocolVersion":"2025-11-25","capabilities":`+c.s.capabilities+`,"serverInfo":{"name":"s","version":"1"},"instructions":"i"}`)
		return
	}
	c.mu.Lock()
	c.got = append(c.got, m)
	c.mu.Unlock()
	switch {
	case m.Kind == jsonrpc.Response && c.s.responded != nil:
		c.s.responded(c)
	case m.Kind != jsonrpc.Request, slices.Contains(c.s.silent, m.Method):
	case m.Method == "tools/list" && c.s.tools != "":
		c.answer(m, c.s.tools)
	case c.s.serve == nil, m.Method == "logging/setLevel", m.Method == "resources/subscribe", m.Method == "resources/unsubscribe":
		c.answer(m, `{}`)
	default:
		c.s.serve(c, m)
	}
}

func (c *conn) Refused(*connstate.Request, error) {}
func (c *conn) Drained()                          {}
func (c *conn) Closed()                           {}
func (c *conn) OnMemory() bool                    { return false }

func (c *conn) answer(m *jsonrpc.Message, result string) {
	c.RespondNow(m.ID, jsonrpc.NewResult(m.ID, json.RawMessage(result)))
}

func (c *conn) fail(m *jsonrpc.Message, e string) {
	c.RespondNow(m.ID, []byte(`{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":`+e+`}`))
}

// send sends a message that came with the request related; nil: unknown.
func (c *conn) send(related *jsonrpc.Message, message string) {
	var id jsonrpc.ID
	if related != nil {
		id = related.ID
	}
	_ = c.Send(id, []byte(message))
}

// received returns the messages so far whose method or kind is one of these.
func (c *conn) received(kinds ...string) (found []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.got {
		if slices.Contains(kinds, m.Method) || slices.Contains(kinds, m.Kind.String()) {
			found = append(found, string(m.Raw()))
		}
	}
	return found
}

// fixture is a Handler with all that a test looks at.
type fixture struct {
	*statelessclient.Handler
	server   *server
	registry *connstate.Registry
	checks   *httpcheck.Checker
	opts     statelessclient.Options
	prom     *prometheus.Registry
	counts   *metrics.Metrics
}

const allCapabilities = `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"logging":{},"tasks":{}}`

func newFixture(t testing.TB, o statelessclient.Options) *fixture {
	t.Helper()
	s := &server{capabilities: allCapabilities, tools: `{"tools":[]}`}
	prom := prometheus.NewRegistry()
	counts := metrics.New(prom)
	o.Metrics = counts
	o.Options, o.IdleTimeout = o.Options.WithDefaults(), cmp.Or(o.IdleTimeout, 5*time.Minute)
	f := httpcheck.New(o.Options)
	registry := connstate.NewRegistry(connstate.Limits{}, connstate.Options{Budget: budget.New(-1, counts), Metrics: counts})
	w := &fixture{prom: prom, counts: counts, Handler: statelessclient.New(f, s, registry, o), server: s, registry: registry, checks: f, opts: o}
	t.Cleanup(func() {
		for _, c := range registry.All() {
			c.Close(connstate.ClosedShutdown)
		}
		if n := registry.Len(); n > 0 {
			t.Errorf("%d connections are left", n)
		}
	})
	return w
}

// ask is a request of a client.
type ask struct {
	method, params     string // params without _meta
	id                 string // default 1
	principal          string
	capabilities, info string            // of _meta; default {}, and none
	meta               string            // more members of _meta: `,"a":1`
	header             map[string]string // in place of those that belong to the request; "": none
	body               string            // in place of that of the request
}

// message returns the body of the request.
func (a ask) message() string {
	if a.body != "" {
		return a.body
	}
	params := strings.TrimSuffix(strings.TrimSpace(a.params), "}")
	if params == "" {
		params = "{"
	}
	if params != "{" {
		params += ","
	}
	meta := fmt.Sprintf(`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s`, cmp.Or(a.capabilities, "{}"))
	if a.info != "" {
		meta += `,"io.modelcontextprotocol/clientInfo":` + a.info
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s"_meta":{%s%s}}}`, cmp.Or(a.id, "1"), a.method, params, meta, a.meta)
}

// request returns the POST with the headers that a client sends.
func (a ask) request(ctx context.Context) *http.Request {
	r := ssetest.Request(ctx, http.MethodPost, "/mcp", a.message(), "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", a.method)
	for _, member := range []string{"name", "uri"} {
		if raw, ok := rawjson.Member(json.RawMessage(a.message()), "params", member); ok && strings.Contains("tools/call prompts/get resources/read", a.method) {
			name, _ := rawjson.Text(raw)
			r.Header.Set("Mcp-Name", name)
		}
	}
	for name, value := range a.header {
		if value == "" {
			r.Header.Del(name)
			continue
		}
		r.Header.Set(name, value)
	}
	return r
}

// response is what a client has got so far.
type response struct {
	*httptest.ResponseRecorder
	mu     sync.Mutex    // guards its body
	done   chan struct{} // closed at its end
	cancel context.CancelFunc
}

func newResponse() *response {
	return &response{ResponseRecorder: httptest.NewRecorder(), done: make(chan struct{})}
}

func (r *response) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ResponseRecorder.Write(p)
}

// hooked is a response that a test holds up, or makes fail, before each of its writes.
type hooked struct {
	*response
	before func() error
}

func (h hooked) Write(p []byte) (int, error) {
	if err := h.before(); err != nil {
		return 0, err
	}
	return h.response.Write(p)
}

func (r *response) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Body.String()
}

// messages returns the messages of the response, in order.
func (r *response) messages() (all []string) {
	text := r.text()
	if strings.HasPrefix(text, "{") {
		return append(all, strings.TrimSpace(text))
	}
	for line := range strings.SplitSeq(text, "\n") {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			all = append(all, data)
		}
	}
	return all
}

// last returns the last message, which is the answer once the response is over.
func (r *response) last() json.RawMessage {
	all := r.messages()
	if len(all) == 0 {
		return nil
	}
	return json.RawMessage(all[len(all)-1])
}

// member returns what names lead to in the answer; empty for nothing.
func (r *response) member(names ...string) string {
	raw, _ := rawjson.Member(r.last(), names...)
	return string(raw)
}

// post serves a request as a handler of /mcp does, and a response that is aborted as
// net/http does.
func (f *fixture) post(w http.ResponseWriter, r *http.Request, principal string) {
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler {
			panic(p)
		}
	}()
	body, why := f.checks.ReadBody(w, r, func(int, int) error { return nil })
	if why == nil {
		var m *jsonrpc.Message
		if m, why = httpcheck.ParseMessage(body.Bytes); why == nil {
			f.ServePOST(w, r, principal, m, formOf(r))
			return
		}
	}
	f.checks.RefuseMessage(w, r, why)
}

// begin sends a request, and returns its response at once.
func (f *fixture) begin(t testing.TB, a ask) *response {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	w := newResponse()
	w.cancel = cancel
	go func() {
		defer close(w.done)
		f.post(w, a.request(ctx), a.principal)
	}()
	t.Cleanup(func() { cancel(); <-w.done })
	return w
}

// do sends a request and waits for the end of its response.
func (f *fixture) do(t testing.TB, a ask) *response {
	t.Helper()
	w := f.begin(t, a)
	<-w.done
	return w
}

// bubble runs a test with a fixture in a synctest bubble.
func bubble(t *testing.T, o statelessclient.Options, test func(t *testing.T, f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, o)
		test(t, f)
		for _, c := range f.registry.All() {
			c.Close(connstate.ClosedShutdown)
		}
		pause(time.Hour) // the end of all that waits for a client
		for _, fault := range f.server.faults {
			t.Error(fault)
		}
		want(t, "held bytes", f.series(t, "mcp_sse_held_bytes"), 0)
	})
}

// series returns the value of a metric, the sum over its labels or those with one of these
// values.
func (f *fixture) series(t testing.TB, name string, values ...string) float64 {
	t.Helper()
	return ssetest.Sum(t, f.prom, name, values...)
}

// quiet are the options of tests that count what a stream holds.
var quiet = statelessclient.Options{Options: httpcheck.Options{HeartbeatInterval: -1}}

// A short wait, in the time of a bubble.
func pause(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

var want = ssetest.Want

func formOf(r *http.Request) httpanswer.Form {
	form, _ := httpcheck.AnswerForm(r)
	return form
}
