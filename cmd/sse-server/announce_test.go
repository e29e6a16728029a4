package main

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

const tokenOfAlice = "0123456789abcdef"

// The page calls a server as the banner does.
func TestPageNamesTheServer(t *testing.T) {
	for want, args := range map[string][]string{
		"everything": {"--", "npx", "-y", "@modelcontextprotocol/server-everything"},
		"mine":       {"--name", "mine", "--", "npx", "-y", "x"},
		"demo":       nil,
	} {
		c := mustLoad(t, nil, args...)
		if _, options := upstreamOf(c, c.Each()[0], gateway.Options{}); options.Title != want {
			t.Errorf("got %q, want %q", options.Title, want)
		}
	}
}

// On all addresses, the address for other machines is one of this machine, not that of its loopback, and it is
// served.
func TestAddressForOtherMachines(t *testing.T) {
	t.Parallel()
	var own []string // of this machine, as others see it
	addrs, err := net.InterfaceAddrs()
	ssetest.Must(t, err)
	for _, addr := range addrs {
		if one, ok := addr.(*net.IPNet); ok && one.IP.IsGlobalUnicast() {
			own = append(own, one.IP.String())
		}
	}
	p := start(t, "--addr", "0.0.0.0:0", "--insecure", "--no-start-check")
	_, port, err := net.SplitHostPort(strings.TrimPrefix(p.base(), "http://"))
	ssetest.Must(t, err)
	_, after, told := strings.Cut(p.out.String(), "\nand, for other machines, at\n\n    ")
	if told != (len(own) > 0) {
		t.Fatalf("this machine has the addresses %q, and the banner is\n%s", own, p.out.String())
	}
	if told {
		at, _, _ := strings.Cut(after, "\n")
		host, atPort, err := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(at, "http://"), "/mcp"))
		if err != nil || atPort != port || !slices.Contains(own, host) {
			t.Errorf("got %q (%v), want the port %s of one of %q", at, err, port, own)
		}
		wantStatus(t, newClient(t, &http.Transport{}), strings.TrimSuffix(at, "/mcp")+"/healthz", "", http.StatusOK)
	}
	if p := start(t, "--addr", "127.0.0.1:0", "--no-start-check"); strings.Contains(p.out.String(), "for other machines") {
		t.Errorf("an address of this machine alone is told to others:\n%s", p.out.String())
	}
}
