package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// viewOf returns the gateway of a view over others, without a prefix, that is ready to serve beside them.
func viewOf(t testing.TB, name string, all ...*gateway.Gateway) *gateway.Gateway {
	t.Helper()
	members := make([]compose.Member, len(all))
	for i, g := range all {
		members[i] = compose.Member{Name: string(rune('a' + i)), Upstream: g}
	}
	view, err := compose.New(members, compose.Options{Name: name})
	must(t, err)
	g, err := gateway.NewWith(view, gateway.Settings{Options: gateway.Options{Name: name, Registry: gateway.PromRegistry(all[0])},
		AnnounceDelay: -1})
	must(t, err)
	return g
}

// A gateway at the root gets what no other one takes of its routes. It is listed and probed as the others are.
func TestRootBesideOthers(t *testing.T) {
	inFakeTimeWithSeveral(t, nil, func(t *testing.T, s *gateway.Servers, all []*gateway.Gateway) {
		root := viewOf(t, "all", all...)
		must(t, s.SetRoot(root))
		for _, path := range []string{"/mcp", "/mcp/", "/sse"} {
			asks(t, s, "DELETE "+path, http.StatusBadRequest, "session")
		}
		asks(t, s, "DELETE /mcp/a/mcp", http.StatusBadRequest, "session")
		asks(t, s, "/mcp/nobody/message", http.StatusMethodNotAllowed, "use POST here")
		asks(t, s, "/other", http.StatusNotFound, "/mcp, /mcp/a/mcp, /mcp/b/mcp")
		asks(t, s.Admin(), "/readyz?server=all", http.StatusOK, `{"status":"ready"}`)
		if body := metricsOf(t, s); !strings.Contains(body, `server="all"`) {
			t.Error("the root has no series")
		}
		must(t, s.Replace(all[0], all[1]))
		if err := s.Replace(all[0], root); err == nil {
			t.Error("one gateway is the root and beside it")
		}
		asks(t, s, "DELETE /mcp", http.StatusBadRequest, "session")
		must(t, s.SetRoot(nil))
		asks(t, s, "DELETE /mcp", http.StatusNotFound, "no such route")
		equal(t, "shutdown", <-shutdown(root, time.Minute), nil)
		if body := metricsOf(t, s); strings.Contains(body, `server="all"`) {
			t.Error("a root that has gone has left series")
		}
	}, &server{}, &server{})
}

func metricsOf(t testing.TB, s *gateway.Servers) string {
	t.Helper()
	_, body := ask(s.Admin(), "/metrics")
	return body
}

func TestRootsThatDoNotGoTogether(t *testing.T) {
	reg := prometheus.NewRegistry()
	made := func(name, prefix string, reg *prometheus.Registry) *gateway.Gateway {
		g, err := gateway.New(&server{}, gateway.Options{Name: name, Prefix: prefix, Registry: reg})
		must(t, err)
		return g
	}
	s, err := gateway.NewServers(made("a", "/a", reg), made("b", "/mcp", reg), made("c", "/x/sse", reg))
	must(t, err)
	for _, tc := range []struct {
		root *gateway.Gateway
		want string
	}{
		{made("", "", nil), "servers: the root has no Name"},
		{made("a", "/y", nil), `servers: two gateways have the Name "a"`},
		{made("d", "", reg), `servers: the Prefix "/mcp" of "b" takes what the root serves`},
		{made("e", "/x", reg), `servers: the Prefix "/x/sse" of "c" takes what the root serves`},
		{made("f", "/z", nil), `servers: the root and "a" have different registries`},
	} {
		if err := s.SetRoot(tc.root); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %s", err, tc.want)
		}
	}
	s.Drain()
	if err := s.SetRoot(made("g", "/z", reg)); err == nil {
		t.Error("a root comes during a shutdown")
	}
}

// A shutdown ends the gateways of views first: a call that is on its way to a member through one is answered, and idle
// links of the client do not end before it.
func TestShutdownEndsViewsFirst(t *testing.T) {
	tools := map[string]string{"tools/list": `{"tools":[{"name":"t"}]}`}
	busy := &server{capabilities: `{"tools":{}}`, handle: func(s *serverSession, m *jsonrpc.Message) bool {
		if m.Method == "tools/call" {
			late(20*time.Second)(s, m)
			return true
		}
		return lists(tools)(s, m)
	}}
	idle := &server{capabilities: `{"tools":{}}`, handle: lists(tools)}
	inFakeTimeWithSeveral(t, nil, func(t *testing.T, s *gateway.Servers, all []*gateway.Gateway) {
		root := viewOf(t, "all", all...)
		must(t, s.SetRoot(root))
		l := dialLocal(t, root, nil)
		l.send(initialize("0", "2025-11-25", `{}`), initialized, request("1", "tools/list"))
		l.want("0 *", `1 {"tools":[{"name":"a__t"},{"name":"b__t"}]}`)
		l.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a__t"}}`)
		synctest.Wait()
		done := shutdown(s, time.Minute)
		time.Sleep(19 * time.Second)
		equal(t, "sessions of the member that is idle", idle.open(), 1)
		time.Sleep(5 * time.Second)
		l.want(answered("2", 1, "tools/call"))
		equal(t, "error", <-done, nil)
		equal(t, "sessions of members", idle.open()+busy.open(), 0)
	}, busy, idle)
}
