//go:build all

package e2e

import "testing"

// A real client costs one start of the server, whatever it declares: cold, and
// from the pool. The delay is long because on a busy machine a Node.js client may
// take longer than the default from its stream to its initialize.
func TestEachClientCostsOneStart(t *testing.T) {
	for name, warm := range map[string][]string{"Cold": nil, "Warm": {"--warm", "1"}} {
		t.Run(name, func(t *testing.T) {
			forEachClient(t, every, func(t *testing.T, k kind) {
				for _, declares := range []string{"", "c"} {
					costsOneStart(t, k, declares, warm, len(warm)/2)
				}
			})
		})
	}
}

func costsOneStart(t *testing.T, k kind, declares string, args []string, pool int) {
	t.Helper()
	g := startGateway(t, append(args, fake(t)...)...)
	idle := float64(pool)
	g.idle(idle)
	c := connectAs(t, k, g.at(k), declares)
	if got := mustCall(t, c, "echo", map[string]any{"message": "m"}); got != "m" {
		t.Errorf("echo = %q, want m", got)
	}
	c.close()
	g.idle(idle)
	starts, _ := g.metric(`mcp_sse_child_starts_total{result="ok"}`)
	connections, _ := g.metric("mcp_sse_connections_opened_total")
	if connections == 0 || starts-idle != connections {
		t.Errorf("declaring %q: %v starts for %v connections, and %v in the pool", declares, starts, connections, idle)
	}
}
