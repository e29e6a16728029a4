package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// replicas are gateways of one cluster behind a balancer without affinity.
type replicas struct {
	t    *testing.T
	args []string
	url  string // of the balancer
	nats *natsserver.Server
	line *proxy // of r0 to NATS

	mu      sync.Mutex
	serving []*gateway // guarded by mu
	next    int        // guarded by mu
}

const natsPassword = "not-for-the-log"

// startReplicas starts NATS in this process, three gateways, and the balancer.
func startReplicas(t *testing.T, args ...string) *replicas {
	t.Helper()
	all := &replicas{t: t}
	all.startNATS(natsserver.RANDOM_PORT)
	t.Cleanup(all.stopNATS)
	all.line = proxyTo(t, all.nats.Addr().String())
	key := filepath.Join(t.TempDir(), "id-key")
	ssetest.Must(t, os.WriteFile(key, []byte(strings.Repeat("k", 32)), 0o600))
	all.args = append([]string{"--id-key-file", key}, args...)
	for i := range 3 {
		all.serving = append(all.serving, all.launch(fmt.Sprintf("r%d", i), "12s"))
	}
	for _, g := range all.serving {
		all.await(g)
	}
	transport := &http.Transport{DisableKeepAlives: true} // else a POST may meet the end of a TCP connection
	balancer := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {}, Transport: roundTripper(func(r *http.Request) (*http.Response, error) { return all.roundTrip(transport, r) }),
		FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	t.Cleanup(balancer.CloseClientConnections)
	t.Cleanup(balancer.Close)
	all.url = balancer.URL + "/mcp"
	return all
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// launch starts a gateway that stops within a time, and does not wait for it.
func (all *replicas) launch(name, stops string) *gateway {
	all.t.Helper()
	at := all.nats.Addr().String()
	if name == "r0" {
		at = all.line.listener.Addr().String()
	}
	options := append([]string{"--replica", name, "--shutdown-timeout", stops, "--nats", "nats://ada:" + natsPassword + "@" + at}, all.args...)
	return launch(all.t, options...)
}

// startNATS starts NATS in this process.
func (all *replicas) startNATS(port int) {
	all.t.Helper()
	var err error
	all.nats, err = natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: port, Username: "ada", Password: natsPassword, NoSigs: true, NoLog: true})
	ssetest.Must(all.t, err)
	all.nats.Start()
}

func (all *replicas) stopNATS() {
	all.nats.Shutdown()
	all.nats.WaitForShutdown()
}

// await waits until a gateway serves.
func (all *replicas) await(g *gateway) {
	all.t.Helper()
	g.url = g.awaitMatch("the URL of the stream", &g.out, streamURL)
	g.admin = g.awaitMatch("the admin URL", &g.log, adminURL)
}

// roundTrip sends a request to the next replica that listens.
func (all *replicas) roundTrip(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	all.mu.Lock()
	all.next++
	order := slices.Concat(all.serving[all.next%len(all.serving):], all.serving[:all.next%len(all.serving)])
	all.mu.Unlock()
	for _, g := range order {
		at, err := url.Parse(g.url)
		if err != nil {
			return nil, err
		}
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host, out.Host = at.Scheme, at.Host, at.Host
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		res, err := next.RoundTrip(out)
		if refused, ok := errors.AsType[*net.OpError](err); !ok || refused.Op != "dial" {
			return res, err
		}
	}
	return nil, errors.New("no replica listens")
}

// forwarded returns how many requests of others the replicas have had served.
func (all *replicas) forwarded() (sum float64) {
	for _, g := range all.serving {
		n, _ := g.metric("mcp_cluster_forwarded_total")
		sum += n
	}
	return sum
}

// Every kind of client is served behind a balancer without affinity, and its calls all get
// their own answers.
func TestReplicas(t *testing.T) {
	t.Parallel()
	all := startReplicas(t)
	var clients sync.WaitGroup
	for _, k := range kinds() {
		if k.oneShot {
			continue
		}
		clients.Go(func() {
			c := k.open(t, all.url, "")
			if err := c.connect(within(t)); err != nil {
				t.Errorf("%s: connect: %v", k.name, err)
				return
			}
			for i := range 10 {
				want := fmt.Sprintf("%s %d", k.name, i)
				if got, err := c.callTool(within(t), "echo", map[string]any{"message": want}); err != nil || got != want {
					t.Errorf("%s: got %q, %v", want, got, err)
				}
			}
		})
	}
	clients.Wait()
	if n := all.forwarded(); n < 20 {
		t.Errorf("%v requests were forwarded", n)
	}
	shown := all.serving[0].adminGet("/connections")
	for _, name := range []string{"r0", "r1", "r2"} {
		if !strings.Contains(shown, `"name":"`+name+`"`) {
			t.Errorf("%s is not shown: %s", name, shown)
		}
	}
	for _, g := range all.serving {
		if out := g.out.String() + g.log.String(); strings.Contains(out, natsPassword) || !strings.Contains(out, "Replica       r") {
			t.Errorf("a password was printed, or not the replica:\n%s", out)
		}
	}
}
