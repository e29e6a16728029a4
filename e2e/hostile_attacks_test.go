//go:build all

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// attack is one way to harm others through the gateway.
type attack struct {
	flags []string
	// server returns the flags for what is served. Default: the fake server.
	server func(t *testing.T) []string
	act    func(a *attacked)
	// The most children that the gateway may have during the attack; 0: not bounded here.
	children int
}

// innocentBound is long, as a machine may be busy; what an attack delays, it delays
// for longer.
const innocentBound = time.Minute

// attacked is a gateway under attack.
type attacked struct {
	t      *testing.T
	g      *gateway
	host   string // of the main address
	before footprint
	opened []*stream
}

// open opens a stream, which ends with the attack.
func (a *attacked) open() *stream {
	s := openStream(a.t, a.g.url)
	a.opened = append(a.opened, s)
	return s
}

// attacks are those of a hostile review, by what they use up.
func attacks() map[string]attack {
	return map[string]attack{
		"half requests on every route": {act: (*attacked).halfRequests},
		"HTTP2 without a window": {flags: []string{"--heartbeat-interval", "200ms"},
			act: (*attacked).closedWindow},
		"connect and leave, with children that stay": {flags: []string{"--max-connections", "6"},
			server: func(t *testing.T) []string { return fake(t, "--stubborn") }, act: (*attacked).connectAndLeave, children: 6},
		"frozen clients of a shared session":   {flags: shared, act: (*attacked).deafClients},
		"a flood of notifications, shared":     {flags: shared, act: misbehaving("flood", 2)},
		"a flood of notifications, per client": {act: misbehaving("flood", 2)},
		"cancelled calls on a shared session":  {flags: append([]string{"--request-timeout", "20s"}, shared...), act: (*attacked).cancelledCalls},
		"lines that are no JSON-RPC":           {flags: shared, act: (*attacked).noise},
	}
}

var shared = []string{"--sessions", "shared"}

// No attack keeps an innocent client from its answers, or uses up what others need;
// when it is over the gateway holds what it held before.
func TestAttacksHarmNobodyElse(t *testing.T) {
	t.Parallel()
	for name, a := range attacks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.test(t)
		})
	}
}

func (a attack) test(t *testing.T) {
	server := fake(t)
	if a.server != nil {
		server = a.server(t)
	}
	g := startGateway(t, slices.Concat(a.flags, server)...)
	innocent := openStream(t, g.url)
	innocent.request("0", "tools/list", "{}")
	u, err := url.Parse(g.url)
	if err != nil {
		t.Fatal(err)
	}
	run := &attacked{t: t, g: g, host: u.Host, before: g.footprint()}
	w := startWatch(t, g, innocent, innocentBound)
	func() {
		defer w.end() // also if the attack fails the test
		a.act(run)
	}()
	for _, s := range run.opened {
		s.close()
	}
	if a.children > 0 && w.children > a.children {
		t.Errorf("%d children, want at most %d", w.children, a.children)
	}
	g.returnsTo(run.before, 300) // what the race detector keeps, among others
}

// dial opens a TCP connection, which the test's cleanup closes.
func (a *attacked) dial() net.Conn {
	a.t.Helper()
	conn, err := net.Dial("tcp", a.host)
	if err != nil {
		a.t.Fatalf("dial: %v", err)
	}
	a.t.Cleanup(func() { conn.Close() })
	return conn
}

// halfRequests sends requests without their bodies, or their ends. The gateway must
// end each TCP connection.
func (a *attacked) halfRequests() {
	var all []net.Conn
	for _, request := range []string{
		"GET /sse", "POST /sse", "POST /sse/x/message", "DELETE /sse", "GET /healthz", "GET /readyz", "POST /metrics", "GET /nowhere", "OPTIONS /sse",
	} {
		for _, rest := range []string{"Content-Length: 9\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n", "X-Half"} {
			for range 8 {
				conn := a.dial()
				fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s", request, rest)
				all = append(all, conn)
			}
		}
	}
	deadline := time.Now().Add(30 * time.Second)
	for _, conn := range all {
		_ = conn.SetReadDeadline(deadline) // it is a TCP connection
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			a.t.Fatal("a half request is held for 30 s")
		}
	}
}

// closedWindow asks over HTTP/2 for many answers and lets the gateway write none of
// them.
func (a *attacked) closedWindow() {
	var all []net.Conn
	for range 4 {
		conn := a.dial()
		all = append(all, conn)
		_, _ = io.WriteString(conn, http2.ClientPreface) // an error shows in the end
		framer := http2.NewFramer(conn, conn)
		_ = framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}) // the same
		go func() { _, _ = io.Copy(io.Discard, conn) }()                                    // ends with the connection
		for i, path := range []string{"/sse", "/nowhere", "/healthz", "/metrics", "/sse"} {
			for n := range 20 {
				_ = framer.WriteHeaders(http2.HeadersFrameParam{ // the same
					StreamID: uint32(40*i + 2*n + 1), EndStream: true, EndHeaders: true, BlockFragment: headBlock(a.host, path),
				})
			}
		}
	}
	a.t.Cleanup(func() {
		for _, conn := range all {
			conn.Close()
		}
	})
	// The TCP connections stay open: what was asked for must end all the same.
	a.g.settled("mcp_sse_connections", 1)
	a.g.settled("go_goroutines", float64(a.before.goroutines+40))
	for _, conn := range all {
		conn.Close()
	}
}

// headBlock is the head of a GET in HPACK.
func headBlock(host, path string) []byte {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", host}, {":path", path}} {
		_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}) // it is a buffer
	}
	return block.Bytes()
}

// connectAndLeave opens streams and leaves as soon as a child is there.
func (a *attacked) connectAndLeave() {
	for i := range 48 {
		openAndDrop(a.t, a.host, i)
		time.Sleep(100 * time.Millisecond) // the rate of the attack
	}
}

// misbehaving has a client make the server misbehave some times.
func misbehaving(how string, times int) func(a *attacked) {
	return func(a *attacked) {
		s := a.open()
		for id := 1; id <= times; id++ {
			if got := s.call(fmt.Sprint(id), "misbehave", fmt.Sprintf(`{"how":%q}`, how)); got != "done" {
				a.t.Errorf("the call = %q, want done", got)
			}
		}
		time.Sleep(time.Second) // what follows the answer
	}
}

// noise has a server send very many lines that are no JSON-RPC: the log must stay
// short.
func (a *attacked) noise() {
	misbehaving("lines", 1)(a)
	if n := strings.Count(a.g.log.String(), `"level":"WARN"`); n > 200 {
		a.t.Errorf("%d warnings, want at most 200", n)
	}
}

// cancelledCalls has a call in flight that takes long, and cancels others, which the
// server will not answer: none of this delays the calls of others.
func (a *attacked) cancelledCalls() {
	s, dir := a.open(), a.t.TempDir()
	s.accepted(requestJSON("0", "tools/call", callParams("hang", fmt.Sprintf(`{"file":%q}`, filepath.Join(dir, "0")))))
	for id := 1; id <= 5; id++ {
		reached := filepath.Join(dir, fmt.Sprint(id))
		s.accepted(requestJSON(fmt.Sprint(id), "tools/call", callParams("hang", fmt.Sprintf(`{"file":%q}`, reached))))
		a.g.eventually("the call reaches the server", func() bool { _, err := os.Stat(reached); return err == nil })
		s.accepted(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
		s.await("answer", answers("message", fmt.Sprint(id)))
	}
}

// deafClients open streams, ask for much and read nothing, until they are closed. What
// they ask is short: this is about answers that nobody takes, not about a busy server.
func (a *attacked) deafClients() {
	for range 3 {
		deaf, endpoint := openDeaf(a.t, a.g.url)
		a.t.Cleanup(func() { deaf.Close() })
		post := &stream{t: a.t, http: newHTTP(a.t), header: http.Header{}}
		for id, status := 0, 0; id < 40 && status != http.StatusNotFound; id++ {
			status, _, _ = post.tryPost(endpoint, strings.NewReader(requestJSON(fmt.Sprint(id), "tools/call", callParams("misbehave", `{"how":"large"}`))), "application/json") // it may be closed
		}
	}
	a.g.settled("mcp_sse_connections", 1)
}

// openAndDrop asks for a stream and goes at once: every third before the answer,
// every third with a reset.
func openAndDrop(t *testing.T, host string, i int) {
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Errorf("dial: %v", err)
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /sse HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", host)
	if i%3 == 0 {
		return
	}
	if _, err := conn.Read(make([]byte, 512)); err != nil {
		t.Errorf("read: %v", err)
	}
	if i%3 == 1 {
		_ = conn.(*net.TCPConn).SetLinger(0)
	}
}

// openDeaf opens a stream, reads the endpoint and then nothing more.
func openDeaf(t *testing.T, target string) (net.Conn, string) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /sse HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", u.Host)
	var head strings.Builder
	for !strings.Contains(head.String(), "/message\n") {
		b := make([]byte, 1)
		if _, err := conn.Read(b); err != nil {
			t.Fatalf("read endpoint: %v after %q", err, head.String())
		}
		head.Write(b)
	}
	_, path, _ := strings.Cut(head.String(), "data: ")
	return conn, resolve(t, target, strings.TrimSpace(path))
}
