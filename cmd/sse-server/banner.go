package main

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
)

// announce says where the daemon is: in the log for programs, on stdout for people.
func (m *Main) announce(d *daemon, c *config.Config) {
	main, admin := d.endpoints[0], ""
	base, first := main.url(), c.Each()[0]
	where := []any{"url", base + pathOf(c, first), "server", c.Served()}
	if len(c.Servers) > 0 {
		var urls []any // by name
		for _, s := range c.Servers {
			urls = append(urls, s.Name, base+pathOf(c, s))
		}
		where = []any{slog.Group("servers", urls...)}
	}
	if len(d.endpoints) > 1 {
		admin = d.endpoints[1].url()
		where = append(where, "admin", admin)
	}
	if d.common.Cluster != nil {
		where = append(where, "cluster", c.ClusterName, "replica", d.common.Cluster.Replicas()[0].Name)
	}
	d.log.With("addr", main.conns.Addr().String(), "version", buildinfo.Read().Version).Info("serving", where...)
	banner(m.Stdout, base, c)
	d.tellProcesses(m.Stdout)
	if admin != "" {
		fmt.Fprintf(m.Stdout, "Status page   %s/status\n\n", admin)
	}
	if d.common.Cluster != nil {
		fmt.Fprintf(m.Stdout, "Replica       %s of the cluster %s\n\n", d.common.Cluster.Replicas()[0].Name,
			c.ClusterName)
	}
	if m.Ready != nil {
		m.Ready(base+pathOf(c, first), admin)
	}
}

// tellProcesses says how many processes run although nobody has called.
func (d *daemon) tellProcesses(w io.Writer) {
	warm := 0
	for _, gw := range d.gateways {
		warm += gw.Warm()
	}
	if warm > 0 {
		fmt.Fprintf(w, "Processes     %d started ahead (--warm), and one for each client that calls\n\n", warm)
	}
}

// pathOf returns the path of a server.
func pathOf(c *config.Config, s *config.Server) string { return c.PrefixOf(s) + gateway.Path }

// banner shows the URL of each server, a first command, and how each client takes the first
// URL.
func banner(w io.Writer, base string, c *config.Config) {
	first, isOAuth := c.Each()[0], len(c.OAuth) > 0
	if isOAuth { // which tokens are for
		base = strings.TrimSuffix(c.PublicURL, "/")
	}
	url := base + pathOf(c, first)
	name, what, call := "my-server", "what "+c.Served()+" offers", `"tools/list"`
	if first.Kind() == config.OfDemo {
		name, what, call = "demo", "the demo server (tools echo, sleep)",
			`"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}`
	}
	if len(c.Servers) > 0 {
		name, what = first.Name, fmt.Sprintf("%d servers", len(c.Servers))
	}
	fmt.Fprintf(w, "sse-server serves %s at\n\n", what)
	for _, s := range c.Each() {
		fmt.Fprintf(w, "    %s\n", base+pathOf(c, s))
	}
	const token = `"Authorization: Bearer TOKEN"`
	curl, inspector, flag, member := "", "", "", ""
	if c.Tokens != nil || isOAuth {
		curl, inspector = " -H "+token, " --header "+token
	}
	if c.Tokens != nil && !isOAuth { // else these clients get one themselves
		flag, member = inspector, `,"headers":{"Authorization":"Bearer TOKEN"}`
	}
	kind := "sse"
	if slices.Contains(first.Transports, gateway.TransportStreamable) {
		kind = "http"
		if first.AutoInitialize { // else a request needs a session
			fmt.Fprintf(w, "\ncurl %s%s -H 'Content-Type: application/json' -d '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":%s}'\n", url, curl, call)
		}
	}
	fmt.Fprintf(w, "\nClaude Code   claude mcp add --transport %s %s %s%s\n", kind, name, url, flag)
	fmt.Fprintf(w, "Cursor, Trae  {\"mcpServers\":{%q:{\"url\":%q%s}}}\n", name, url, member)
	fmt.Fprintf(w, "VS Code       {\"servers\":{%q:{\"type\":%q,\"url\":%q%s}}}\n", name, kind, url, member)
	fmt.Fprintf(w, "Inspector     npx @modelcontextprotocol/inspector --cli %s --transport %s --method tools/list%s\n\n", url, kind, inspector)
}
