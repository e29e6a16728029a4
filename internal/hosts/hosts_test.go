package hosts_test

import (
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
