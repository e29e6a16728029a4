package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/background"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/setup"
	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
)

// announce says where the daemon is: in the log for programs, on stdout for people.
func (m *Main) announce(d *daemon, c *config.Config) {
	mainEndpoint, admin := d.endpoints[0], ""
	base, first := mainEndpoint.URL(), c.Each()[0]
	where := []any{"url", base + c.PathOf(first), "server", c.Title(first)}
	if len(c.Servers) > 0 {
		var urls []any // by name
		for _, s := range c.Servers {
			urls = append(urls, s.Name, base+c.PathOf(s))
		}
		where = []any{slog.Group("servers", urls...)}
	}
	if len(c.Views) > 0 {
		var urls []any // by name
		for _, v := range c.Views {
			urls = append(urls, v.Name, base+c.PathOf(v.Server))
		}
		where = append(where, slog.Group("views", urls...))
	}
	if len(d.endpoints) > 1 {
		admin = d.endpoints[1].URL()
		where = append(where, "admin", admin)
	}
	if d.common.Cluster != nil {
		where = append(where, "cluster", c.ClusterName, "replica",
			httpcheck.ClusterOf(d.common.Cluster).Replicas()[0].Name)
	}
	d.log.With("addr", mainEndpoint.Addr().String(), "version", buildinfo.Read().Version).Info("serving", where...)
	if mainEndpoint.Option == background.SharedOption { // nobody reads it
		return
	}
	var text bytes.Buffer // in one piece: the log is on the same terminal
	setup.Banner(&text, base, mainEndpoint.Elsewhere(), c)
	d.tellProcesses(&text)
	if admin != "" {
		fmt.Fprintf(&text, "Status page   %s/status\n\n", admin)
	}
	if d.common.Cluster != nil {
		fmt.Fprintf(&text, "Replica       %s of the cluster %s\n\n",
			httpcheck.ClusterOf(d.common.Cluster).Replicas()[0].Name,
			c.ClusterName)
	}
	_, _ = text.WriteTo(m.Stdout)
	if m.Ready != nil {
		m.Ready(base+c.PathOf(first), admin)
	}
}

// tellProcesses says how many processes run although nobody has called.
func (d *daemon) tellProcesses(w io.Writer) {
	warm := 0
	for _, gw := range d.gateways {
		if n, always := forprogram.Of(gw).Warm(); always {
			warm += n
		}
	}
	if warm > 0 {
		fmt.Fprintf(w, "Processes     %d started ahead (--warm), and one for each client that calls\n\n", warm)
	}
}
