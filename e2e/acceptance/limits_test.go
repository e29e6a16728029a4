package acceptance

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gw "github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A request waits for the handshake as long as the initialization timeout says. Then it is
// answered with an error.
func TestARequestWaitsForTheHandshakeUntilTheInitializationTimeout(t *testing.T) {
	t.Parallel()
	s := startGateway(t, "never initializes", "--initialization-timeout", "100ms").open("")
	s.call("1", "echo", `{"text":"never"}`)
	failure := s.answer("1").Error.Data
	ssetest.Want(t, "type", failure.Type, "initialization_error")
	ssetest.Want(t, "reason", failure.Reason, "timeout")
}

// That is five seconds, unless an option says otherwise.
func TestTheInitializationTimeoutIsFiveSecondsByDefault(t *testing.T) {
	t.Parallel()
	help, err := exec.Command(sseServer, "--help").Output()
	ssetest.Must(t, err)
	_, about, _ := strings.Cut(string(help), "--initialization-timeout=DURATION")
	ssetest.WantText(t, "help", strings.Join(strings.Fields(about)[:12], " "), "waits for the handshake. [default 5s]")
	inFakeTime(t, gw.Options{}, silent, func(l *library) {
		began := time.Now()
		ssetest.Want(l.t, "reason", l.sleep(1, 1).Error.Data.Reason, "timeout")
		ssetest.Want(l.t, "time until the answer", time.Since(began), 5*time.Second)
	})
}

// A stream on which nothing happens gets heartbeats.
func TestAQuietStreamGetsHeartbeats(t *testing.T) {
	t.Parallel()
	g := startGateway(t, "names answers", "--heartbeat-interval", "50ms")
	g.open("").await("a comment", func(e ssetest.Event) bool { return e.Comment == "heartbeat" })
	g.open("?event=mcp-response").await("an event", func(e ssetest.Event) bool { return e.Name == "heartbeat" })
	if n := g.metric("mcp_sse_heartbeats_total"); n < 2 {
		t.Errorf("%v heartbeats are counted", n)
	}
}

// A connection on which its client does nothing is closed when its time is over.
func TestAConnectionThatIsIdleTooLongIsClosed(t *testing.T) {
	t.Parallel()
	g := startGateway(t, "names answers", "--idle-timeout", "100ms")
	s := g.open("")
	await(t, "the gateway ends the stream", s.isOver)
	g.awaitMetric(1, "mcp_sse_connections_closed_total", `reason="idle"`)
}

// There is a maximum of connections. One more is refused, until another has ended.
func TestThereIsAMaximumOfConnections(t *testing.T) {
	t.Parallel()
	g := startGateway(t, "names answers", "--max-connections", "2")
	first := g.open("")
	g.open("")
	ssetest.Want(t, "status of one too many", g.status("GET", "/sse"), http.StatusServiceUnavailable)
	ssetest.Want(t, "refusals", g.metric("mcp_sse_connections_rejected_total", `reason="max_connections"`), 1)
	first.leave()
	g.awaitMetric(1, "mcp_sse_connections")
	g.open("")
}

// One address may open connections only so fast; that does not concern another address. Clients
// on the same machine are exempt, so these come through a proxy.
func TestTheRateOfConnectsIsLimited(t *testing.T) {
	t.Parallel()
	g := startGateway(t, "names answers", "--connect-rate", "0.001", "--trusted-proxies", "127.0.0.1")
	g.open("", "X-Forwarded-For", "192.0.2.1")
	ssetest.Want(t, "status of a second connect", g.status("GET", "/sse", "X-Forwarded-For", "192.0.2.1"), http.StatusTooManyRequests)
	ssetest.Want(t, "refusals", g.metric("mcp_sse_connections_rejected_total", `reason="rate"`), 1)
	g.open("", "X-Forwarded-For", "192.0.2.2")
}

// Each connection counts as a success or a failure, however it ends.
func TestEachConnectionCountsAsASuccessOrAFailureHoweverItEnds(t *testing.T) {
	t.Parallel()
	leaves := func(s *stream) { s.leave() }
	isTold := func(s *stream) { s.announced(); s.leave() }
	waits := func(s *stream) { await(t, "the gateway ends the stream", s.isOver) }
	for name, c := range map[string]struct {
		script, flag   string
		end            func(s *stream)
		closed, counts string // labels
	}{
		"its client is served":     {"names answers", "", isTold, `reason="client"`, `result="ok"`},
		"its client does not wait": {"never initializes", "", leaves, `reason="client"`, `result="canceled"`},
		"its client is idle":       {"never initializes", "--idle-timeout=100ms", waits, `reason="idle"`, `result="canceled"`},
		"the server refuses":       {"refuses", "", isTold, `reason="client"`, `result="error"`},
		"the server is silent":     {"never initializes", "--start-timeout=100ms", isTold, `reason="client"`, `result="error"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, c.script, strings.Fields(c.flag)...)
			c.end(g.open(""))
			g.awaitMetric(1, "mcp_sse_connections_closed_total", c.closed)
			await(t, "a handshake is counted with "+c.counts, func() bool { return g.metric("mcp_sse_handshakes_total", c.counts) > 0 })
			if c.counts != `result="ok"` {
				ssetest.Want(t, "successes", g.metric("mcp_sse_handshakes_total", `result="ok"`), 0)
			}
		})
	}
}

// How long the handshake took and how long the connection lasted are metrics.
func TestTheDurationsOfHandshakeAndConnectionAreMetrics(t *testing.T) {
	t.Parallel()
	g := startGateway(t, "names answers")
	s := g.open("")
	s.announced()
	g.awaitMetric(1, "mcp_sse_handshake_duration_seconds_count", `result="ok"`)
	s.leave()
	g.awaitMetric(1, "mcp_server_session_duration_seconds_count", `error_type=""`)
}

// gauges are what a connection holds.
var gauges = []string{
	"mcp_sse_connections", "mcp_sse_connection_state", "mcp_sse_requests_in_flight", "mcp_sse_gate_depth",
	"mcp_sse_sessions", "mcp_sse_children", "mcp_sse_held_bytes",
}

// When a connection closes, nothing of it is left: neither of one with a request at the server
// nor of one whose request waits for the handshake.
func TestAClosedConnectionLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "initialize now")
	// A server that is kept warm, or learns for the next client because one has left after a second, is of no connection.
	g := startGateway(t, "initializes late", "--warm", "0", "--no-remember", "--env", fileVariable+"="+file)
	waits := g.open("")
	waits.call("1", "echo", `{"text":"waits"}`)
	g.awaitMetric(1, "mcp_sse_gate_depth")
	waits.leave()
	for _, gauge := range gauges {
		g.awaitMetric(0, gauge)
	}
	ssetest.Must(t, os.WriteFile(file, nil, 0o600))
	hangs := g.open("")
	hangs.call("1", "hang", `{}`)
	hangs.call("2", "echo", `{"text":"here"}`)
	hangs.wantText("2", "here")
	for _, gauge := range []string{"mcp_sse_connections", "mcp_sse_requests_in_flight", "mcp_sse_sessions", "mcp_sse_children"} {
		g.awaitMetric(1, gauge)
	}
	hangs.leave()
	for _, gauge := range gauges {
		g.awaitMetric(0, gauge)
	}
}
