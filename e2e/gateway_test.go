package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// gateway is a running sse-server.
type gateway struct {
	*running
	// stopped: nothing is left for stop to do.
	stopped bool

	// url is as printed, and takes both transports; admin has no path.
	url, admin string
}

var (
	// streamURL is the line of stdout that is there to be copied.
	streamURL = regexp.MustCompile(`(?m)^ +(https?://\S+/mcp)$`)
	adminURL  = regexp.MustCompile(`"admin":"(https?://[^"]+)"`)
)

// startGateway starts sse-server on a free port, with an admin address, debug
// logs and a short shutdown, and returns when it has printed its URL. args may
// set any flag again and end with a child's command line. The test's cleanup
// stops it, and asserts that it ends well.
func startGateway(t *testing.T, args ...string) *gateway {
	t.Helper()
	g := launch(t, args...)
	g.url = g.awaitMatch("the URL of the stream", &g.out, streamURL)
	g.admin = g.awaitMatch("the admin URL", &g.log, adminURL)
	return g
}

// launch starts sse-server and does not wait for anything.
func launch(t *testing.T, args ...string) *gateway {
	t.Helper()
	all := append([]string{
		"--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0",
		"--log-level", "debug", "--log-format", "json", "--shutdown-timeout", "3s",
		// A program may take long to start where much else runs.
		"--initialization-timeout", patience.String(),
		"--warm", "0", // tests count processes; those of warm servers ask for them

	}, args...)
	cmd := exec.Command(built(t, "sse-server"), all...)
	cmd.Env = ssetest.WithState(t)
	g := &gateway{running: run(t, cmd)}
	t.Cleanup(g.stop)
	return g
}

// stop sends SIGTERM and asserts that the gateway exits with 0 and leaves no
// process behind. Only the first call does anything.
func (g *gateway) stop() {
	g.t.Helper()
	if g.stopped {
		return
	}
	g.stopped = true
	left := descendants(g.t, g.cmd.Process.Pid)
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		g.t.Errorf("sse-server had ended before SIGTERM: %v", g.wait())
		return
	}
	if err := g.wait(); err != nil {
		g.t.Errorf("sse-server after SIGTERM: %v, want exit code 0", err)
	}
	for pid := range g.unreaped() {
		if syscall.Kill(pid, 0) == nil { // the log leaves out lines that come too fast
			g.t.Errorf("sse-server did not wait for the end of its child %d", pid)
		}
	}
	for _, p := range left {
		if !p.endsSoon() {
			g.t.Errorf("process %d outlived sse-server", p.pid)
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
	}
}

// kill ends the gateway as a crash does.
func (g *gateway) kill() {
	g.stopped = true // there is nothing left to stop by SIGTERM
	g.running.kill()
}

// unreaped returns the children of which the log tells the start but not the end.
func (g *gateway) unreaped() map[int]bool {
	started := map[int]bool{}
	g.lives(func(pid int, began bool) {
		if began {
			started[pid] = true
		} else {
			delete(started, pid)
		}
	})
	return started
}

// started returns the children of which the log tells the start, in order.
func (g *gateway) started() []int {
	var all []int
	g.lives(func(pid int, began bool) {
		if began {
			all = append(all, pid)
		}
	})
	return all
}

// lives calls each for the start and the end of each child.
func (g *gateway) lives(each func(pid int, began bool)) {
	for line := range strings.Lines(g.log.String()) {
		var entry struct {
			Msg string `json:"msg"`
			PID int    `json:"pid"`
		}
		if json.Unmarshal([]byte(line), &entry) != nil {
			continue // not every test asks for JSON
		}
		switch entry.Msg {
		case "server started":
			each(entry.PID, true)
		case "server exited":
			each(entry.PID, false)
		}
	}
}

// children returns the processes below the gateway.
func (g *gateway) children() []process { return descendants(g.t, g.cmd.Process.Pid) }

// metric returns the sum over all series of the name, and whether there is any.
func (g *gateway) metric(name string) (sum float64, ok bool) {
	g.t.Helper()
	for line := range strings.Lines(g.adminGet("/metrics")) {
		rest, found := strings.CutPrefix(line, name)
		if !found || rest == "" || !strings.ContainsAny(rest[:1], " {") {
			continue
		}
		fields := strings.Fields(rest[strings.LastIndexByte(rest, '}')+1:])
		value, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			g.t.Fatalf("metric %q: %v", line, err)
		}
		sum, ok = sum+value, true
	}
	return sum, ok
}

// adminGet returns the body of a GET on the admin address.
func (g *gateway) adminGet(path string) string {
	g.t.Helper()
	client := newHTTP(g.t)
	client.Timeout = patience
	defer client.CloseIdleConnections() // the gateway is watched while it is asked
	resp, err := client.Get(g.admin + path)
	ssetest.Must(g.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ssetest.Must(g.t, err)
	return string(body)
}

// newHTTP returns a client whose connections the test's cleanup closes.
func newHTTP(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

type output = ssetest.Output

// settled waits until a gauge is at most the bound.
func (g *gateway) settled(name string, bound float64) {
	g.t.Helper()
	g.eventually(fmt.Sprintf("%s is at most %v", name, bound), func() bool {
		value, ok := g.metric(name)
		if !ok {
			g.t.Fatalf("no metric %s", name)
		}
		return value <= bound
	})
}
