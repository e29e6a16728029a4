package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
	"github.com/mcp-sse/mcp-sse/streamable"
)

// announce says where the daemon is: in the log for programs, on stdout for people.
func (m *Main) announce(d *daemon, c *config.Config) {
	base, admin := d.main.url(), ""
	where := []any{"url", base + pathOf(c, c.Each()[0]), "server", c.Served()}
	if len(c.Servers) > 0 {
		var streams []any // by name
		for _, s := range c.Servers {
			streams = append(streams, s.Name, base+pathOf(c, s))
		}
		where = []any{slog.Group("servers", streams...)}
	}
	if d.admin != nil {
		admin = d.admin.url()
		where = append(where, "admin", admin)
	}
	d.log.With("addr", d.main.listener.Addr().String(), "version", buildinfo.Read().Version).Info("serving", where...)
	banner(m.Stdout, base, c)
	if m.Ready != nil {
		m.Ready(base+pathOf(c, c.Each()[0]), admin)
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

// isUnspecified reports whether a host to listen on means all addresses.
func isUnspecified(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// banner shows the URLs and how each client takes one.
func banner(w io.Writer, base string, c *config.Config) {
	first := c.Each()[0]
	name, what := "my-server", "what "+c.Served()+" offers"
	if first.Kind() == config.OfDemo {
		name, what = "demo", "the demo server (tools echo, sleep, server_info)"
	}
	url, kind := base+pathOf(c, first), "sse"
	if !slices.Contains(first.Transports, gateway.TransportSSE) {
		kind = "http"
	}
	places := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(c.Servers) == 0 {
		fmt.Fprintf(w, "sse-server serves %s at\n\n    %s\n", what, url)
		if kind == "sse" && slices.Contains(first.Transports, gateway.TransportStreamable) {
			fmt.Fprintf(w, "    %s  (Streamable HTTP)\n", base+c.PrefixOf(first)+streamable.Path)
		}
	} else {
		name = first.Name
		fmt.Fprintf(w, "sse-server serves %d servers at\n\n", len(c.Servers))
	}
	for _, s := range c.Servers {
		fmt.Fprintf(places, "    %s\t%s\t(%s)\n", s.Name, base+pathOf(c, s), s.Served())
	}
	places.Flush()
	fmt.Fprintln(w)
	var notes []string
	if host, _, err := net.SplitHostPort(string(c.Addr)); err == nil && isUnspecified(host) {
		notes = append(notes, "From another machine, put this one's name in place of localhost.\n")
	}
	if c.Exposed(string(c.Addr)) {
		notes = append(notes, "WARNING: no token is asked for. Whoever reaches this port can run the tools.\n")
	}
	if len(c.Servers) > 1 {
		notes = append(notes, "For the other servers put their names and URLs in.\n")
	}
	if len(notes) > 0 {
		fmt.Fprintln(w, strings.Join(notes, ""))
	}
	flag, member := "", ""
	if c.Tokens != nil {
		flag, member = ` --header "Authorization: Bearer TOKEN"`, `,"headers":{"Authorization":"Bearer TOKEN"}`
	}
	fmt.Fprintf(w, "Claude Code   claude mcp add --transport %s %s %s%s\n", kind, name, url, flag)
	fmt.Fprintf(w, "Cursor, Trae  {\"mcpServers\":{%q:{\"url\":%q%s}}}\n", name, url, member)
	fmt.Fprintf(w, "VS Code       {\"servers\":{%q:{\"type\":%q,\"url\":%q%s}}}\n", name, kind, url, member)
	fmt.Fprintf(w, "Inspector     npx @modelcontextprotocol/inspector --cli %s --transport %s --method tools/list%s\n\n", url, kind, flag)
}
