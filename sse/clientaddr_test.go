package sse_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/sse"
)

func TestClientAddr(t *testing.T) {
	proxies := []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"),
		netip.MustParsePrefix("2001:db8:1::/48"), netip.MustParsePrefix("fe80::/10"),
	}
	for _, test := range []struct {
		remote    string
		forwarded []string
		want      string
	}{
		{"192.0.2.1:5", nil, "192.0.2.1"},
		{"192.0.2.1:5", []string{"198.51.100.1"}, "192.0.2.1"}, // no proxy of ours: it may say what it likes
		{"[2001:db8::5]:5", []string{"198.51.100.1"}, "2001:db8::5"},
		{"10.1.1.1:5", nil, "10.1.1.1"},
		{"10.1.1.1:5", []string{""}, "10.1.1.1"},
		{"10.1.1.1:5", []string{"198.51.100.1"}, "198.51.100.1"},
		{"10.1.1.1:5", []string{" 198.51.100.1 "}, "198.51.100.1"},
		{"10.1.1.1:5", []string{"198.51.100.1:4711"}, "198.51.100.1"},
		{"10.1.1.1:5", []string{"2001:db8::7"}, "2001:db8::7"},
		{"10.1.1.1:5", []string{"[2001:db8::7]"}, "2001:db8::7"},
		{"10.1.1.1:5", []string{"[2001:db8::7]:4711"}, "2001:db8::7"},
		{"10.1.1.1:5", []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		{"[::ffff:10.1.1.1]:5", []string{"198.51.100.1"}, "198.51.100.1"},
		{"[2001:db8:1::1]:5", []string{"198.51.100.1"}, "198.51.100.1"},
		{"[fe80::1%eth0]:5", []string{"198.51.100.1"}, "198.51.100.1"},
		// the client's own claims come first, the proxies' last
		{"10.1.1.1:5", []string{"203.0.113.9, 198.51.100.1"}, "198.51.100.1"},
		{"10.1.1.1:5", []string{"127.0.0.1, 198.51.100.1"}, "198.51.100.1"},
		{"10.1.1.1:5", []string{"203.0.113.9, 198.51.100.1, 10.2.2.2"}, "198.51.100.1"},
		{"10.1.1.1:5", []string{"203.0.113.9", "198.51.100.1", "10.2.2.2, 10.3.3.3"}, "198.51.100.1"},
		{"10.1.1.1:5", []string{"10.9.9.9, 10.2.2.2"}, "10.9.9.9"},
		// at garbage the chain ends: the last hop that is known stands
		{"10.1.1.1:5", []string{"unknown"}, "10.1.1.1"},
		{"10.1.1.1:5", []string{"198.51.100.1, unknown"}, "10.1.1.1"},
		{"10.1.1.1:5", []string{"198.51.100.1, unknown, 10.2.2.2"}, "10.2.2.2"},
		{"10.1.1.1:5", []string{"198.51.100.1,"}, "10.1.1.1"},
		{"10.1.1.1:5", []string{"999.1.1.1"}, "10.1.1.1"},
		{"10.1.1.1:5", []string{"for=198.51.100.1"}, "10.1.1.1"},
		{"10.1.1.1:5", []string{"198.51.100.1\x00"}, "10.1.1.1"},
		{"@", []string{"198.51.100.1"}, "invalid IP"},
		{"", nil, "invalid IP"},
	} {
		f := newFixture(t, config{sse: sse.Options{Options: front.Options{TrustedProxies: proxies}}})
		r := httptest.NewRequest(http.MethodGet, "/sse", nil)
		r.RemoteAddr = test.remote
		r.Header["X-Forwarded-For"] = test.forwarded
		if got := f.ClientAddr(r).String(); got != test.want {
			t.Errorf("%s, %q: got %s, want %s", test.remote, test.forwarded, got, test.want)
		}
	}
}

func TestForwardedForIsNotBelievedByDefault(t *testing.T) {
	f := newFixture(t, config{})
	r := httptest.NewRequest(http.MethodGet, "/sse", nil)
	r.RemoteAddr = "127.0.0.1:5"
	r.Header.Set("X-Forwarded-For", "198.51.100.1")
	if got := f.ClientAddr(r).String(); got != "127.0.0.1" {
		t.Errorf("got %s", got)
	}
}

// A client is local when it came from this machine to this machine, and no proxy
// says that it asks for somebody else.
func TestIsLocal(t *testing.T) {
	loopback := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}
	for name, tc := range map[string]struct {
		remote string
		local  net.Addr
		header string
		want   bool
	}{
		"both":               {"127.0.0.1:5", loopback, "", true},
		"IPv6":               {"[::1]:5", &net.TCPAddr{IP: net.IPv6loopback}, "", true},
		"another machine":    {"192.0.2.1:5", loopback, "", false},
		"another address":    {"127.0.0.1:5", &net.TCPAddr{IP: net.IPv4(192, 0, 2, 9)}, "", false},
		"nothing is known":   {"", nil, "", false},
		"a proxy, forwarded": {"127.0.0.1:5", loopback, "X-Forwarded-For", false},
		"a proxy, host":      {"127.0.0.1:5", loopback, "X-Forwarded-Host", false},
		"a proxy, real IP":   {"127.0.0.1:5", loopback, "X-Real-IP", false},
		"a proxy, standard":  {"127.0.0.1:5", loopback, "Forwarded", false},
		"a proxy, via":       {"127.0.0.1:5", loopback, "Via", false},
		"a proxy, scheme":    {"127.0.0.1:5", loopback, "X-Forwarded-Proto", false},
		"a proxy, CDN":       {"127.0.0.1:5", loopback, "Cf-Connecting-Ip", false},
		"another header":     {"127.0.0.1:5", loopback, "X-Request-Id", true},
	} {
		r := httptest.NewRequest(http.MethodGet, "/sse", nil)
		r.RemoteAddr = tc.remote
		if tc.local != nil {
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, tc.local))
		}
		if tc.header != "" {
			r.Header.Set(tc.header, "192.0.2.7")
		}
		if got := newFixture(t, config{}).IsLocal(r); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
		proxied := newFixture(t, config{sse: sse.Options{Options: front.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}})
		if proxied.IsLocal(r) {
			t.Errorf("%s: local behind a proxy that the gateway knows of", name)
		}
	}
}
