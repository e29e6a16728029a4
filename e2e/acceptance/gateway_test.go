package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// gateway is a running sse-server.
type gateway struct {
	t     *testing.T
	cmd   *exec.Cmd
	log   ssetest.Output
	ended chan struct{} // closed when the process has ended; err is set before
	err   error

	url, admin string // http://HOST:PORT
}

// startGateway starts sse-server in front of a scripted server, and returns when it serves. Its
// times are so long that no test passes because one is over. flags may set any flag again. The
// test's cleanup stops it, and wants it to end well.
func startGateway(t *testing.T, script string, flags ...string) *gateway {
	t.Helper()
	self, err := os.Executable()
	ssetest.Must(t, err)
	args := append([]string{"--env", scriptVariable + "=" + script}, flags...)
	return serve(t, append(args, "--", self)...)
}

// serve is startGateway with the server among the arguments.
func serve(t *testing.T, args ...string) *gateway {
	t.Helper()
	g := &gateway{t: t, ended: make(chan struct{})}
	g.cmd = exec.Command(sseServer, append([]string{
		"--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--log-level", "debug", "--log-format", "json", "--shutdown-timeout", "1m",
		"--initialization-timeout", "1h", "--start-timeout", "1h", "--request-timeout", "1h", "--heartbeat-interval", "1h",
	}, args...)...)
	g.cmd.Env = ssetest.WithState(t)
	g.cmd.Stderr = &g.log
	g.cmd.WaitDelay = 10 * time.Second // a child that outlives it would hold its stderr
	ssetest.Must(t, g.cmd.Start())
	go func() { // ends with the process
		g.err = g.cmd.Wait()
		close(g.ended)
	}()
	t.Cleanup(g.stop)
	await(t, "sse-server serves", func() bool { return g.isOver() || len(g.logged("serving")) > 0 })
	if g.isOver() {
		t.Fatalf("sse-server %v: %v", args, g.err)
	}
	at := g.logged("serving")[0]
	g.url, g.admin = strings.TrimSuffix(at.URL, "/mcp"), at.Admin
	return g
}

func (g *gateway) isOver() bool { return isClosed(g.ended) }

// stop ends the gateway by SIGTERM, which takes as long as requests are in flight.
func (g *gateway) stop() {
	g.t.Helper()
	_ = g.cmd.Process.Signal(syscall.SIGTERM) // Wait tells if it had ended before
	late := time.AfterFunc(ssetest.Patience, func() { _ = g.cmd.Process.Kill() })
	defer late.Stop()
	if <-g.ended; g.err != nil {
		g.t.Errorf("sse-server after SIGTERM: %v, want exit code 0", g.err)
	}
	if g.t.Failed() {
		g.t.Logf("log of sse-server:\n%s", g.log.Tail())
	}
}

// logLine has the attributes of a line of the log that the rules speak of.
type logLine struct {
	Msg       string `json:"msg"`
	RequestID string `json:"requestId"`
	MatchedBy string `json:"matchedBy"`
	Phase     string `json:"phase"`
	URL       string `json:"url"`
	Addr      string `json:"addr"`
	Admin     string `json:"admin"`
}

// logged returns the lines of the log with this message.
func (g *gateway) logged(message string) (found []logLine) {
	for text := range strings.Lines(g.log.String()) {
		var line logLine
		if json.Unmarshal([]byte(text), &line) == nil && line.Msg == message {
			found = append(found, line)
		}
	}
	return found
}

// awaitLine returns the line about a request that has one of these messages, once it is logged.
// There must be one.
func (g *gateway) awaitLine(requestID int, messages ...string) logLine {
	g.t.Helper()
	var lines []logLine
	await(g.t, fmt.Sprintf("the log has %q of request %d", messages, requestID), func() bool {
		lines = nil
		for _, message := range messages {
			for _, line := range g.logged(message) {
				if line.RequestID == strconv.Itoa(requestID) {
					lines = append(lines, line)
				}
			}
		}
		return len(lines) > 0
	})
	ssetest.Want(g.t, fmt.Sprintf("lines %q of request %d", messages, requestID), len(lines), 1)
	return lines[0]
}

// metric returns the sum of all series of this name that have these labels, each as in
// reason="client". A histogram, whose number is name_count, is there from its first value on.
func (g *gateway) metric(name string, labels ...string) (sum float64) {
	g.t.Helper()
	known := strings.HasSuffix(name, "_count")
	for line := range strings.Lines(g.get(g.admin + "/metrics")) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || !strings.HasPrefix(rest, " ") && !strings.HasPrefix(rest, "{") {
			continue
		}
		if known = true; !hasAll(rest, labels) {
			continue
		}
		value, err := strconv.ParseFloat(strings.Fields(rest[strings.LastIndexByte(rest, '}')+1:])[0], 64)
		ssetest.Must(g.t, err)
		sum += value
	}
	if !known {
		g.t.Fatalf("there is no metric %s", name)
	}
	return sum
}

func hasAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// awaitMetric waits until a metric has a value.
func (g *gateway) awaitMetric(want float64, name string, labels ...string) {
	g.t.Helper()
	await(g.t, name+" "+strings.Join(labels, " ")+" is "+strconv.FormatFloat(want, 'g', -1, 64), func() bool {
		return g.metric(name, labels...) == want
	})
}

// get returns the body of a GET.
func (g *gateway) get(url string) string {
	g.t.Helper()
	_, body := g.do(http.MethodGet, url)
	return body
}

// status returns the status of a request that ends, with header as name, value.
func (g *gateway) status(method, path string, header ...string) int {
	g.t.Helper()
	status, _ := g.do(method, g.url+path, header...)
	return status
}

func (g *gateway) do(method, url string, header ...string) (status int, body string) {
	g.t.Helper()
	client := newHTTP(g.t)
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), ssetest.Patience)
	defer cancel()
	resp, err := client.Do(ssetest.Request(ctx, method, url, "", header...))
	ssetest.Must(g.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	ssetest.Must(g.t, err)
	return resp.StatusCode, string(text)
}

// newHTTP returns a client whose connections the test's cleanup closes.
func newHTTP(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
