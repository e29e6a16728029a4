package main

import (
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
)

// announce says where the daemon is: in the log for programs, on stdout for people.
func (m *Main) announce(d *daemon, c *config.Config) {
	main, admin := d.endpoints[0], ""
	base := main.url()
	where := []any{"url", base + pathOf(c, c.Each()[0]), "server", c.Served()}
	if len(c.Servers) > 0 {
		var streams []any // by name
		for _, s := range c.Servers {
			streams = append(streams, s.Name, base+pathOf(c, s))
		}
		where = []any{slog.Group("servers", streams...)}
	}
	if len(d.endpoints) > 1 {
		admin = d.endpoints[1].url()
		where = append(where, "admin", admin)
	}
	d.log.With("addr", main.listener.Addr().String(), "version", buildinfo.Read().Version).Info("serving", where...)
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
	return c.PrefixOf(s) + gateway.Path
}

var paths = map[string]string{gateway.TransportSSE: "/sse", gateway.TransportStreamable: gateway.Path + "  (Streamable HTTP)"}

// banner shows the URLs and how each client takes the first.
func banner(w io.Writer, base string, c *config.Config) {
	first := c.Each()[0]
	name, what := "my-server", "what "+c.Served()+" offers"
	switch {
	case len(c.Servers) > 0:
		name, what = first.Name, fmt.Sprintf("%d servers", len(c.Servers))
	case first.Kind() == config.OfDemo:
		name, what = "demo", "the demo server (tools echo, sleep)"
	}
	fmt.Fprintf(w, "sse-server serves %s at\n\n", what)
	url, kind := base+pathOf(c, first), "http"
	for _, s := range c.Each() {
		for _, transport := range s.Transports {
			fmt.Fprintf(w, "    %s%s\n", base+c.PrefixOf(s), paths[transport])
		}
	}
	if slices.Contains(first.Transports, gateway.TransportSSE) {
		kind = "sse"
	}
	flag, member := "", ""
	if c.Tokens != nil {
		flag, member = ` --header "Authorization: Bearer TOKEN"`, `,"headers":{"Authorization":"Bearer TOKEN"}`
	}
	fmt.Fprintf(w, "\nClaude Code   claude mcp add --transport %s %s %s%s\n", kind, name, url, flag)
	fmt.Fprintf(w, "Cursor, Trae  {\"mcpServers\":{%q:{\"url\":%q%s}}}\n", name, url, member)
	fmt.Fprintf(w, "VS Code       {\"servers\":{%q:{\"type\":%q,\"url\":%q%s}}}\n", name, kind, url, member)
	fmt.Fprintf(w, "Inspector     npx @modelcontextprotocol/inspector --cli %s --transport %s --method tools/list%s\n\n", url, kind, flag)
}
