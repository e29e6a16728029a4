//go:build all

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// nginx returns the path of nginx. A machine without it fails the test.
func nginx(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("a program is missing: apt-get install nginx")
	return ""
}

// check --url finds out what an nginx does that is set up wrong.
func TestCheckThroughNginx(t *testing.T) {
	t.Parallel()
	const host = "gw.example.com"
	program := nginx(t)
	gateway := strings.TrimSuffix(startGateway(t, "--allowed-hosts", host, "--heartbeat-interval", "1h").url, "/mcp")
	for name, test := range map[string]struct {
		location string
		args     []string
		want     []string // in this order
	}{
		"right":           {"proxy_buffering off; proxy_set_header Host " + host + ";", nil, []string{"by nginx", "✓ HTTP+SSE: mcp-response", "✓ HTTP+SSE: a call without initialize", "A client can use http://"}},
		"holds back":      {"proxy_ignore_headers X-Accel-Buffering; proxy_buffering on; gzip on; gzip_types text/event-stream; proxy_set_header Host " + host + ";", []string{"--wait", "1s"}, []string{"✗ Streamable HTTP: GET", "what to do: a proxy between holds events back", "– Streamable HTTP: first event", "not tried: the stream did not open", "– Streamable HTTP: a silent stream", "✗ HTTP+SSE: endpoint"}},
		"cuts":            {"proxy_read_timeout 1s; proxy_buffering off; proxy_set_header Host " + host + ";", []string{"--wait", "1m"}, []string{"✗ Streamable HTTP: a silent stream", "it was cut after ", "✗ HTTP+SSE: a silent stream"}},
		"another Host":    {"proxy_buffering off; proxy_set_header Host internal.example.com;", nil, []string{"✓ HTTP ", "by nginx", "✗ Host ", "what to do: allow the name"}},
		"nobody is there": {"proxy_pass http://127.0.0.1:1;", nil, []string{"what to do: the proxy does not reach the server"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, public, pass := t.TempDir(), freeAddr(t), "proxy_pass "+gateway+";"
			if strings.Contains(test.location, "proxy_pass") {
				pass = ""
			}
			config := filepath.Join(dir, "nginx.conf")
			ssetest.Must(t, os.WriteFile(config, fmt.Appendf(nil, `
daemon off;
master_process off;
pid nginx.pid;
events {}
http {
	access_log off;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;
	server { listen %s; location / { %s %s } }
}
`, public, pass, test.location), 0o600))
			proxy := exec.Command(program, "-p", dir, "-e", "stderr", "-c", config)
			proxy.SysProcAttr = endsWithParent()
			run(t, proxy).listens(public)
			printed, err := exec.CommandContext(within(t), built(t, "sse-server"), append([]string{"check", "--url", "http://" + public + "/mcp"}, test.args...)...).CombinedOutput()
			rest, found := string(printed), true
			for _, text := range test.want {
				if _, rest, found = strings.Cut(rest, text); !found {
					t.Errorf("%q is missing, or not in order, in\n%s", text, printed)
				}
			}
			if works := err == nil; works != (name == "right") {
				t.Errorf("a client can work there: %v\n%s", works, printed)
			}
		})
	}
}
