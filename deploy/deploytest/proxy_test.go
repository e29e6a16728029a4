//go:build deploy

package deploytest

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// host is the name of the site in the files of deploy/.
const host = "mcp.example.com"

// site is a gateway behind a proxy of the system.
type site struct {
	t            *testing.T
	gateway      *process
	args         []string // of each gateway
	addr, second string   // of the gateway, and of its successor
	admin        string
	public       string // the proxy's
	certificate  string // the file
	key          string
	state        []string // the environment variable of the state directory
}

// newSite starts the gateway as the files of the proxies want it, and makes a certificate.
func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{
		t: t, addr: freeAddr(t), second: freeAddr(t), admin: freeAddr(t), public: freeAddr(t),
		state: []string{"XDG_STATE_HOME=" + t.TempDir()},
		args: []string{
			"--prefix", "/ai", "--trusted-proxies", "127.0.0.1", "--allowed-hosts", host,
			"--heartbeat-interval", "1s", "--max-connections-per-ip", "2",
		},
	}
	s.certificate, s.key = selfSigned(t)
	s.gateway = s.startGateway(s.addr, "--admin-addr", s.admin)
	return s
}

func (s *site) startGateway(addr string, more ...string) *process {
	s.t.Helper()
	p := start(s.t, s.state, append(append([]string{sseServer(s.t), "--addr", addr}, s.args...), more...)...)
	p.prints("msg=serving")
	return p
}

// nginx starts nginx with the file of deploy/ in a configuration that compresses whatever
// it may.
func (s *site) nginx() {
	s.t.Helper()
	dir := s.t.TempDir()
	conf := replaced(s.t, readFile(s.t, "deploy/nginx/sse-server.conf"),
		"listen 443 ssl", "listen "+s.public+" ssl", "127.0.0.1:8080", s.addr, "127.0.0.1:8081", s.second,
		"/etc/letsencrypt/live/mcp.example.com/fullchain.pem", s.certificate, "/etc/letsencrypt/live/mcp.example.com/privkey.pem", s.key)
	writeFile(s.t, filepath.Join(dir, "nginx.conf"), fmt.Sprintf(`
		daemon off; master_process off; pid %[1]s/pid; user root;
		events {}
		http {
			access_log off; gzip on; gzip_min_length 1; gzip_types *;
			client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
			%[2]s
		}`, dir, conf))
	start(s.t, nil, installed(s.t, "nginx"), "-p", dir, "-e", "stderr", "-c", filepath.Join(dir, "nginx.conf")).listens(s.public)
}

// caddy starts Caddy with the file of deploy/.
func (s *site) caddy() {
	s.t.Helper()
	dir := s.t.TempDir()
	_, port, _ := net.SplitHostPort(s.public)
	file := replaced(s.t, readFile(s.t, "deploy/caddy/Caddyfile"),
		"\nmcp.example.com {", fmt.Sprintf("\n{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n}\nhttps://127.0.0.1:%[1]s, https://mcp.example.com:%[1]s {\n\ttls %[2]s %[3]s", port, s.certificate, s.key),
		"127.0.0.1:8080", s.addr)
	writeFile(s.t, filepath.Join(dir, "Caddyfile"), file)
	start(s.t, []string{"HOME=" + dir, "XDG_DATA_HOME=" + dir, "XDG_CONFIG_HOME=" + dir},
		installed(s.t, "caddy"), "run", "--config", filepath.Join(dir, "Caddyfile"), "--adapter", "caddyfile").listens(s.public)
}

// url is the public URL of a path, for clients that have no name for the site.
func (s *site) url(path string) string { return "https://" + s.public + path }

// browser returns an HTTP client of an address of this machine that knows the site.
func (s *site) browser(from string) *http.Client {
	s.t.Helper()
	pool := x509.NewCertPool()
	pem, err := os.ReadFile(s.certificate)
	if err != nil || !pool.AppendCertsFromPEM(pem) {
		s.t.Fatalf("the certificate: %v", err)
	}
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, DisableCompression: true, TLSClientConfig: &tls.Config{RootCAs: pool},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, s.public)
		},
	}}
}

// remotes are the addresses of the connections that the gateway has.
func (s *site) remotes() (all []string) {
	s.t.Helper()
	var page struct{ Connections []struct{ Remote string } }
	ssetest.Must(s.t, json.Unmarshal([]byte(fetch(s.t, "http://"+s.admin+"/connections")), &page))
	for _, c := range page.Connections {
		all = append(all, c.Remote)
	}
	slices.Sort(all)
	return all
}

// open opens a stream of a client at an address of this machine, which lies about itself.
func (s *site) open(from string) *http.Response {
	s.t.Helper()
	resp, err := s.browser(from).Do(ssetest.Request(s.t.Context(), http.MethodGet, "https://"+host+"/ai/sse", "",
		"X-Forwarded-For", "192.0.2.99", "X-Forwarded-Prefix", "/elsewhere", "Accept-Encoding", "gzip"))
	ssetest.Must(s.t, err)
	return resp
}

// check uses the site over both transports: events come through while a stream is silent,
// the gateway sees the addresses of clients, whatever they claim, and limits each. Requests
// for the metadata of OAuth come through.
func (s *site) check() (clients []*client) {
	s.t.Helper()
	trust := []string{"NODE_EXTRA_CA_CERTS=" + s.certificate}
	clients = []*client{connect(s.t, s.url("/ai/sse"), "sse", trust), connect(s.t, s.url("/ai/mcp"), "streamable", trust)}
	for _, c := range clients {
		c.echo("through a proxy")
	}
	third := s.open("127.0.0.1")
	third.Body.Close()
	if third.StatusCode != http.StatusTooManyRequests {
		s.t.Errorf("the third connection of an address: got %s", third.Status)
	}
	resp := s.open("127.0.0.9")
	defer resp.Body.Close()
	var endpoint string
	for lines, heartbeats := bufio.NewScanner(resp.Body), 0; heartbeats < 3 && lines.Scan(); {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, ":"):
			heartbeats++
		case strings.HasPrefix(line, "data: /"):
			endpoint = line
		}
	}
	if !strings.HasPrefix(endpoint, "data: /ai/") {
		s.t.Errorf("the stream, %s, names the endpoint %q", resp.Status, endpoint)
	}
	if got, want := s.remotes(), []string{"127.0.0.1", "127.0.0.1", "127.0.0.9"}; !slices.Equal(got, want) {
		s.t.Errorf("connections from %q, want %q", got, want)
	}
	metadata, err := s.browser("127.0.0.1").Get("https://" + host + "/.well-known/oauth-protected-resource/ai/mcp")
	ssetest.Must(s.t, err)
	defer metadata.Body.Close()
	if body, _ := io.ReadAll(metadata.Body); string(body) != "404 page not found\n" { // what the gateway says without OAuth
		s.t.Errorf("the metadata of OAuth: %s, %q", metadata.Status, body)
	}
	if log := s.gateway.out.String(); strings.Contains(log, "level=WARN") {
		s.t.Errorf("the gateway warns:\n%s", log)
	}
	return clients
}

// update replaces the gateway while somebody asks all the time, and checks that all
// clients go on.
func (s *site) update(clients []*client, replace func()) {
	s.t.Helper()
	asks := newConnector(s.browser("127.0.0.1"), "https://"+host+"/ai/none", http.StatusNotFound)
	defer asks.stop()
	replace()
	clients[0].step("reconnected")
	for _, c := range clients {
		c.echo("after the update")
	}
	if errs := asks.stop(); len(errs) > 0 {
		s.t.Errorf("beside %d answers, %d errors: %v", asks.done.Load(), len(errs), errs[0])
	}
}

// Behind nginx, the new gateway has a second address.
func TestNginx(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.nginx()
	s.update(s.check(), func() {
		s.startGateway(s.second)
		s.gateway.signal(syscall.SIGTERM)
		if err := s.gateway.wait(); err != nil {
			t.Errorf("the old gateway ended: %v", err)
		}
	})
}

// Behind Caddy, requests wait for the new gateway.
func TestCaddy(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.caddy()
	s.update(s.check(), func() {
		s.gateway.signal(syscall.SIGTERM)
		if err := s.gateway.wait(); err != nil {
			t.Errorf("the old gateway ended: %v", err)
		}
		s.startGateway(s.addr)
	})
}

// replaced replaces texts, each of which must be there.
func replaced(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the file has no %q:\n%s", pairs[i], text)
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

// selfSigned makes a certificate for the site and for 127.0.0.1, and returns its file and
// that of its key.
func selfSigned(t *testing.T) (certificate, key string) {
	t.Helper()
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "certificate.pem"), filepath.Join(dir, "key.pem")
	run(t, installed(t, "openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
		"-subj", "/CN="+host, "-addext", "subjectAltName=DNS:"+host+",IP:127.0.0.1", "-out", certificate, "-keyout", key)
	return certificate, key
}

// connector asks again and again.
type connector struct {
	end  context.CancelFunc
	wg   sync.WaitGroup
	done atomic.Int64
	errs []error
}

// newConnector returns a connector that wants a status. The client keeps no connections.
func newConnector(client *http.Client, url string, status int) *connector {
	ctx, cancel := context.WithCancel(context.Background())
	c := &connector{end: cancel}
	c.wg.Go(func() { // ends with stop
		for ctx.Err() == nil {
			resp, err := client.Get(url)
			if err == nil {
				resp.Body.Close()
				if resp.StatusCode != status {
					err = errors.New(resp.Status)
				}
			}
			if err != nil {
				c.errs = append(c.errs, err)
				continue
			}
			c.done.Add(1)
		}
	})
	return c
}

// stop ends it and returns what failed.
func (c *connector) stop() []error {
	c.end()
	c.wg.Wait()
	return c.errs
}
