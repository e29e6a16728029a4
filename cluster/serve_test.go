package cluster

import (
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"testing"
)

// noListener is a listener that only has an address.
type noListener struct{ net.Listener }

func (noListener) Addr() net.Addr { return &net.TCPAddr{Port: 4711} }

// The others are told an address that they can reach, if the options or NATS have one.
func TestAddressForTheOthers(t *testing.T) {
	key, err := newIdentity(bytes.Repeat([]byte("k"), 32), "mcp", "ABCDEFGH")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ option, local, listens, told string }{
		{"", "192.0.2.7:39999", "192.0.2.7:0", "192.0.2.7:4711"},
		{"", "127.0.0.1:39999", "127.0.0.1:0", "127.0.0.1:4711"},
		{"", "[2001:db8::7]:39999", "[2001:db8::7]:0", "[2001:db8::7]:4711"},
		{"", "pipe", "127.0.0.1:0", "127.0.0.1:4711"},
		{":4711", "192.0.2.7:39999", ":4711", "192.0.2.7:4711"},
		{"0.0.0.0:4711", "192.0.2.7:39999", "0.0.0.0:4711", "192.0.2.7:4711"},
		{"[::]:4711", "[2001:db8::7]:39999", "[::]:4711", "[2001:db8::7]:4711"},
		{"198.51.100.1:0", "192.0.2.7:39999", "198.51.100.1:0", "198.51.100.1:4711"},
		{"one.example:4711", "192.0.2.7:39999", "one.example:4711", "one.example:4711"},
	} {
		var listens string
		o := Options{Address: test.option, listen: func(_, address string) (net.Listener, error) {
			listens = address
			return noListener{}, nil
		}}
		l, err := listen(o, test.local, key, http.NotFoundHandler(), slog.NewLogLogger(slog.DiscardHandler, 0))
		if err != nil || listens != test.listens || l.address != test.told {
			t.Errorf("%q, NATS from %s: got %v, listens at %s", test.option, test.local, err, listens)
		}
	}
}

// Whoever opens connections and sends nothing takes no more than a bounded number.
func TestFreshConnectionsAreBounded(t *testing.T) {
	l := &listener{states: make(map[net.Conn]http.ConnState), changed: make(chan struct{}, 1)}
	var last net.Conn
	for range maxFresh {
		last, _ = net.Pipe()
		l.note(last, http.StateNew)
	}
	one, other := net.Pipe()
	l.note(one, http.StateNew)
	if _, err := other.Read(make([]byte, 1)); err == nil || l.fresh != maxFresh+1 {
		t.Errorf("got %v, %d are fresh", err, l.fresh)
	}
	l.note(one, http.StateClosed)
	l.note(last, http.StateActive)
	if l.fresh != maxFresh-1 || len(l.states) != maxFresh {
		t.Errorf("%d are fresh, of %d", l.fresh, len(l.states))
	}
}
