package config

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
)

// A server that is to forward to itself is refused, by serve and by check, under each name of this machine.
func TestGatewayOfItself(t *testing.T) {
	file := clitest.WriteFile(t, "one.yaml", "url: http://127.0.0.1:8080/mcp\n")
	several := clitest.WriteFile(t, "several.yaml", "addr: 127.0.0.1:9\nservers: {a: {url: \"http://localhost:9/b/mcp\"}, b: {command: [x]}}\n")
	command := clitest.WriteFile(t, "command.yaml", "servers: {a: {command: [sse-server, stdio, \"--url=http://localhost:8080/a/mcp\"]}}\n")
	public := clitest.WriteFile(t, "public.yaml", "public-url: https://gw.example.com/x\noauth: {issuer: https://login.example.com}\nurl: https://gw.example.com/x/mcp\n")
	for _, args := range []string{
		"--url http://127.0.0.1:8080/mcp", "--url http://localhost:8080/sse", "--addr 127.0.0.1:9 --prefix /a --url http://127.0.0.1:9/a/mcp",
		"--insecure --addr 0.0.0.0:9 --url http://localhost:9/mcp/", "--addr [::1]:9 --url http://[::1]:9/mcp", "--url http://0.0.0.0:8080/mcp", "--url http://LOCALHOST:8080",
		"--url http://[::]:8080//mcp", "--addr localhost:9 --url http://[::1]:9/mcp", "--addr localhost:9 --url http://127.0.0.1:9/mcp", "--addr [::1]:9 --url http://localhost:9/mcp",
		"--url http://[::ffff:127.0.0.1]:8080/mcp", "--addr 127.0.0.2:9 --url http://127.0.0.2:9/mcp", "--insecure --addr 192.0.2.1:9 --url http://192.0.2.1:9/mcp",
		"--insecure --addr [::]:9 --url http://127.0.0.2:9/mcp", "--addr 127.0.0.1:80 --url http://localhost/mcp",
		"--insecure --addr :9 --url http://[::1]:9/", "--insecure --addr gw.example.com:9 --url http://GW.example.com:9/mcp",
		"check --offline --url http://127.0.0.1:8080/mcp", "check -c " + file, "-c " + file, "check --start -c " + file, "-c " + several, "-c " + public, "-c " + command,
		"-- npx -y mcp-remote@latest http://localhost:8080/mcp", "check -- /opt/sse-server stdio --url http://127.0.0.1:8080/mcp",
		"-- uvx mcp-proxy http://localhost:8080/sse", "-- env A=b npx mcp-remote http://localhost:8080/mcp", "-- npx -y supergateway --sse http://localhost:8080/sse", "-- mcp-remote http://localhost:8080/mcp --allow-http",
		"-- npx --package=undici --package mcp-remote mcp-remote http://localhost:8080/mcp",
	} {
		wantRefusal(t, nil, "is the address of this server itself", strings.Fields(args)...)
	}
	for _, args := range []string{
		// A concrete address is the only one that is listened on: at another of this machine is another program.
		"--url http://[::1]:8080/mcp", "--url http://127.0.0.2:8080/mcp", "--addr [::1]:9 --url http://127.0.0.1:9/mcp", "--addr 127.0.0.2:9 --url http://localhost:9/mcp",
		"--addr localhost:9 --url http://127.0.0.2:9/mcp", "--insecure --addr 192.0.2.1:9 --url http://[::]:9/mcp",
		"--url http://127.0.0.1:8081/mcp", "--url http://127.0.0.1:8080/other/mcp", "--addr 127.0.0.1:0 --url http://127.0.0.1:80/mcp",
		"stdio --url http://127.0.0.1:8080/mcp", "--insecure --addr 192.0.2.1:9 --url http://127.0.0.1:9/mcp", "check --url http://127.0.0.1:8080/mcp",
		"--url https://127.0.0.1/mcp", "-- npx -y mcp-remote https://mcp.example.com/mcp", "-- x --gateway http://127.0.0.1:8080/mcp",
		"check -- /opt/sse-server stdio --connect http://127.0.0.1:8080/mcp -- x", // a name, at which nobody listens
		"-- ssh devbox mcp-proxy http://localhost:8080/sse", "-- ssh devbox sse-server stdio --url http://127.0.0.1:8080/mcp",
		"-- docker exec -i box mcp-proxy http://localhost:8080/sse",
		"-- env A=b docker run -i ghcr.io/sparfenyuk/mcp-proxy http://localhost:8080/sse", "-- kubectl exec -i pod -- mcp-proxy http://localhost:8080/mcp",
		"-- npx -y supergateway --stdio x --cors http://localhost:8080", "-- npx -y mcp-remote https://example.com/mcp --resource http://localhost:8080/",
	} {
		if c := mustLoad(t, nil, strings.Fields(args)...); len(c.Warnings) > 0 && strings.Contains(c.Warnings[0], "itself") {
			t.Errorf("%s: got the warning %q", args, c.Warnings)
		}
	}
	c := mustLoad(t, nil, "check", "--start", "--url", "http://127.0.0.1:8080/mcp")
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "is the address of sse-server itself with these options") {
		t.Errorf("check of a gateway that may run: got the warnings %q", c.Warnings)
	}
}

// On all addresses, those of the network interfaces and the host name are its own too.
func TestGatewayOfItselfOnAllAddresses(t *testing.T) {
	addrs, err := net.InterfaceAddrs()
	if err != nil || len(addrs) == 0 {
		t.Fatalf("got the addresses %v (%v), want some", addrs, err)
	}
	for _, addr := range addrs {
		ip := addr.(*net.IPNet).IP
		if ip.IsLinkLocalUnicast() { // a URL needs its zone
			continue
		}
		wantRefusal(t, nil, "is the address of this server itself", "--insecure", "--addr", "0.0.0.0:9", "--url", "http://"+net.JoinHostPort(ip.String(), "9")+"/mcp")
	}
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{"0.0.0.0:9", ":9"} {
		wantRefusal(t, nil, "is the address of this server itself", "--insecure", "--addr", addr, "--url", "http://"+strings.ToUpper(name)+":9/mcp")
		mustLoad(t, nil, "--insecure", "--addr", addr, "--url", "http://"+name+".another.example:9/mcp")
	}
}

// A machine has its name with and without its domain.
func TestNameOfThisMachine(t *testing.T) {
	for _, c := range []struct {
		host, name string
		want       bool
	}{
		{"box", "box", true}, {"BOX", "box", true}, {"box.", "box", true}, {"Box.example.com", "box.Example.com", true},
		{"box", "box.example.com", true}, {"box.example.com", "box", false}, {"example.com", "box.example.com", false},
		{"bo", "box", false}, {"", "", false}, {"", "box", false},
	} {
		if got := isName(c.host, c.name); got != c.want {
			t.Errorf("%q on the machine %q: got %v, want %v", c.host, c.name, got, c.want)
		}
	}
}
