package gateway_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/upstream"
)

func reconfigure(t testing.TB, g *gateway.Gateway, up upstream.Upstream, opts gateway.Options) {
	t.Helper()
	if err := g.Reconfigure(up, opts); err != nil {
		t.Fatal(err)
	}
}

// works answers "work" after three seconds.
func works(s *serverSession, m *jsonrpc.Message) bool {
	if m.Method == "work" {
		time.AfterFunc(3*time.Second, func() { s.answer(m) })
	}
	return m.Method == "work"
}

func TestReconfigureThatFailsChangesNothing(t *testing.T) {
	u, other := &server{}, &server{}
	before := gateway.Options{MaxConnections: 1, Name: "a", Prefix: "/a"}
	inFakeTime(t, u, before, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.wantState(connstate.Ready)
		for name, change := range map[string]func(o *gateway.Options){
			"Name":             func(o *gateway.Options) { o.Name = "b" },
			"Prefix":           func(o *gateway.Options) { o.Prefix = "" },
			"Transports":       func(o *gateway.Options) { o.Transports = []string{gateway.TransportSSE} },
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
			if err := g.Reconfigure(other, opts); !errors.Is(err, gateway.ErrFixed) || !strings.Contains(err.Error(), "gateway: "+name) {
				t.Errorf("%s: got %v, want ErrFixed", name, err)
			}
		}
		wrong := before
		wrong.MaxConnections, wrong.MaxMessageBytes, wrong.StartTimeout = 2, -1, -1
		err := g.Reconfigure(other, wrong)
		if err == nil || errors.Is(err, gateway.ErrFixed) || !strings.Contains(err.Error(), "MaxMessageBytes") || !strings.Contains(err.Error(), "StartTimeout") {
			t.Errorf("got %v, want all that is wrong", err)
		}
		p.post(request("1", "tools/list"))
		p.want(answered("1", 1, "tools/list"))
		if _, err := g.Registry().Open(plain); err == nil {
			t.Error("the limit of connections has changed")
		}
		if other.starts() > 0 {
			t.Error("the other server was started")
		}
	})
}

func TestReconfigureLimits(t *testing.T) {
	u := &server{}
	inFakeTime(t, u, gateway.Options{MaxConnections: 1}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.wantState(connstate.Ready)
		reconfigure(t, g, u, gateway.Options{MaxConnections: 3, RequestTimeout: 2 * time.Second, InitializationTimeout: 3 * time.Second})
		q := connect(t, g, plain)
		q.post(request("1", "hang"))
		p.post(request("1", "hang"))
		synctest.Wait()
		time.Sleep(2 * time.Second)
		q.want("1 timeout retryable=false")
		p.want() // a session keeps its own
		reconfigure(t, g, nil, gateway.Options{MaxConnections: 1})
		if _, err := g.Registry().Open(plain); err == nil {
			t.Error("a connection over the new limit")
		}
		p.wantState(connstate.Ready)
		q.wantState(connstate.Ready)
		if n := u.starts(); n != 2 {
			t.Errorf("%d starts, want 2: the server is the same", n)
		}
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
		reconfigure(t, g, next, opts)
		for _, p := range peers {
			p.post(request("2", "tools/list"))
		}
		time.Sleep(time.Second)
		for _, p := range peers {
			p.wantState(connstate.Ready)
			got := p.take()
			slices.Sort(got)
			if len(got) != 2 || !strings.HasSuffix(got[0], `"method":"tools/list"}`) || got[1] != "notifications/tools/list_changed" {
				t.Fatalf("got %q, want an answer of the new server, and that its list has changed", got)
			}
		}
		if n := old.open(); n != clients/2 {
			t.Errorf("%d sessions of the old server are open, want those that have a request", n)
		}
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
			if n := metric(t, g, name); n != want {
				t.Errorf("%s = %g, want %g", name, n, want)
			}
		}
	})
}

// Connections that have given up, that pause, and whose start hangs get the new server at
// once.
func TestReconfigureServerThatFails(t *testing.T) {
	for name, dial := range map[string]func(context.Context, int) error{"down": failing(100), "hangs": slow(time.Hour)} {
		t.Run(name, func(t *testing.T) {
			next := &server{}
			inFakeTime(t, &server{dial: dial}, gateway.Options{StartTimeout: 50 * time.Second}, func(t *testing.T, g *gateway.Gateway) {
				old := connect(t, g, plain)
				time.Sleep(10 * time.Minute)
				young := connect(t, g, plain)
				time.Sleep(100 * time.Millisecond)
				if err := g.Ready(t.Context()); err == nil {
					t.Error("ready")
				}
				reconfigure(t, g, next, gateway.Options{})
				for _, p := range []*peer{old, young} {
					p.wantState(connstate.Ready)
					p.take()
					p.post(request("1", "tools/list"))
					p.want(`1 {"session":*`)
				}
				if err := g.Ready(t.Context()); err != nil {
					t.Errorf("Ready: %v", err)
				}
				if n := next.starts(); n != 2 {
					t.Errorf("%d starts, want 2", n)
				}
			})
		})
	}
}

func TestReconfigureIsSerialized(t *testing.T) {
	var servers []*server
	for range 8 {
		servers = append(servers, &server{handle: works})
	}
	inFakeTime(t, servers[0], gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		p := connect(t, g, plain)
		p.wantState(connstate.Ready)
		p.post(request("1", "work"))
		synctest.Wait()
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
		if open != 1 {
			t.Errorf("%d sessions are open, want 1", open)
		}
	})
}

func TestReconfigureSharedServer(t *testing.T) {
	old, next := &server{handle: works}, &server{handle: works}
	inFakeTime(t, old, sharing, func(t *testing.T, g *gateway.Gateway) {
		p, q := connect(t, g, plain), connect(t, g, plain)
		p.wantState(connstate.Ready)
		p.post(request("1", "work"))
		synctest.Wait()
		reconfigure(t, g, next, sharing)
		for _, peer := range []*peer{p, q} {
			peer.post(request("2", "tools/list"))
			peer.want(answered("2", 1, "tools/list"))
		}
		time.Sleep(4 * time.Second)
		p.want(answered("1", 1, "work"))
		if old.open() != 0 || next.starts() != 1 || metric(t, g, "mcp_sse_session_restarts_total") != 0 {
			t.Errorf("%d sessions of the old server, %d starts of the new one", old.open(), next.starts())
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
		p.post(request("1", "tools/list"))
		p.want(answered("1", newest, "tools/list"))
	})
}
