package hosts_test

import (
	"net/netip"
	"net/url"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/hosts"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

func TestIsLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.8.9.10": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "0.0.0.0": false, "::": false, "10.0.0.1": false, "localhost.example.com": false, "127.0.0.1.nip.io": false, "2130706433": false,
	} {
		ssetest.Want(t, host, hosts.IsLoopback(host), want)
	}
}

func TestAddress(t *testing.T) {
	for at, want := range map[string]string{
		"http://Host.example/mcp": "Host.example:80", "https://host.example": "host.example:443", "http://[::1]:8080/": "[::1]:8080",
		"https://host.example:80": "host.example:80", "ws://host.example": "host.example:",
	} {
		u, err := url.Parse(at)
		ssetest.Must(t, err)
		ssetest.Want(t, at, hosts.Address(u), want)
	}
}

func TestAddressesInside(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1": true, "::1": true, "10.1.2.3": true, "192.168.0.1": true, "169.254.169.254": true, "fe80::1": true, "fd00::1": true,
		"0.0.0.0": true, "::ffff:127.0.0.1": true, "100.64.0.1": true, "100.127.255.255": true, "100.128.0.1": false, "100.63.255.255": false,
		"::ffff:100.100.100.200": true, "192.0.0.192": true, "198.19.0.1": true, "0.1.2.3": true, "64:ff9b::a00:1": true, "2002:a00:1::1": true, "192.0.2.1": false, "2001:db8::1": false, "224.0.0.1": true, "ff02::1": true,
	} {
		if got := hosts.IsInside(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: got %v", addr, got)
		}
	}
	for at, want := range map[string]bool{"http://localhost:1/": true, "http://a.LOCALHOST./": true, "http://[::1]:1/": true, "http://10.0.0.1/": true, "https://example.com/": false, "https://192.0.2.1/": false} {
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		if got := hosts.NamesInside(u); got != want {
			t.Errorf("%s: got %v", at, got)
		}
	}
}

func TestIsSecure(t *testing.T) {
	for text, want := range map[string]bool{
		"https://a.example": true, "http://127.0.0.1:1/x": true, "http://[::1]:1": true, "http://localhost": true,
		"http://a.example": false, "http://localhost.example": false, "https:///x": false, "ftp://127.0.0.1": false, "": false,
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := hosts.IsSecure(u); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

func TestOrigin(t *testing.T) {
	for at, want := range map[string]string{
		"https://GW.example.com:443/a?b": "https://gw.example.com", "https://gw.example.com:8443/": "https://gw.example.com:8443",
		"http://gw.example.com:80": "http://gw.example.com", "https://gw.example.com:80": "https://gw.example.com:80",
		"HTTPS://[::1]:443": "https://[::1]", "": "", "/a": "", "https://": "", ":": "",
	} {
		if got := hosts.Origin(at); got != want {
			t.Errorf("%s: got %q, want %q", at, got, want)
		}
	}
}
