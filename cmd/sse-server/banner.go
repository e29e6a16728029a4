package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
	"github.com/mcp-sse/mcp-sse/streamable"
)

// announce says where the daemon is: in the log for programs, on stdout for people.
func (m *Main) announce(d *daemon, c *config.Config) {
	base := d.main.scheme() + "://" + reachable(d.main.listener.Addr().String())
	url, admin := base+pathOf(c, c.Each()[0]), ""
	attrs := []any{"addr", d.main.listener.Addr().String(), "version", buildinfo.Read().Version}
	var streams []any // of several servers, by name
	for _, s := range c.Servers {
		streams = append(streams, s.Name, base+pathOf(c, s))
	}
	if streams == nil {
		attrs = append(attrs, "url", url, "server", c.Served())
	} else {
		attrs = append(attrs, slog.Group("servers", streams...))
	}
	if d.admin != nil {
		admin = d.admin.scheme() + "://" + reachable(d.admin.listener.Addr().String())
		attrs = append(attrs, "admin", admin)
	}
	d.log.Info("serving", attrs...)
	banner(m.Stdout, base, c)
	if m.Ready != nil {
		m.Ready(url, admin)
	}
}

// pathOf returns the path that most clients of a server take: that of HTTP+SSE, if it
// is served.
func pathOf(c *config.Config, s *config.Server) string {
	if slices.Contains(s.Transports, gateway.TransportSSE) {
		return c.PrefixOf(s) + "/sse"
	}
	return c.PrefixOf(s) + streamable.Path
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

// isUnspecified reports whether a host to listen on means all addresses.
func isUnspecified(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// banner shows the URLs and how each client takes one.
func banner(w io.Writer, base string, c *config.Config) {
	first := c.Each()[0]
	name, what := "my-server", "what "+c.Served()+" offers"
	if first.Demo() {
		name, what = "demo", "the demo server (tools echo, sleep, server_info)"
	}
	url, kind := base+pathOf(c, first), "sse"
	places := []string{"    " + url}
	switch {
	case !slices.Contains(first.Transports, gateway.TransportSSE):
		kind = "http"
	case slices.Contains(first.Transports, gateway.TransportStreamable):
		places = append(places, "    "+base+c.PrefixOf(first)+streamable.Path+"  (Streamable HTTP)")
	}
	if len(c.Servers) > 0 {
		name, what, places = first.Name, fmt.Sprintf("%d servers", len(c.Servers)), listServers(base, c)
	}
	flag, member := "", ""
	if c.Tokens != nil {
		flag, member = ` --header "Authorization: Bearer TOKEN"`, `,"headers":{"Authorization":"Bearer TOKEN"}`
	}
	lines := []string{
		fmt.Sprintf("Claude Code   claude mcp add --transport %s %s %s%s", kind, name, url, flag),
		fmt.Sprintf(`Cursor, Trae  {"mcpServers":{%q:{"url":%q%s}}}`, name, url, member),
		fmt.Sprintf(`VS Code       {"servers":{%q:{"type":%q,"url":%q%s}}}`, name, kind, url, member),
		fmt.Sprintf("Inspector     npx @modelcontextprotocol/inspector --cli %s --transport %s --method tools/list%s", url, kind, flag),
		"",
	}
	var notes []string
	if host, _, err := net.SplitHostPort(string(c.Addr)); err == nil && isUnspecified(host) {
		notes = append(notes, "From another machine, put this one's name in place of localhost.")
	}
	if c.Exposed(string(c.Addr)) {
		notes = append(notes, "WARNING: no token is asked for. Whoever reaches this port can run the tools.")
	}
	if len(c.Servers) > 1 {
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
func listServers(base string, c *config.Config) []string {
	width := 0
	for _, s := range c.Servers {
		width = max(width, len(s.Name))
	}
	var lines []string
	for _, s := range c.Servers {
		lines = append(lines, fmt.Sprintf("    %-*s  %s  (%s)", width, s.Name, base+pathOf(c, s), s.Served()))
	}
	return lines
}
