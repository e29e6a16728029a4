package main

import (
	"bytes"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
)

func TestExposureIsWarnedOf(t *testing.T) {
	tokens := clitest.WriteFile(t, "tokens", "alice:0123456789abcdef\n")
	for _, tc := range []struct {
		name   string
		args   []string
		want   string // of the only warning, "" for none
		banner bool
	}{
		{"loopback", []string{"--insecure"}, "", false},
		{"all addresses", []string{"--insecure", "--addr", "0.0.0.0:1"},
			`--addr "0.0.0.0:1" without authentication: everyone who reaches it can run the tools`, true},
		{"one address", []string{"--insecure", "--addr", "192.0.2.1:1"}, `--addr "192.0.2.1:1" without authentication`, true},
		{"the admin address", []string{"--insecure", "--admin-addr", ":1"},
			`--admin-addr ":1" without authentication: everyone who reaches it can read /metrics`, false},
		{"with tokens", []string{"--insecure", "--addr", ":1", "--auth-tokens-file", tokens}, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := mustLoad(t, nil, tc.args...)
			if got := strings.Join(l.Warnings(), "\n"); (got == "") != (tc.want == "") || !strings.HasPrefix(got, tc.want) || strings.Contains(got, "\n") {
				t.Errorf("got the warnings %q, want %q", got, tc.want)
			}
			var out bytes.Buffer
			banner(&out, "http://localhost:1", l)
			if strings.Contains(out.String(), "WARNING: no token is asked for") != tc.banner {
				t.Errorf("want the warning: %v in\n%s", tc.banner, out.String())
			}
			if lines := strings.Count(out.String(), "\n"); lines > 13 {
				t.Errorf("got %d lines, want 13 at most", lines)
			}
		})
	}
}

// TestAllAddressesAreIPv6Too holds the reference to what it says of 0.0.0.0.
func TestAllAddressesAreIPv6Too(t *testing.T) {
	probe, err := new(net.ListenConfig).Listen(t.Context(), "tcp6", "[::1]:0")
	if err != nil {
		t.Skipf("no IPv6: %v", err)
	}
	probe.Close()
	p := start(t, "--addr", "0.0.0.0:0", "--insecure")
	if !strings.Contains(p.log.String(), "level=WARN") || !strings.Contains(p.log.String(), "without authentication") {
		t.Errorf("the log does not warn:\n%s", p.log.String())
	}
	client := newClient(t, &http.Transport{})
	for _, host := range []string{"127.0.0.1", "[::1]"} {
		url := strings.Replace(p.base(), "localhost", host, 1) + "/healthz"
		if code, body := get(t, client, url, ""); code != http.StatusOK {
			t.Errorf("%s: got %d %s, want 200", url, code, body)
		}
	}
}
