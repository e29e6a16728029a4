package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/cluster"
	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testKey = bytes.Repeat([]byte("k"), 32)

// bubble runs a test in time of its own.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	runtime.GC() // nats.go has a pool of timers, which must not come from another bubble
	runtime.GC()
	synctest.Test(t, f)
}

// maxPayload of the broker: parts are smaller than they usually are.
const maxPayload = 16 << 10

// broker is a NATS server in this process, and the network between the replicas.
type broker struct {
	t       testing.TB
	lan     *lan
	options []func(*server.Options)

	mu      sync.Mutex
	server  *server.Server
	conns   map[string][]net.Conn // by the replica that uses them
	down    bool
	banned  map[string]bool
	stalled map[string]bool
	held    map[string]bool // see hold
	fault   func(from string, command []byte) []byte
}

func startBroker(t testing.TB, options ...func(*server.Options)) *broker {
	t.Helper()
	b := &broker{
		t: t, lan: newLAN(), options: options, conns: make(map[string][]net.Conn),
		banned: make(map[string]bool), stalled: make(map[string]bool), held: make(map[string]bool),
	}
	b.start()
	t.Cleanup(b.stop)
	return b
}

func (b *broker) start() {
	b.t.Helper()
	o := &server.Options{DontListen: true, MaxPayload: maxPayload, NoSigs: true, NoLog: true}
	for _, set := range b.options {
		set(o)
	}
	s, err := server.NewServer(o)
	if err != nil {
		b.t.Fatal(err)
	}
	s.Start()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.server, b.down = s, false
}

// stop ends the server and all connections to it.
func (b *broker) stop() {
	b.mu.Lock()
	b.down = true
	conns := b.conns
	b.conns = make(map[string][]net.Conn)
	b.mu.Unlock()
	for _, list := range conns {
		for _, c := range list {
			c.Close()
		}
	}
	b.server.Shutdown()
	b.server.WaitForShutdown()
}

// line is how one replica reaches the broker.
type line struct {
	b    *broker
	name string
}

func (l line) InProcessConn() (net.Conn, error) {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	if l.b.down || l.b.banned[l.name] {
		return nil, errors.New("down")
	}
	c, err := l.b.server.InProcessConn()
	l.b.conns[l.name] = append(l.b.conns[l.name], c)
	return &faultyConn{Conn: c, b: l.b, name: l.name}, err
}

// kill ends a replica for good, as far as the broker and the other replicas see.
func (b *broker) kill(name string) {
	b.lan.kill(name)
	b.mu.Lock()
	b.banned[name] = true
	conns := b.conns[name]
	b.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
}

// lose sets what happens to what replicas publish; nil: nothing.
func (b *broker) lose(fault func(from string, command []byte) []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = fault
}

// cut makes the lines of a replica to the broker and to the others pass no more bytes, or pass
// them again.
func (b *broker) cut(name string, yes bool) {
	b.lan.setCut(name, yes)
	b.cutFromNATS(name, yes)
}

// cutFromNATS does so with the line to the broker alone.
func (b *broker) cutFromNATS(name string, yes bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stalled[name] = yes
}

// hold keeps back what a replica sends, or lets it pass with what the replica sends next.
func (b *broker) hold(name string, yes bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held[name] = yes
}

// faultyConn does to messages what the broker's fault says. It sees each message that a replica
// publishes as a whole.
type faultyConn struct {
	net.Conn
	b    *broker
	name string
	rest []byte
	late []byte // is held
}

func (c *faultyConn) Write(p []byte) (int, error) {
	c.rest = append(c.rest, p...)
	var out []byte
	for {
		end := bytes.Index(c.rest, []byte("\r\n"))
		if end < 0 {
			break
		}
		words := strings.Fields(string(c.rest[:end]))
		if end += 2; strings.HasSuffix(words[0], "PUB") {
			size, _ := strconv.Atoi(words[len(words)-1])
			end += size + 2
		}
		if end > len(c.rest) {
			break
		}
		command := bytes.Clone(c.rest[:end])
		c.rest = c.rest[end:]
		c.b.mu.Lock()
		if c.b.stalled[c.name] {
			command = nil
		} else if c.b.fault != nil && len(words) > 1 && strings.HasPrefix(words[1], "mcp.") {
			command = c.b.fault(c.name, command)
		}
		c.b.mu.Unlock()
		out = append(out, command...)
	}
	out = append(c.late, out...)
	c.b.mu.Lock()
	held := c.b.held[c.name]
	c.b.mu.Unlock()
	if c.late = nil; held {
		c.late, out = out, nil
	}
	if _, err := c.Conn.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// replica is a node with one server, whose connections are in has.
type replica struct {
	*cluster.Replica
	t      testing.TB
	logs   *bytes.Buffer
	detach func()

	mu        sync.Mutex
	has       map[string]bool
	draining  bool
	elsewhere connstate.Usage
	usage     connstate.Usage
	served    []string // ids
}

func join(t testing.TB, b *broker, name string, change ...func(*cluster.Options)) (*replica, error) {
	t.Helper()
	r := &replica{t: t, has: make(map[string]bool), logs: new(bytes.Buffer)}
	o := cluster.Options{
		URL: "nats://in-process:4222", Replica: name, Key: testKey, NATS: []nats.Option{nats.InProcessServer(line{b, name})},
		Logger: slog.New(slog.NewTextHandler(r.logs, nil)),
	}
	if addr := b.server.Addr(); addr != nil { // over TCP
		o.URL, o.NATS = "nats://"+addr.String(), nil
	} else {
		o.SetNetwork(b.lan.listen(name), b.lan.dial(name))
	}
	for _, c := range change {
		c(&o)
	}
	n, err := cluster.Join(t.Context(), o)
	if err != nil {
		return nil, err
	}
	r.Replica = cluster.Inside(n)
	t.Cleanup(n.Close)
	return r, nil
}

// serve attaches a handler for the only server, which has no name.
func (r *replica) serve(h http.HandlerFunc) *replica {
	r.detach = r.Attach("", httpcheck.Part{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			r.mu.Lock()
			r.served = append(r.served, q.URL.Path)
			r.mu.Unlock()
			h(w, q)
		}),
		Has:           func(id string) bool { r.mu.Lock(); defer r.mu.Unlock(); return r.has[id] },
		Draining:      func() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.draining },
		Usage:         func() connstate.Usage { r.mu.Lock(); defer r.mu.Unlock(); return r.usage },
		UsedElsewhere: func(u connstate.Usage) { r.mu.Lock(); defer r.mu.Unlock(); r.elsewhere = u },
	})
	return r
}

func (r *replica) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// joinAll joins replicas at the same time.
func joinAll(t testing.TB, b *broker, h http.HandlerFunc, names ...string) []*replica {
	t.Helper()
	all := make([]*replica, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			r, err := join(t, b, name)
			if err != nil {
				t.Error(err)
				return
			}
			all[i] = r.serve(h)
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	time.Sleep(3 * time.Second) // all have heard one another
	return all
}

// request is a POST for a connection of owner.
func request(ctx context.Context, id, body string) (*http.Request, httpcheck.Forward) {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://host.example/s/message?x=%41", strings.NewReader(body))
	r.Header.Set("X-Test", "a\x80b")
	return r, httpcheck.Forward{ID: id, Principal: "ada", Addr: netip.MustParseAddr("192.0.2.7"), Body: []byte(body)}
}

func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	principal, _ := httpcheck.IsForwarded(r)
	w.Header().Set("X-Seen", fmt.Sprint(principal, " ", r.RemoteAddr, " ", r.Host, " ", r.RequestURI, " ", r.Header.Get("X-Test")))
	w.WriteHeader(http.StatusAccepted)
	_, _ = w.Write(body)
}

// told returns what the other replicas use.
func (r *replica) told() connstate.Usage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.elsewhere
}
