package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

func reconfigure(t testing.TB, g *gateway.Gateway, up upstream.Upstream, opts gateway.Options) {
	t.Helper()
	must(t, g.Reconfigure(up, opts))
}

// works answers "work" after three seconds.
func works(s *serverSession, m *jsonrpc.Message) bool {
	if m.Method == "work" {
		time.AfterFunc(3*time.Second, func() { s.answer(m) })
	}
	return m.Method == "work"
}

// A Reconfigure that is refused forgets nothing of what the server said.
func TestReconfigureThatFailsForgetsNothing(t *testing.T) {
	u := &server{capabilities: withLists, handle: lists(nil)}
	inFakeTime(t, u, remembering(), func(t *testing.T, g *gateway.Gateway) {
		learned(t, g, u)
		opts := remembering().Options
		opts.Name, opts.Remember = "b", &gateway.Remember{Dir: t.TempDir()}
		if err := g.Reconfigure(nil, opts); !errors.Is(err, gateway.ErrFixed) {
			t.Fatalf("got %v, want ErrFixed", err)
		}
		must(t, g.Reconfigure(nil, remembering().Options))
		returns(t, g)
	})
}

// listed is a TracerProvider and a Registry that == cannot compare.
type listed struct {
	trace.TracerProvider
	more []int
}

// Options whose types cannot be compared with == are compared all the same.
func TestReconfigureWithOptionsThatCannotBeCompared(t *testing.T) {
	opts := gateway.Options{TracerProvider: listed{noop.NewTracerProvider(), []int{1}}}
	inFakeTime(t, &server{}, opts, func(t *testing.T, g *gateway.Gateway) {
		must(t, g.Reconfigure(nil, opts))
		opts.TracerProvider = listed{noop.NewTracerProvider(), []int{2}}
		if err := g.Reconfigure(nil, opts); !errors.Is(err, gateway.ErrFixed) {
			t.Errorf("got %v, want ErrFixed", err)
		}
	})
}

func TestReconfigureThatFailsChangesNothing(t *testing.T) {
	u, other := &server{}, &server{}
	before := gateway.Options{MaxConnections: 1, Name: "a", Prefix: "/a"}
	inFakeTime(t, u, before, func(t *testing.T, g *gateway.Gateway) {
		p := connectReady(t, g)
		for name, change := range map[string]func(o *gateway.Options){
			"Name":             func(o *gateway.Options) { o.Name = "b" },
			"Prefix":           func(o *gateway.Options) { o.Prefix = "" },
			"Transports":       func(o *gateway.Options) { o.Transports = []gateway.Transport{gateway.TransportSSE} },
			"IDKey":            func(o *gateway.Options) { o.IDKey = make([]byte, 32) },
			"NoAutoInitialize": func(o *gateway.Options) { o.NoAutoInitialize = true },
			"Sessions":         func(o *gateway.Options) { o.Sessions = gateway.SessionsShared },
			"SinglePath":       func(o *gateway.Options) { o.SinglePath, o.Prefix = true, "" },
			"PassRequest":      func(o *gateway.Options) { o.PassRequest = &gateway.PassRequest{} },
			"Logger":           func(o *gateway.Options) { o.Logger = slog.New(slog.DiscardHandler) },
			"Registry":         func(o *gateway.Options) { o.Registry = prometheus.NewRegistry() },
		} {
			opts := before
			change(&opts)
			if err := g.Reconfigure(other, opts); !errors.Is(err, gateway.ErrFixed) || !strings.Contains(err.Error(), name+": ") {
				t.Errorf("%s: got %v, want ErrFixed", name, err)
			}
		}
		wrong := before
		wrong.MaxConnections, wrong.MaxMessageBytes, wrong.StartTimeout = 2, -1, -1
		err := g.Reconfigure(other, wrong)
		if err == nil || errors.Is(err, gateway.ErrFixed) || !strings.Contains(err.Error(), "MaxMessageBytes") || !strings.Contains(err.Error(), "StartTimeout") {
			t.Errorf("got %v, want all that is wrong", err)
		}
		p.served("1", 1, "tools/list")
		if _, err := g.Registry().Open(plain); err == nil {
			t.Error("the limit of connections has changed")
		}
		if other.starts() > 0 {
			t.Error("the other server was started")
		}
	})
}

func TestReconfigureLimits(t *testing.T) {
	u := &server{dial: func(ctx context.Context, n int) error { return slow(time.Duration(n/3)*time.Hour)(ctx, n) }}
	inFakeTime(t, u, gateway.Options{MaxConnections: 1}, func(t *testing.T, g *gateway.Gateway) {
		p := connectReady(t, g)
		reconfigure(t, g, u, gateway.Options{MaxConnections: 3, RequestTimeout: 2 * time.Second, InitializationTimeout: 3 * time.Second})
		equal(t, "mcp_sse_max_connections", metric(t, g, "mcp_sse_max_connections"), 3)
		q := connect(t, g, plain)
		q.post(request("1", "hang"))
		p.deliver(request("1", "hang"))
		time.Sleep(2 * time.Second)
		q.want("1 timeout retryable=false")
		p.want()                  // a session keeps its own
		r := connect(t, g, plain) // its server hangs
		r.post(request("1", "tools/list"))
		synctest.Wait()
		time.Sleep(3 * time.Second)
		r.want("1 initialization_error*")
		reconfigure(t, g, nil, gateway.Options{MaxConnections: 1})
		if _, err := g.Registry().Open(plain); err == nil {
			t.Error("a connection over the new limit")
		}
		p.wantState(connstate.Ready)
		q.wantState(connstate.Ready)
		equal(t, "starts: the server is the same", u.starts(), 3)
	})
}

// Each connection gets a session with the new server; what is in flight at the old one is
// answered by it, which then ends.
func TestReconfigureServer(t *testing.T) {
	const clients = 500
	old, next := &server{handle: works}, &server{handle: works, capabilities: `{"tools":{"listChanged":true}}`}
	opts := gateway.Options{ConnectRate: -1}
	inFakeTime(t, old, opts, func(t *testing.T, g *gateway.Gateway) {
		var peers []*peer
		for range clients {
			peers = append(peers, connect(t, g, plain))
		}
		synctest.Wait()
		for i, p := range peers {
			if i%2 == 0 {
				p.post(request("1", "work"))
			}
		}
		synctest.Wait()
		time.Sleep(time.Second)
		var posts sync.WaitGroup
		for _, p := range peers {
			posts.Go(func() { p.post(request("2", "tools/call")) })
		}
		reconfigure(t, g, next, opts)
		posts.Wait()
		time.Sleep(time.Second)
		for _, p := range peers {
			p.wantState(connstate.Ready)
			got := p.take()
			slices.Sort(got)
			if len(got) != 2 || !strings.HasSuffix(got[0], `"method":"tools/call"}`) || got[1] != "notifications/tools/list_changed" {
				t.Fatalf("got %q, want an answer, and that the list has changed", got)
			}
		}
		equal(t, "sessions of the old server are open, want those that have a request", old.open(), clients/2)
		time.Sleep(2 * time.Second)
		for i, p := range peers {
			if i%2 == 0 {
				p.want(`1 {"session":*`)
			}
		}
		if a, b := old.open(), next.open(); a != 0 || b != clients {
			t.Errorf("%d sessions of the old server are open, and %d of the new one", a, b)
		}
		for name, want := range map[string]float64{
			"mcp_sse_session_restarts_total": 0, "mcp_sse_requests_repeated_total": 0, "mcp_sse_sessions": clients, "mcp_sse_connections": clients,
		} {
			equal(t, name, metric(t, g, name), want)
		}
	})
}

// The checks and limits for a client over HTTP have the new options, also beside the gateways of Servers.
func TestReconfigureTheWayIn(t *testing.T) {
	s, all := several(t, nil, &server{})
	g := all[0]
	t.Cleanup(func() {
		equal(t, "error", s.Shutdown(context.Background()), nil)
	})
	long := request("1", strings.Repeat("x", 100))
	check := func(from string, want ...int) {
		t.Helper()
		status := func(h http.Handler, method, path, body string) int {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, ssetest.Request(t.Context(), method, path, body, "Origin", from))
			return rec.Code
		}
		got := []int{status(s, http.MethodPost, "/mcp/a/mcp", long), status(s, http.MethodPost, "/mcp/a/sse/x/message", "{}"),
			status(s, http.MethodPost, "/elsewhere", "{}"), status(s.Admin(), http.MethodGet, "/healthz", "")}
		equal(t, "status from "+from, got, want)
	}
	const one, other = "https://one.example.com", "https://other.example.com"
	opts := gateway.Options{Name: "a", Prefix: "/mcp/a", Registry: gateway.PromRegistry(g), AllowedOrigins: []string{one}}
	reconfigure(t, g, nil, opts)
	check(one, 200, 404, 404, 200)
	check(other, 403, 403, 403, 403)
	opts.AllowedOrigins, opts.MaxMessageBytes = []string{other}, 100
	reconfigure(t, g, nil, opts)
	check(other, 413, 404, 404, 200)
	check(one, 403, 403, 403, 403)
	opts.Authenticate = func(*http.Request) (string, error) { return "", errors.New("nobody") }
	reconfigure(t, g, nil, opts)
	check(other, 401, 401, 404, 200)
}

// Sessions of Streamable HTTP go on, and clients without sessions get what the new server says.
func TestReconfigureStreamable(t *testing.T) {
	old, next := &server{handle: works}, &server{handle: works, capabilities: `{"prompts":{}}`}
	inFakeTime(t, old, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		srv := pipetest.Serve(g, nil, nil)
		defer srv.Stop()
		p := connectStreamable(t, g, srv, func(int) int { return 0 })
		defer p.leave()
		modern := func(method string) string {
			res, err := srv.Client.Do(ssetest.Request(t.Context(), http.MethodPost, "http://localhost/mcp", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{"_meta":{`+
				`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}}}`,
				"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method))
			must(t, err)
			defer res.Body.Close()
			body, _ := io.ReadAll(res.Body)
			return string(body)
		}
		discover := func() string { return modern("server/discover") }
		wantText(t, "text", discover(), `"capabilities":{}`)
		p.post(request("1", "work"))
		held := make(chan string, 1)
		go func() { held <- modern("work") }()
		synctest.Wait()
		reconfigure(t, g, next, gateway.Options{})
		wantText(t, "text", discover(), `"capabilities":{"prompts":{}}`)
		p.post(request("2", "tools/list"))
		wantText(t, "text", <-held, `"method":"work"`)
		time.Sleep(time.Second)
		got := said(t, p)
		if len(got) != 2 || !strings.HasPrefix(got[0], `2 {"session":`) || got[1] != answered("1", 1, "work") {
			t.Errorf("got %q, want an answer of the new server, then one of the old one", got)
		}
		equal(t, "sessions of the old server", old.open(), 0)
		equal(t, "mcp_sse_connections", metric(t, g, "mcp_sse_connections"), 2)
	})
}

type wrapped struct{ upstream.Upstream }

// Two upstreams are the same server if all that makes the server is the same.
func TestReconfigureComparesServers(t *testing.T) {
	command := func(arg string) upstream.Upstream {
		return upstream.Command{Path: "x", Args: []string{arg}, Env: []string{"A=b"}}
	}
	at := func(token string) upstream.Upstream {
		return upstream.URL{Address: "http://x", Header: http.Header{"Authorization": {token}}}
	}
	u, f := &server{}, upstream.Handle(func(context.Context, json.RawMessage) any { return nil })
	for i, tc := range []struct {
		a, b upstream.Upstream
		want bool
	}{
		{command("1"), command("1"), true},
		{command("1"), command("2"), false},
		{at("1"), at("1"), true},
		{at("1"), at("2"), false},
		{at("1"), command("1"), false},
		{u, u, true},
		{u, &server{}, false},
		{generation{u, 1}, generation{u, 1}, true},
		{f, f, false},
		{wrapped{f}, wrapped{f}, false},
		{wrapped{u}, wrapped{u}, true},
	} {
		equal(t, "pair "+strconv.Itoa(i), gateway.SameServer(tc.a, tc.b), tc.want)
	}
}

func TestReconfigureIsSerialized(t *testing.T) {
	var servers []*server
	for range 8 {
		servers = append(servers, &server{handle: works})
	}
	inFakeTime(t, servers[0], gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connectReady(t, g)
		p.deliver(request("1", "work"))
		var wg sync.WaitGroup
		for _, u := range servers[1:] {
			wg.Go(func() { reconfigure(t, g, u, gateway.Options{}) })
		}
		wg.Wait()
		p.wantState(connstate.Ready)
		p.post(request("2", "tools/list"))
		p.want(`2 {"session":*`)
		time.Sleep(4 * time.Second)
		p.want(answered("1", 1, "work"))
		open := 0
		for _, u := range servers {
			open += u.open()
		}
		equal(t, "sessions are open", open, 1)
	})
}

func TestReconfigureSharedServer(t *testing.T) {
	for range 20 { // who ends the session first
		old, next := &server{handle: works}, &server{handle: works}
		var log bytes.Buffer
		opts := sharing
		opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
		inFakeTime(t, old, opts, func(t *testing.T, g *gateway.Gateway) {
			p, q := connect(t, g, plain), connect(t, g, plain)
			p.wantState(connstate.Ready)
			p.deliver(request("1", "work"))
			reconfigure(t, g, next, opts)
			for _, peer := range []*peer{p, q} {
				peer.served("2", 1, "tools/list")
			}
			time.Sleep(4 * time.Second)
			p.want(answered("1", 1, "work"))
			if old.open() != 0 || next.starts() != 1 || metric(t, g, "mcp_sse_session_restarts_total") != 0 {
				t.Errorf("%d sessions of the old server, %d starts of the new one", old.open(), next.starts())
			}
		})
		equal(t, "times that the log says it", strings.Count(log.String(), "shared session replaced"), 1)
	}
}

// A list of tools that comes late, from a server that is replaced, is not taken for the new server's.
func TestReconfigureForgetsTools(t *testing.T) {
	old := &server{handle: on("tools/list", func(s *serverSession, m *jsonrpc.Message) {
		time.AfterFunc(time.Second, func() {
			s.say(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"tools":[{"name":"a"}]}}`)
		})
	})}
	inFakeTime(t, old, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.deliver(request("1", "tools/list"))
		reconfigure(t, g, &server{}, gateway.Options{})
		time.Sleep(2 * time.Second)
		p.want(`1 {"tools":[{"name":"a"}]}`)
		equal(t, "mcp_sse_tools: they are those of the server before", metric(t, g, "mcp_sse_tools"), 0)
	})
}

// Without the gateway's handshake, a client whose initialize the server before answers uses a
// session of the new server that has been initialized too.
func TestReconfigureDuringAnInitializeOfTheClient(t *testing.T) {
	old := &server{handle: on("initialize", late(time.Second))}
	next := &server{}
	opts := gateway.Options{NoAutoInitialize: true}
	inFakeTime(t, old, opts, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.deliver(initialize("0", "2025-11-25", `{}`))
		reconfigure(t, g, next, opts)
		time.Sleep(2 * time.Second)
		p.want("0 *")
		p.post(initialized, request("1", "tools/list"))
		p.want(`1 {"session":*`)
		if got := next.session(t, next.starts()).methods(); got[0] != "initialize" {
			t.Errorf("the session of the new server got %q", got)
		}
	})
}

// An initialize that is too long to be kept is answered by the server before, too. Then the connection has the new
// server, which gets no initialize of the gateway.
func TestReconfigureDuringALongInitializeOfTheClient(t *testing.T) {
	old, next := &server{handle: on("initialize", late(time.Second))}, &server{}
	opts := gateway.Options{NoAutoInitialize: true}
	inFakeTime(t, old, opts, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.deliver(initialize("0", "2025-11-25", `{"experimental":{"x":{"pad":"`+strings.Repeat("x", 64<<10)+`"}}}`))
		reconfigure(t, g, next, opts)
		time.Sleep(2 * time.Second)
		p.want("0 *")
		p.served("1", 1, "tools/list")
		equal(t, "sessions of the new server", next.starts(), 1)
		next.session(t, 1).wantMethods(t, "tools/list")
	})
}

// A caller who waits for Ready while the server is replaced gets the readiness of the new
// server. A gateway that shuts down takes no new server.
func TestReconfigureReadiness(t *testing.T) {
	inFakeTime(t, &server{dial: slow(time.Hour)}, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		ready := make(chan error)
		go func() { ready <- g.Ready(t.Context()) }()
		synctest.Wait()
		reconfigure(t, g, &server{}, gateway.Options{})
		equal(t, "error", <-ready, nil)
		reconfigure(t, g, &server{dial: failing(100)}, gateway.Options{})
		if err := g.Ready(t.Context()); err == nil {
			t.Error("ready, by what was known of the server before")
		}
		g.Drain()
		if err := g.Reconfigure(nil, gateway.Options{}); err == nil {
			t.Error("Reconfigure worked after Drain")
		}
	})
}

func TestReconfigureWarm(t *testing.T) {
	u, next := &server{}, &server{}
	inFakeTime(t, u, gateway.Options{Warm: 2}, func(t *testing.T, g *gateway.Gateway) {
		g.Start()
		for _, step := range []struct {
			up        *server
			warm      int
			old, next int
		}{{u, 3, 3, 0}, {u, 1, 1, 0}, {next, 2, 0, 2}, {next, 0, 0, 0}, {next, 1, 0, 1}} {
			time.Sleep(time.Second)
			reconfigure(t, g, step.up, gateway.Options{Warm: step.warm})
			time.Sleep(time.Second)
			if a, b, idle := u.open(), next.open(), metric(t, g, "mcp_sse_pool_idle"); a != step.old || b != step.next || int(idle) != a+b {
				t.Errorf("%+v: %d and %d servers, %g idle", step, a, b, idle)
			}
		}
		newest := next.starts()
		p := connect(t, g, plain)
		p.served("1", newest, "tools/list")
	})
}

// Connections that have given up, that pause, whose start hangs, and whose server dies after
// each start get the new server at once.
func TestReconfigureServerThatFails(t *testing.T) {
	for name, old := range map[string]*server{
		"down": {dial: failing(100)}, "hangs": {dial: slow(time.Hour)}, "dies": {handle: crashesOnceInitialized},
	} {
		t.Run(name, func(t *testing.T) {
			next := &server{}
			inFakeTime(t, old, gateway.Options{StartTimeout: 50 * time.Second}, func(t *testing.T, g *gateway.Gateway) {
				peers := []*peer{connect(t, g, plain)}
				time.Sleep(10 * time.Minute)
				for range 10 {
					peers = append(peers, connect(t, g, plain))
					time.Sleep(300 * time.Millisecond)
				}
				if err := g.Ready(t.Context()); err == nil && name != "dies" {
					t.Error("ready")
				}
				reconfigure(t, g, next, gateway.Options{})
				for _, p := range peers {
					p.wantState(connstate.Ready)
					p.take()
					p.post(request("1", "tools/list"))
					p.want(`1 {"session":*`)
				}
				equal(t, "error", g.Ready(t.Context()), nil)
				equal(t, "starts", next.starts(), len(peers))
			})
		})
	}
}

// A call that asks its client something is answered by the server before, also after another
// one has taken its place.
func TestReconfigureDuringAQuestion(t *testing.T) {
	old := &server{}
	old.handle = func(s *serverSession, m *jsonrpc.Message) bool {
		switch {
		case m.Method == "tools/call":
			s.say(`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`)
		case m.Kind == jsonrpc.Response:
			s.say(`{"jsonrpc":"2.0","id":` + string(s.message(t, "tools/call").ID) + `,"result":{"told":` + string(m.Result()) + `}}`)
		}
		return m.Method == "tools/call" || m.Kind == jsonrpc.Response
	}
	inFakeTime(t, old, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.post(initialize("0", "2025-11-25", `{"roots":{}}`), request("1", "tools/call"))
		p.take()
		id := p.lastRequest(t)
		for range 2 {
			reconfigure(t, g, &server{}, gateway.Options{})
			synctest.Wait()
			p.deliver(request("2", "hang"))
		}
		p.post(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":{"roots":[]}}`)
		if got := p.take(); len(got) == 0 || got[len(got)-1] != `1 {"told":{"roots":[]}}` {
			t.Errorf("got %q", got)
		}
	})
}

// A request can be cancelled at the server that is replaced: by its client, or because that
// leaves.
func TestReconfigureThenCancel(t *testing.T) {
	for name, opts := range map[string]gateway.Options{"own": {}, "shared": sharing} {
		for range 20 {
			old := &server{}
			inFakeTime(t, old, opts, func(t *testing.T, g *gateway.Gateway) {
				stays, leaves := connect(t, g, plain), connect(t, g, plain)
				for _, p := range []*peer{stays, leaves} {
					p.wantState(connstate.Ready)
					p.post(request("1", "hang"))
				}
				synctest.Wait()
				reconfigure(t, g, &server{}, opts)
				stays.wantState(connstate.Ready)
				stays.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
				leaves.wantState(connstate.Ready)
				leaves.c.Close(connstate.ClosedClient)
				synctest.Wait()
				n := 0
				for i := range old.starts() {
					n += old.session(t, i+1).count("notifications/cancelled")
				}
				if want := map[string]int{"own": 1, "shared": 2}[name]; n != want { // the session of one that leaves ends
					t.Errorf("%s: %d cancellations reached the server, want %d", name, n, want)
				}
			})
		}
	}
}
