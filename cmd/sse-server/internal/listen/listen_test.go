package listen

import (
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open starts a listener that accepts until the test ends, and sends what it has
// accepted.
func open(t *testing.T, opts Options) (addr string, accepted chan net.Conn) {
	t.Helper()
	l, err := Listen(t.Context(), "127.0.0.1:0", opts)
	if err != nil {
		t.Fatal(err)
	}
	accepted = make(chan net.Conn, 100)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-ended
	})
	return l.Addr().String(), accepted
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

func TestConnectionsOverTheLimitAreClosed(t *testing.T) {
	log := make(lines, 10)
	addr, accepted := open(t, Options{Max: 2, Logger: slog.New(slog.NewTextHandler(log, nil))})
	dial(t, addr)
	dial(t, addr)
	first, second := <-accepted, <-accepted
	defer second.Close()
	if _, err := dial(t, addr).Read(make([]byte, 1)); err == nil {
		t.Error("the third connection is open")
	}
	first.Close()
	first.Close() // gives its place back once
	dial(t, addr)
	third := <-accepted
	defer third.Close()
	if _, err := dial(t, addr).Read(make([]byte, 1)); err != io.EOF && !isReset(err) {
		t.Errorf("the fourth connection: %v", err)
	}
	if line := <-log; !strings.Contains(line, "tcp connection refused") {
		t.Errorf("got log %q", line)
	}
}

// lines is a log whose lines are sent.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

func isReset(err error) bool { return err != nil && strings.Contains(err.Error(), "reset") }

// from is a connection from an address.
type from struct {
	net.Conn
	addr string
}

func (f from) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(f.addr)) }

func TestLimitOfAnAddress(t *testing.T) {
	l := &listener{opts: Options{MaxPerAddress: 1, Exempt: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, from: map[netip.Prefix]int{}}
	for _, tc := range []struct {
		addr string
		want bool
	}{
		{"192.0.2.1:1", true},
		{"192.0.2.1:2", false},
		{"[::ffff:192.0.2.1]:3", false},
		{"192.0.2.2:1", true},
		{"[2001:db8::1]:1", true},
		{"[2001:db8::2]:1", false}, // one /64
		{"[2001:db8:0:1::1]:1", true},
		{"127.0.0.1:1", true},
		{"127.0.0.1:2", true},
		{"10.1.1.1:1", true},
		{"10.1.1.1:2", true},
	} {
		addr, counted := l.address(from{addr: tc.addr})
		if in := l.enter(addr, counted); in != tc.want {
			t.Errorf("%s is in: %t, want %t", tc.addr, in, tc.want)
		}
	}
	for _, addr := range []string{"192.0.2.1:1", "192.0.2.2:1", "[2001:db8::1]:1", "[2001:db8:0:1::1]:1", "127.0.0.1:1", "127.0.0.1:2", "10.1.1.1:1", "10.1.1.1:2"} {
		l.leave(l.address(from{addr: addr}))
	}
	if l.open != 0 || len(l.from) != 0 {
		t.Errorf("%d connections are left, %v", l.open, l.from)
	}
}
