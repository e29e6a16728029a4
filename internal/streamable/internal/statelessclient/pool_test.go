package statelessclient_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/streamable/internal/statelessclient"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Requests of one client share a connection, and requests of two clients do not.
func TestClientsAreToldApart(t *testing.T) {
	base := ask{method: "tools/list", principal: "ada", header: map[string]string{"X-Key": "M\xfcller"}, capabilities: `{"roots":{},"sampling":{"a":1}}`, info: `{"name":"n","version":"1"}`}
	for name, tc := range map[string]struct {
		change func(*ask)
		shared bool
	}{
		"the same":              {func(*ask) {}, true},
		"another method":        {func(a *ask) { a.method = "server/discover" }, true},
		"a log level":           {func(a *ask) { a.meta = logging("info") }, true},
		"another header":        {func(a *ask) { a.header = map[string]string{"X-Key": "M\xfcller", "X-Other": "1"} }, true},
		"another principal":     {func(a *ask) { a.principal = "eve" }, false},
		"no principal":          {func(a *ask) { a.principal = "" }, false},
		"other capabilities":    {func(a *ask) { a.capabilities = `{"roots":{}}` }, false},
		"another program":       {func(a *ask) { a.info = `{"name":"m","version":"1"}` }, false},
		"no program":            {func(a *ask) { a.info = "" }, false},
		"another passed header": {func(a *ask) { a.header = map[string]string{"X-Key": "M\xe4ller"} }, false}, // bytes, not UTF-8
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, statelessclient.Options{Options: httpcheck.Options{ForwardHeaders: []string{"X-Key"}}})
			other := base
			tc.change(&other)
			f.do(t, base)
			f.do(t, other)
			want(t, "shared", len(f.server.connections()) == 1, tc.shared)
		})
	}
}

// Without a principal, the network tells strangers apart. Behind a proxy that is not trusted
// all have one address, and the log says so once.
func TestStrangersAreToldApart(t *testing.T) {
	var log strings.Builder
	f := newFixture(t, statelessclient.Options{Options: httpcheck.Options{
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}})
	for _, step := range []struct {
		remote, forwarded, principal string
		connections                  int // so far
	}{
		{"192.0.2.1:1", "", "", 1}, {"192.0.2.1:2", "", "", 1}, {"192.0.2.2:1", "", "", 2},
		{"[2001:db8::1]:1", "", "", 3}, {"[2001:db8::2]:1", "", "", 3},
		{"10.0.0.1:1", "192.0.2.7", "", 4}, {"10.0.0.1:1", "192.0.2.7", "", 4}, {"10.0.0.1:1", "192.0.2.8", "", 5},
		{"127.0.0.1:1", "192.0.2.7", "", 6}, {"127.0.0.1:1", "192.0.2.7", "", 7}, {"@", "192.0.2.7", "", 8},
		{"127.0.0.1:1", "192.0.2.7", "ada", 9}, {"127.0.0.1:1", "192.0.2.8", "ada", 9}, // the principal tells them apart
	} {
		r := ask{method: "tools/list"}.request(t.Context())
		r.RemoteAddr = step.remote
		if step.forwarded != "" {
			r.Header.Set("X-Forwarded-For", step.forwarded)
		}
		f.post(newResponse(), r, step.principal)
		want(t, step.remote+" for "+step.forwarded, len(f.server.connections()), step.connections)
	}
	want(t, "open connections", f.registry.Len(), 6)
	want(t, "warnings", strings.Count(log.String(), "level=WARN"), 1)
	ssetest.WantText(t, "log", log.String(), "set trusted-proxies", "proxy=127.0.0.1")
}

// Calls that may ask have a connection to themselves, and leave it to the next. Others share.
func TestCallsThatMayAskHaveTheirOwnConnection(t *testing.T) {
	bubble(t, quiet, func(t *testing.T, f *fixture) {
		var answers []func()
		f.server.serve = func(c *conn, m *jsonrpc.Message) { answers = append(answers, func() { c.answer(m, `{}`) }) }
		get := func(capabilities string, connections int) *response {
			t.Helper()
			r := f.begin(t, ask{method: "prompts/get", params: `{"name":"p"}`, capabilities: capabilities})
			synctest.Wait()
			want(t, "connections", len(f.server.connections()), connections)
			return r
		}
		all := []*response{get(askAll, 1), get(askAll, 2)}
		f.do(t, ask{method: "tools/list", capabilities: askAll}) // any connection will do
		answers[1]()
		<-all[1].done
		all = append(all, get(askAll, 2), get(`{}`, 3), get(`{}`, 3))
		for _, answer := range answers {
			answer()
		}
		for _, r := range all {
			<-r.done
		}
	})
}

// A call for which there is no connection waits, and is refused at last.
func TestCallsOfOneClientAreBounded(t *testing.T) {
	bubble(t, quiet, func(t *testing.T, f *fixture) {
		f.SetLimits(1, 8)
		var answer func()
		f.server.serve = func(c *conn, m *jsonrpc.Message) { answer = func() { c.answer(m, `{}`) } }
		a := ask{method: "prompts/get", params: `{"name":"p"}`, capabilities: askAll}
		first := f.begin(t, a)
		synctest.Wait()
		second := f.begin(t, a)
		pause(10 * time.Second)
		answer()
		<-first.done
		synctest.Wait()
		third := f.begin(t, a)
		<-third.done
		want(t, "status", third.Code, 503)
		want(t, "reason", third.member("error", "data", "reason"), `"server_busy"`)
		want(t, "id", third.member("id"), 1)
		want(t, "refused for bytes", f.series(t, "mcp_sse_posts_rejected_total", metrics.RejectedBudget), 0)
		want(t, "refused calls", f.series(t, "mcp_sse_posts_rejected_total", metrics.PostBusy), 1)
		answer()
		<-second.done
		want(t, "result type", second.member("result", "resultType"), `"complete"`)
		want(t, "connections", len(f.server.connections()), 1)
	})
}

// A request may wait for longer than the write timeout of the http.Server, which counts
// from its start: for a connection of its client, and for its answer.
func TestWaitsOutliveTheWriteTimeout(t *testing.T) {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
		bubble(t, quiet, func(t *testing.T, f *fixture) {
			f.SetLimits(1, 8)
			f.server.serve = func(c *conn, m *jsonrpc.Message) {
				time.AfterFunc(40*time.Second, func() { c.answer(m, `{}`) })
			}
			protocols := new(http.Protocols)
			protocols.SetHTTP1(protocol == "HTTP/1.1")
			protocols.SetUnencryptedHTTP2(protocol == "HTTP/2")
			srv := pipetest.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.post(w, r, "") }), protocols,
				func(s *http.Server) { s.WriteTimeout = 20 * time.Second })
			defer srv.Stop()
			call := func() <-chan string {
				got := make(chan string, 1)
				r := ask{method: "prompts/get", params: `{"name":"p"}`, capabilities: askAll}.request(t.Context())
				r.RequestURI, r.URL.Scheme, r.URL.Host = "", "http", "localhost"
				go func() {
					res, err := srv.Client.Do(r)
					if err != nil {
						got <- err.Error()
						return
					}
					defer res.Body.Close()
					_, _ = io.Copy(io.Discard, res.Body)
					got <- res.Status
				}()
				synctest.Wait()
				return got
			}
			first, second := call(), call()
			want(t, protocol+", no connection", <-second, "503 Service Unavailable")
			want(t, protocol+", a slow answer", <-first, "200 OK")
		})
	}
}

func TestUnusedConnectionsAreClosed(t *testing.T) {
	o := quiet
	o.IdleTimeout = time.Minute
	bubble(t, o, func(t *testing.T, f *fixture) {
		f.do(t, ask{method: "tools/list"})
		c := f.server.connections()[0]
		pause(50 * time.Second)
		f.do(t, ask{method: "tools/list"})
		pause(50 * time.Second)
		want(t, "state", c.State(), connstate.Initializing) // the test's server never opens its gate
		pause(20 * time.Second)
		want(t, "reason", c.Reason(), "idle")
		want(t, "open ones", f.registry.Len(), 0)
		f.do(t, ask{method: "tools/list"})
		want(t, "connections", len(f.server.connections()), 2)
	})
}

// A connection that closes ends its requests; the next request gets another one.
func TestLostConnection(t *testing.T) {
	bubble(t, quiet, func(t *testing.T, f *fixture) {
		f.server.silent = []string{"prompts/list"}
		r := f.begin(t, ask{method: "prompts/list"})
		synctest.Wait()
		f.server.connections()[0].Close("server")
		<-r.done
		want(t, "status", r.Code, 200)
		want(t, "reason", r.member("error", "data", "reason"), `"session_lost"`)
		want(t, "status of the next", f.do(t, ask{method: "tools/list"}).Code, 200)
		want(t, "connections", len(f.server.connections()), 2)
	})
}

// limited gives the Handler a registry with limits.
func (f *fixture) limited(limits connstate.Limits) {
	f.registry = connstate.NewRegistry(limits, connstate.Options{Metrics: f.counts})
	f.Handler = statelessclient.New(f.checks, f.server, f.registry, f.opts)
}

// atRefusal calls a function when the log says that a connection is refused.
type atRefusal struct {
	slog.Handler
	call func()
}

func (atRefusal) Enabled(context.Context, slog.Level) bool { return true }

func (h atRefusal) Handle(_ context.Context, line slog.Record) error {
	if line.Message == "connection refused" {
		h.call()
	}
	return nil
}

// The server may be replaced while a connection is refused, which counts once.
func TestConnectionIsRefusedWhileTheServerIsReplaced(t *testing.T) {
	var f *fixture
	o := quiet
	o.Logger = slog.New(atRefusal{slog.DiscardHandler, func() { f.ServerReplaced() }})
	f = newFixture(t, o)
	f.limited(connstate.Limits{MaxPerIP: 1})
	want(t, "status", f.do(t, ask{method: "tools/list", info: `{"name":"a"}`}).Code, 200)
	want(t, "status over the limit", f.do(t, ask{method: "tools/list", info: `{"name":"b"}`}).Code, 429)
	want(t, "refused connections", f.series(t, "mcp_sse_connections_rejected_total"), 1)
	want(t, "refused POSTs", f.series(t, "mcp_sse_posts_rejected_total"), 0)
}

// The limits of the registry hold for these connections too; unused ones make room.
func TestLimitsOfTheRegistry(t *testing.T) {
	f := newFixture(t, quiet)
	f.limited(connstate.Limits{MaxConnections: 2})
	for i := range 5 {
		want(t, "status", f.do(t, ask{method: "tools/list", principal: fmt.Sprint(i)}).Code, 200)
	}
	want(t, "open ones", f.registry.Len(), 2)
	for i, c := range f.server.connections() { // those that were unused for longest have gone
		want(t, fmt.Sprintf("connection %d is open", i), c.Reason() == "", i >= 3)
	}
}

// With PassRequest no two requests share what may differ; a server that sees the principal
// alone has connections as always.
func TestPassedRequestsDoNotShareConnections(t *testing.T) {
	for samePeer, connections := range map[bool]int{false: 2, true: 1} {
		type tenant struct{}
		o := statelessclient.Options{Options: httpcheck.Options{PassRequest: true, RequestContext: func(r *http.Request) (context.Context, error) {
			return context.WithValue(r.Context(), tenant{}, r.Header.Get("X-Tenant")), nil
		}}, SamePeer: samePeer}
		f := newFixture(t, o)
		var tenants []any
		f.server.serve = func(c *conn, m *jsonrpc.Message) {
			tenants = append(tenants, m.Context.Value(tenant{}))
			c.answer(m, `{}`)
		}
		for _, name := range []string{"a", "b"} {
			f.do(t, ask{method: "prompts/list", header: map[string]string{"X-Tenant": name}})
		}
		want(t, "tenants", tenants, "[a b]")
		want(t, "connections", len(f.server.connections()), connections)
		if !samePeer {
			want(t, "open ones", f.registry.Len(), 0)
			want(t, "tenant", f.server.connections()[1].Client().Context.Value(tenant{}), "b")
		}
	}
}

// Another connection's end does not help a request that comes too fast, or during a drain.
func TestRefusalsThatEndNoConnection(t *testing.T) {
	bubble(t, quiet, func(t *testing.T, f *fixture) {
		f.limited(connstate.Limits{Rate: 0.01, Burst: 1})
		list := func(program string, status int) *response {
			t.Helper()
			r := f.do(t, ask{method: "tools/list", info: fmt.Sprintf(`{"name":%q}`, program)})
			want(t, "status", r.Code, status)
			return r
		}
		list("a", 200)
		want(t, "Retry-After", list("b", 429).Header().Get("Retry-After"), 100)
		f.registry.Drain()
		want(t, "id", list("b", 503).member("id"), 1)
		list("a", 200)
	})
}

// A connection may close before its handshake begins: then the request is refused.
func TestConnectionThatClosesAtOnce(t *testing.T) {
	bubble(t, quiet, func(t *testing.T, f *fixture) {
		f.server.closes = true
		r := f.do(t, ask{method: "tools/list"})
		want(t, "status", r.Code, 503)
		want(t, "reason", r.member("error", "data", "reason"), `"session_lost"`)
		want(t, "open ones", f.registry.Len(), 0)
	})
}
