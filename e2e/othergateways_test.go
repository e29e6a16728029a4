package e2e

import (
	"net"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// check --url tells the truth about other gateways: each of their transports works, and the one that they
// do not have is no fault.
func TestCheckOfOtherGateways(t *testing.T) {
	t.Parallel()
	supergateway, mcpProxy := npm(t, "supergateway/dist/index.js"), npm(t, "mcp-proxy/dist/bin/mcp-proxy.mjs")
	stdio := built(t, "everything")
	only := func(works, other string) []string {
		return []string{"✓ " + works + ": initialize", "✓ " + works + ": a call", "✓ " + works + ": a silent stream", "– " + other}
	}
	const streamable, sse = "Streamable HTTP", "HTTP+SSE"
	for name, test := range map[string]struct {
		path    string
		command []string // PORT in it is the port
		want    []string // lines, in any order
	}{
		"supergateway, HTTP+SSE":   {"/sse", []string{supergateway, "--stdio", stdio, "--port", "PORT"}, append(only(sse, streamable+": initialize"), "– "+sse+": mcp-response")},
		"supergateway, streamable": {"/mcp", []string{supergateway, "--stdio", stdio, "--port", "PORT", "--outputTransport", "streamableHttp"}, only(streamable, sse+": endpoint")},
		"supergateway, stateful":   {"/mcp", []string{supergateway, "--stdio", stdio, "--port", "PORT", "--outputTransport", "streamableHttp", "--stateful"}, only(streamable, sse+": endpoint")},
		"mcp-proxy, streamable":    {"/mcp", []string{mcpProxy, "--host", "127.0.0.1", "--port", "PORT", "--", stdio}, only(streamable, sse+": endpoint")},
		"mcp-proxy, HTTP+SSE":      {"/sse", []string{mcpProxy, "--host", "127.0.0.1", "--port", "PORT", "--", stdio}, append(only(sse, streamable+": initialize"), "– "+sse+": mcp-response")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := startAtPort(t, test.command)
			printed, err := exec.CommandContext(within(t), built(t, "sse-server"), "check", "--url", base+test.path, "--wait", "1s").CombinedOutput()
			if err != nil || !strings.HasSuffix(string(printed), "A client can use "+base+test.path+".\n") {
				t.Errorf("check: %v\n%s", err, printed)
			}
			for _, line := range test.want {
				if !regexp.MustCompile("(?m)^" + regexp.QuoteMeta(line)).Match(printed) {
					t.Errorf("no line begins with %q in\n%s", line, printed)
				}
			}
			if strings.Contains(string(printed), "✗") || strings.Contains(string(printed), "context ") {
				t.Errorf("got\n%s", printed)
			}
		})
	}
}

// startAtPort starts a program of npm that takes its port as an argument, and returns its URL once it
// listens there.
func startAtPort(t *testing.T, command []string) string {
	t.Helper()
	addr := freeAddr(t)
	_, port, err := net.SplitHostPort(addr)
	ssetest.Must(t, err)
	args := make([]string, len(command))
	for i, arg := range command {
		args[i] = strings.ReplaceAll(arg, "PORT", port)
	}
	cmd := exec.Command(node(t), args...)
	cmd.Dir, cmd.SysProcAttr = clientsDir, endsWithParent()
	run(t, cmd).listens(addr)
	return "http://" + addr
}

// freeAddr returns an address at which nothing listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	ssetest.Must(t, err)
	defer free.Close()
	return free.Addr().String()
}

// listens waits until the process listens at addr.
func (p *running) listens(addr string) {
	p.t.Helper()
	p.eventually("listens at "+addr, func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}
