package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
)

// announce says where the daemon is: in the log for machines, on stdout for
// whoever started it.
func (m *Main) announce(d *daemon, l *loaded) {
	base := d.main.scheme() + "://" + reachable(d.main.listener.Addr().String())
	url := base + l.each()[0].Prefix.value + "/sse"
	admin := ""
	attrs := []any{"addr", d.main.listener.Addr().String(), "version", buildinfo.Read().Version}
	if len(l.servers) == 0 {
		attrs = append(attrs, "url", url, "server", l.served())
	} else {
		attrs = append(attrs, slog.Group("servers", urls(base, l.servers)...))
	}
	if d.admin != nil {
		admin = d.admin.scheme() + "://" + reachable(d.admin.listener.Addr().String())
		attrs = append(attrs, "admin", admin)
	}
	d.log.Info("serving", attrs...)
	banner(m.Stdout, base, l)
	if m.Ready != nil {
		m.Ready(url, admin)
	}
}

// urls are the streams of several servers, by name.
func urls(base string, servers []*loaded) []any {
	var attrs []any
	for _, s := range servers {
		attrs = append(attrs, s.server, base+s.Prefix.value+"/sse")
	}
	return attrs
}

// served names what is behind the gateway.
func (l *loaded) served() string {
	switch l.kind() {
	case kindDemo:
		return "demo"
	case kindRemote:
		return l.place()
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

// banner shows the URLs and how each client takes one.
func banner(w io.Writer, base string, l *loaded) {
	first := l.each()[0]
	name, what := "my-server", "what "+l.served()+" offers"
	if first.kind() == kindDemo {
		name, what = "demo", "the demo server (tools echo, sleep, server_info)"
	}
	url := base + first.Prefix.value + "/sse"
	places := []string{"    " + url}
	if len(l.servers) > 0 {
		name, what, places = first.server, fmt.Sprintf("%d servers", len(l.servers)), listServers(base, l.servers)
	}
	flag, member := "", ""
	if l.tokens != nil {
		flag, member = ` --header "Authorization: Bearer TOKEN"`, `,"headers":{"Authorization":"Bearer TOKEN"}`
	}
	lines := []string{
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
	if len(l.servers) > 1 {
		notes = append(notes, "For the other servers put their names and URLs in.")
	}
	if len(notes) > 0 {
		lines = slices.Insert(lines, 0, append(notes, "")...)
	}
	head := append([]string{fmt.Sprintf("sse-server serves %s at", what), ""}, places...)
	lines = slices.Concat(head, []string{""}, lines)
	fmt.Fprintln(w, strings.Join(lines, "\n"))
}

// listServers has a line for each server: its name, its URL and what it is.
func listServers(base string, servers []*loaded) []string {
	width := 0
	for _, s := range servers {
		width = max(width, len(s.server))
	}
	var lines []string
	for _, s := range servers {
		lines = append(lines, fmt.Sprintf("    %-*s  %s/sse  (%s)", width, s.server, base+s.Prefix.value, s.served()))
	}
	return lines
}
