package main

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
)

// announce says where the daemon is: in the log for machines, on stdout for
// whoever started it.
func (m *Main) announce(d *daemon, l *loaded) {
	url := d.main.scheme() + "://" + reachable(d.main.listener.Addr().String()) + l.Prefix.value + "/sse"
	admin := ""
	attrs := []any{"url", url, "addr", d.main.listener.Addr().String(), "version", buildinfo.Read().Version, "server", l.served()}
	if d.admin != nil {
		admin = d.admin.scheme() + "://" + reachable(d.admin.listener.Addr().String())
		attrs = append(attrs, "admin", admin)
	}
	d.log.Info("serving", attrs...)
	banner(m.Stdout, url, l)
	if m.Ready != nil {
		m.Ready(url, admin)
	}
}

// served names what is behind the gateway.
func (l *loaded) served() string {
	if len(l.command) == 0 {
		return "demo"
	}
	return l.command[0]
}

// reachable is addr with a host that a client on this machine can use.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if isUnspecified(host) {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// isUnspecified says whether a host to listen on means all addresses.
func isUnspecified(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// banner shows the URL and how each client takes it.
func banner(w io.Writer, url string, l *loaded) {
	name, what := "my-server", "what "+l.served()+" offers"
	if len(l.command) == 0 {
		name, what = "demo", "the demo server (tools echo, sleep, server_info)"
	}
	flag, member := "", ""
	if l.tokens != nil {
		flag, member = ` --header "Authorization: Bearer TOKEN"`, `,"headers":{"Authorization":"Bearer TOKEN"}`
	}
	lines := []string{
		fmt.Sprintf("sse-server serves %s at", what),
		"",
		"    " + url,
		"",
		fmt.Sprintf("Claude Code   claude mcp add --transport sse %s %s%s", name, url, flag),
		fmt.Sprintf(`Cursor, Trae  {"mcpServers":{%q:{"url":%q%s}}}`, name, url, member),
		fmt.Sprintf(`VS Code       {"servers":{%q:{"type":"sse","url":%q%s}}}`, name, url, member),
		fmt.Sprintf("Inspector     npx @modelcontextprotocol/inspector --cli %s --transport sse --method tools/list%s", url, flag),
		"",
	}
	var notes []string
	if host, _, err := net.SplitHostPort(l.Addr.value); err == nil && isUnspecified(host) {
		notes = append(notes, "From another machine, put this one's name in place of localhost.")
	}
	if l.exposed(l.Addr.value) {
		notes = append(notes, "WARNING: no token is asked for. Whoever reaches this port can run the tools.")
	}
	if len(notes) > 0 {
		lines = slices.Insert(lines, 4, append(notes, "")...)
	}
	fmt.Fprintln(w, strings.Join(lines, "\n"))
}
