//go:build all

package e2e

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
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
		"connect and leave, with children that stay": {flags: []string{"--max-connections", "6"},
			server: func(t *testing.T) []string { return fake(t, "--stubborn") }, act: (*attacked).connectAndLeave, children: 6},
		"cancelled calls on a shared session": {flags: append([]string{"--request-timeout", "20s"}, shared...), act: (*attacked).cancelledCalls},
		"lines that are no JSON-RPC":          {flags: shared, act: (*attacked).noise},
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
