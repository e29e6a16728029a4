package gateway_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// several makes gateways in front of test servers, named a, b, c …, with the options
// that change sets for each.
func several(t testing.TB, change func(name string, opts *gateway.Options), servers ...*server) (*gateway.Servers, []*gateway.Gateway) {
	t.Helper()
	reg := prometheus.NewRegistry()
	var all []*gateway.Gateway
	for i, u := range servers {
		name := string(rune('a' + i))
		opts := gateway.Options{Name: name, Prefix: "/mcp/" + name, Registry: reg}
		if change != nil {
			change(name, &opts)
		}
		g, err := gateway.NewWith(u, gateway.Settings{Options: opts, AnnounceDelay: -1})
		must(t, err)
		all = append(all, g)
	}
	s, err := gateway.NewServers(all...)
	must(t, err)
	return s, all
}

// inFakeTimeWithSeveral is inFakeTime for several servers.
func inFakeTimeWithSeveral(t *testing.T, change func(string, *gateway.Options), test func(*testing.T, *gateway.Servers, []*gateway.Gateway), servers ...*server) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, all := several(t, change, servers...)
		defer func() {
			equal(t, "error", <-shutdown(s, time.Minute), nil)
			for i, u := range servers {
				if n := u.open(); n > 0 {
					t.Errorf("%d sessions of server %d are left", n, i)
				}
			}
		}()
		test(t, s, all)
	})
}

// ask sends a GET, or what target begins with, and returns the answer.
func ask(h http.Handler, target string) (code int, body string) {
	method, path, ok := strings.Cut(target, " ")
	if !ok {
		method, path = http.MethodGet, target
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(method, path, nil))
	return rec.Code, strings.TrimSpace(rec.Body.String())
}

// asks expects an answer with these texts.
func asks(t testing.TB, h http.Handler, target string, code int, texts ...string) {
	t.Helper()
	got, body := ask(h, target)
	for _, text := range texts {
		if got != code || !strings.Contains(body, text) {
			t.Errorf("%s: got %d %s, want %d and %q", target, got, body, code, text)
		}
	}
}

func TestServersThatDoNotGoTogether(t *testing.T) {
	reg := prometheus.NewRegistry()
	_, err := gateway.New(&server{}, gateway.Options{Registry: reg})
	must(t, err)
	if _, err := gateway.New(&server{}, gateway.Options{Name: "a", Registry: reg}); err == nil {
		t.Error("a gateway with a name counts in the registry of one without") // their series have other labels
	}
	reg = prometheus.NewRegistry()
	made := func(name, prefix string, reg *prometheus.Registry) *gateway.Gateway {
		g, err := gateway.New(&server{}, gateway.Options{Name: name, Prefix: prefix, Registry: reg})
		must(t, err)
		return g
	}
	for name, tc := range map[string]struct {
		all  []*gateway.Gateway
		want []string // one line each; none: they do
	}{
		"none":             {nil, []string{"servers: there is nothing to serve"}},
		"one":              {[]*gateway.Gateway{made("a", "/a", reg)}, nil},
		"no name":          {[]*gateway.Gateway{made("", "/b", nil)}, []string{`servers: the gateway with the prefix "/b" has no Name`}},
		"one name":         {[]*gateway.Gateway{made("a", "/a", reg), made("a", "/b", reg)}, []string{`servers: two gateways have the Name "a"`}},
		"one prefix":       {[]*gateway.Gateway{made("a", "/a", reg), made("b", "/a", reg)}, []string{`servers: the Prefix "/a" of "b" and "/a" of "a" overlap`}},
		"one in the other": {[]*gateway.Gateway{made("a", "/a/b", reg), made("b", "/a", reg)}, []string{`servers: the Prefix "/a" of "b" and "/a/b" of "a" overlap`}},
		"one at the root":  {[]*gateway.Gateway{made("a", "", reg), made("b", "/b", reg)}, []string{`servers: the Prefix "/b" of "b" and "" of "a" overlap`}},
		"a longer name":    {[]*gateway.Gateway{made("a", "/a", reg), made("b", "/ab", reg)}, nil},
		"two registries": {[]*gateway.Gateway{made("a", "/a", reg), made("b", "/b", nil), made("b", "/a", nil)}, []string{
			`servers: "b" and "a" have different registries: set the same Options.Registry for all`,
			`servers: "b" and "a" have different registries: set the same Options.Registry for all`,
			`servers: the Prefix "/a" of "b" and "/a" of "a" overlap`, `servers: two gateways have the Name "b"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := gateway.NewServers(tc.all...)
			got := ""
			if err != nil {
				got = err.Error()
			}
			equal(t, "error", got, strings.Join(tc.want, "\n"))
		})
	}
}

// The answer to a path of no server lists the paths of all, and the metrics count it
// under no server.
func TestPathOfNoServerLeavesATrace(t *testing.T) {
	var out bytes.Buffer
	s, _ := several(t, func(_ string, opts *gateway.Options) {
		opts.Logger = slog.New(slog.NewTextHandler(&out, nil))
	}, &server{}, &server{})
	defer s.Shutdown(t.Context())
	const told = "no such route: there are several servers, each at its own path: /mcp/a/mcp, /mcp/b/mcp"
	asks(t, s, "/sse?token=secret", http.StatusNotFound, told)
	if line := out.String(); !strings.Contains(line, `level=WARN msg="client refused" reason=not_found status=404 method=GET remote=192.0.2.1 path=/sse err="`+told) ||
		strings.Contains(line, "server=") || strings.Contains(line, "secret") {
		t.Errorf("got the log %q", line)
	}
	asks(t, s.Admin(), "/metrics", 200, "\nmcp_sse_connections_rejected_total{reason=\"not_found\",server=\"\",transport=\"\"} 1\n")
}

// Curl at the root is told of the page, where there is one.
func TestPathOfTheListNamesThePage(t *testing.T) {
	for access, want := range map[gateway.Page]string{
		gateway.PageOn: "/mcp/a/mcp, /mcp/b/mcp; open this URL in a browser for a page of them", gateway.PageOff: "/mcp/a/mcp, /mcp/b/mcp",
	} {
		s, _ := several(t, func(_ string, opts *gateway.Options) { opts.Page = access }, &server{}, &server{})
		defer s.Shutdown(t.Context())
		asks(t, s, "/", http.StatusNotFound, `each at its own path: `+want+`"`)
		asks(t, s, "/other", http.StatusNotFound, `each at its own path: /mcp/a/mcp, /mcp/b/mcp"`)
	}
}

// Where there are several servers, errors say which one it was.
func TestErrorsNameTheServer(t *testing.T) {
	u := &server{handle: func(s *serverSession, m *jsonrpc.Message) bool {
		if m.Method == "dies" {
			s.die()
		}
		return m.Method == "dies" || m.Method == "hangs"
	}}
	opts := gateway.Options{Name: "files", Prefix: "/files", RequestTimeout: 5 * time.Second}
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		for asked, want := range map[string]int{"files": 200, "": 404, "file": 404} {
			code, _ := ask(g.Admin(), "/readyz?server="+asked)
			equal(t, "/readyz?server="+asked, code, want)
		}
		p := connect(t, g, plain)
		p.post(request("1", "hangs"))
		time.Sleep(6 * time.Second)
		p.deliver(request("2", "dies"))
		var all []string
		for _, e := range p.received() {
			all = append(all, string(e.Data))
		}
		wantText(t, "names", strings.Join(all, "\n"), `the server \"files\" did not answer in 5s`, `the session with the server \"files\" was lost`)
	})
}

func TestServersRouteByPrefix(t *testing.T) {
	s, _ := several(t, nil, &server{}, &server{})
	defer s.Shutdown(t.Context())
	for path, want := range map[string]string{
		"/mcp/a/x":   "MCP is at /mcp/a/mcp",
		"/mcp/c/sse": "there are several servers",
		"/mcp/a":     "there are several servers",
		"/mcp/ab/x":  "there are several servers",
		"/sse":       "there are several servers",
	} {
		asks(t, s, path, http.StatusNotFound, want)
	}
	many, _ := several(t, nil, make([]*server, 18)...)
	defer many.Shutdown(t.Context())
	asks(t, many, "/", 404, "/mcp/o/mcp, /mcp/p/mcp and 2 more")
	// No server takes a message for a connection of another.
	rec := httptest.NewRecorder()
	req := ssetest.Request(t.Context(), http.MethodPost, "/mcp/b/sse/6ba7b810-9dad-11d1-80b4-00c04fd430c8/message", request("1", "ping"))
	if s.ServeHTTP(rec, req); rec.Code != http.StatusNotFound {
		t.Errorf("POST: got %d, want 404", rec.Code)
	}
}

func TestReadinessOfServers(t *testing.T) {
	admin := func(t *testing.T, h http.Handler, target string, wantCode int, want string) {
		t.Helper()
		if code, body := ask(h, target); code != wantCode || body != want {
			t.Errorf("%s: got %d %s, want %d %s", target, code, body, wantCode, want)
		}
	}
	const down = `{"status":"not ready","reason":"the server could not be started or reached"}`
	inFakeTimeWithSeveral(t, nil, func(t *testing.T, s *gateway.Servers, all []*gateway.Gateway) {
		h := s.Admin()
		began := time.Now()
		const starting = `{"status":"not ready","reason":"readiness probe: the server is still starting"}`
		admin(t, h, "/readyz", 200, `{"status":"ready","servers":{"a":{"status":"ready"},"b":`+down+`,"c":`+starting+`}}`)
		equal(t, "it took, want half a second after the first that is ready", time.Since(began), 500*time.Millisecond)
		admin(t, h, "/readyz?server=a", 200, `{"status":"ready"}`)
		admin(t, h, "/readyz?server=b", 503, down)
		admin(t, h, "/readyz?server=c", 503, `{"status":"not ready","reason":"the server is still starting"}`)
		admin(t, h, "/readyz?server=d", 404, `{"status":"not ready","reason":"there is no server of that name"}`)
		admin(t, h, "/readyz?server=", 404, `{"status":"not ready","reason":"there is no server of that name"}`)
		admin(t, h, "/healthz", 200, `{"status":"ok"}`)
		all[0].Drain()
		const draining = `{"status":"not ready","reason":"shutting down"}`
		admin(t, h, "/readyz?server=a", 503, draining)
		s.Drain()
		admin(t, h, "/readyz", 503, `{"status":"not ready","servers":{"a":`+draining+`,"b":`+draining+`,"c":`+draining+`}}`)
	}, &server{}, &server{dial: failing(1000)}, &server{dial: slow(time.Hour)})
}

// Ready waits for each server no longer than its own timeout, and a caller that gives up
// earlier gets its own error.
func TestReadinessOfServersIsBounded(t *testing.T) {
	inFakeTimeWithSeveral(t, nil, func(t *testing.T, s *gateway.Servers, _ []*gateway.Gateway) {
		began := time.Now()
		wantText(t, "error", s.Ready(t.Context())["b"], "the server is still starting")
		equal(t, "it took, want the initialization timeout", time.Since(began), 5*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ssetest.WantError(t, "error", s.Ready(ctx)["b"], context.DeadlineExceeded)
	}, &server{dial: slow(time.Hour)}, &server{dial: slow(time.Hour)})
}

// The connections and series of each server carry its name.
func TestConnectionsAndMetricsOfServers(t *testing.T) {
	inFakeTimeWithSeveral(t, nil, func(t *testing.T, s *gateway.Servers, all []*gateway.Gateway) {
		if _, body := ask(s.Admin(), "/connections"); body != `{"connections":[]}` {
			t.Errorf("without any: got %s, want an empty list", body)
		}
		p := connectReady(t, all[1])
		if _, body := ask(s.Admin(), "/connections"); !strings.HasPrefix(body, `{"connections":[{"server":"b","id":"`+p.c.ShortID()+`","state":"ready"`) || strings.Count(body, `"server"`) != 1 {
			t.Errorf("got %s, want the one of b", body)
		}
		_, body := ask(s.Admin(), "/metrics")
		for _, want := range []string{
			`mcp_sse_connections{server="a",transport="sse"} 0`, `mcp_sse_connections{server="b",transport="sse"} 1`,
			`mcp_sse_handshakes_total{phase="",reason="",result="ok",server="b"} 1`,
		} {
			wantText(t, "text", body, "\n"+want+"\n")
		}
		for line := range strings.Lines(body) {
			if strings.HasPrefix(line, "mcp_") && !strings.Contains(line, `server="`) {
				t.Errorf("no label server: %s", line)
			}
		}
	}, &server{}, &server{})
}

// All servers shut down at the same time, and the error names those that did not
// finish.
func TestShutdownOfServers(t *testing.T) {
	hang := &server{handle: func(_ *serverSession, m *jsonrpc.Message) bool { return m.Method == "hang" }}
	synctest.Test(t, func(t *testing.T) {
		s, all := several(t, nil, hang, hang, &server{})
		for _, g := range all[:2] {
			p := connectReady(t, g)
			p.post(request("1", "hang"))
		}
		synctest.Wait()
		began := time.Now()
		done := shutdown(s, 15*time.Second)
		synctest.Wait()
		for _, g := range all {
			wantText(t, "error", g.Ready(t.Context()), "shutting down")
		}
		err := <-done
		if err == nil || strings.Count(err.Error(), "1 connections cut, 1 requests answered") != 2 ||
			!strings.Contains(err.Error(), `server "a": `) || !strings.Contains(err.Error(), `server "b": `) || strings.Contains(err.Error(), `"c"`) {
			t.Errorf("got %v, want what was cut of a and of b", err)
		}
		if took := time.Since(began); took > 17*time.Second {
			t.Errorf("it took %s, want all at the same time", took)
		}
		equal(t, "sessions that are left", hang.open(), 0)
	})
}

// Streams of a gateway that has left go on until it is shut down. Then its series are gone, and
// its name can be used again; it can be before, too.
func TestServersAreReplaced(t *testing.T) {
	servers := []*server{{}, {}, {}, {}}
	inFakeTimeWithSeveral(t, nil, func(t *testing.T, s *gateway.Servers, all []*gateway.Gateway) {
		made := func(u *server, name string) *gateway.Gateway {
			g, err := gateway.NewWith(u, gateway.Settings{Options: gateway.Options{Name: name, Prefix: "/mcp/" + name, Registry: gateway.PromRegistry(all[0])}, AnnounceDelay: -1})
			must(t, err)
			return g
		}
		series := func(name string) int {
			_, body := ask(s.Admin(), "/metrics")
			return strings.Count(body, `server="`+name+`"`)
		}
		p := connectReady(t, all[1])
		all1 := series("b")
		c := made(servers[2], "c")
		if err := s.Replace(all[0], all[0]); err == nil {
			t.Error("one gateway twice was taken")
		}
		if code, _ := ask(s, "/mcp/b/none"); code != http.StatusNotFound || len(s.Snapshot()) != 1 {
			t.Errorf("after an error: %d, %d connections", code, len(s.Snapshot()))
		}
		must(t, s.Replace(all[0], c))
		p.served("1", 1, "tools/list")
		if code, body := ask(s.Admin(), "/readyz"); code != http.StatusOK || body != `{"status":"ready","servers":{"a":{"status":"ready"},"c":{"status":"ready"}}}` {
			t.Errorf("/readyz: %d %s", code, body)
		}
		asks(t, s, "/mcp/b/none", 404, "/mcp/a/mcp, /mcp/c/mcp\"")
		again := made(servers[3], "b") // while the one before still has a stream
		must(t, s.Replace(all[0], c, again))
		shut := func(g *gateway.Gateway) {
			equal(t, "error", <-shutdown(g, time.Minute), nil)
		}
		shut(all[1])
		p.wantState(connstate.Closed)
		if n := series("b"); n < all1 {
			t.Errorf("%d series of b, want the %d of the new one", n, all1)
		}
		connect(t, again, plain).wantState(connstate.Ready)
		must(t, s.Replace(all[0], c))
		shut(again)
		unused := made(servers[3], "d")
		shut(unused)
		if b, d := series("b"), series("d"); b != 0 || d != 0 {
			t.Errorf("%d and %d series of gateways that have ended", b, d)
		}
		shut(c)
		if series("c") == 0 {
			t.Error("a gateway that is served has no series")
		}
		s.Drain()
		if err := s.Replace(all[0]); err == nil {
			t.Error("Replace worked after Drain")
		}
	}, servers[:2]...)
}
