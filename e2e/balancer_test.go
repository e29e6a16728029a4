package e2e

import (
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

var nginxPath = flag.String("nginx", "", "path of nginx, the balancer of the tests of replicas; empty: one of the test")

// nginx is a balancer without affinity.
type nginx struct {
	t         *testing.T
	cmd       *exec.Cmd
	dir, addr string
	url       string
}

// startNginx starts nginx in front of gateways.
func startNginx(t *testing.T, gateways []*gateway) *nginx {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &nginx{t: t, dir: t.TempDir(), addr: free.Addr().String()}
	n.url = "http://" + n.addr + "/mcp"
	_ = free.Close()
	n.serve(gateways)
	n.cmd = exec.Command(*nginxPath, "-p", n.dir, "-c", filepath.Join(n.dir, "nginx.conf"), "-e", "stderr")
	var log output
	n.cmd.Stderr = &log
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = n.cmd.Process.Signal(syscall.SIGTERM)
		_ = n.cmd.Wait()
		if t.Failed() {
			t.Logf("nginx\n%s", log.Tail())
		}
	})
	for within := within(t); ; time.Sleep(20 * time.Millisecond) { // until it listens
		conn, err := net.Dial("tcp", n.addr)
		if err == nil {
			_ = conn.Close()
			return n
		}
		if within.Err() != nil {
			t.Fatalf("nginx does not listen: %s", log.Tail())
		}
	}
}

// serve makes nginx serve other gateways from now on.
func (n *nginx) serve(gateways []*gateway) {
	n.t.Helper()
	var servers string
	for _, g := range gateways {
		u, err := url.Parse(g.url)
		if err != nil {
			n.t.Fatal(err)
		}
		servers += "server " + u.Host + " max_fails=0; "
	}
	conf := fmt.Sprintf(`daemon off; user root; pid nginx.pid; worker_processes 1; events { worker_connections 8192; }
http {
	access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
	upstream replicas { %s }
	server {
		listen %s; client_max_body_size 8m; keepalive_timeout 0; # else a POST may meet the end of a TCP connection
		location / {
			proxy_pass http://replicas; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host 127.0.0.1;
			proxy_buffering off; proxy_read_timeout 1h;
		}
	}
}
`, servers, n.addr)
	if err := os.WriteFile(filepath.Join(n.dir, "nginx.conf"), []byte(conf), 0o600); err != nil {
		n.t.Fatal(err)
	}
	if n.cmd != nil {
		_ = n.cmd.Process.Signal(syscall.SIGHUP)
	}
}
