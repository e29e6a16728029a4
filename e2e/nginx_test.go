//go:build deploy

package deploytest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// check --url finds out what an nginx does that is set up wrong.
func TestCheckThroughNginx(t *testing.T) {
	t.Parallel()
	gateway, dir := freeAddr(t), t.TempDir()
	start(t, []string{"XDG_STATE_HOME=" + dir}, sseServer(t), "--addr", gateway, "--allowed-hosts", host, "--heartbeat-interval", "1h").listens(gateway)
	for name, test := range map[string]struct {
		location string
		args     []string
		want     []string // in this order
	}{
		"right":           {"proxy_buffering off; proxy_set_header Host " + host + ";", nil, []string{"A client can use http://"}},
		"holds back":      {"proxy_ignore_headers X-Accel-Buffering; proxy_buffering on; gzip on; gzip_types text/event-stream; proxy_set_header Host " + host + ";", nil, []string{"✗ Streamable HTTP: GET", "what to do: a proxy between holds events back"}},
		"cuts":            {"proxy_read_timeout 1s; proxy_buffering off; proxy_set_header Host " + host + ";", []string{"--wait", "1m"}, []string{"✗ Streamable HTTP: a silent stream", "it was cut after ", "✗ HTTP+SSE: a silent stream"}},
		"another Host":    {"proxy_buffering off; proxy_set_header Host internal.example.com;", nil, []string{"✓ HTTP ", "by nginx", "✗ Host ", "what to do: allow the name"}},
		"nobody is there": {"proxy_pass http://127.0.0.1:1;", nil, []string{"what to do: the proxy does not reach the server"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, public, pass := t.TempDir(), freeAddr(t), "proxy_pass http://"+gateway+";"
			if strings.Contains(test.location, "proxy_pass") {
				pass = ""
			}
			writeFile(t, filepath.Join(dir, "nginx.conf"), fmt.Sprintf(`
daemon off;
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
`, public, pass, test.location))
			start(t, nil, installed(t, "nginx"), "-p", dir, "-e", "stderr", "-c", filepath.Join(dir, "nginx.conf")).listens(public)
			printed, err := exec.CommandContext(t.Context(), sseServer(t), append([]string{"check", "--url", "http://" + public + "/mcp"}, test.args...)...).CombinedOutput()
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
