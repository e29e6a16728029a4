package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/background"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
)

// announce says where the daemon is: in the log for programs, on stdout for people.
func (m *Main) announce(d *daemon, c *config.Config) {
	main, admin := d.endpoints[0], ""
	base, first := main.URL(), c.Each()[0]
	where := []any{"url", base + pathOf(c, first), "server", c.Title(first)}
	if len(c.Servers) > 0 {
		var urls []any // by name
		for _, s := range c.Servers {
			urls = append(urls, s.Name, base+pathOf(c, s))
		}
		where = []any{slog.Group("servers", urls...)}
	}
	if len(d.endpoints) > 1 {
		admin = d.endpoints[1].URL()
		where = append(where, "admin", admin)
	}
	if d.common.Cluster != nil {
		where = append(where, "cluster", c.ClusterName, "replica", httpcheck.ClusterOf(d.common.Cluster).Replicas()[0].Name)
	}
	d.log.With("addr", main.Addr().String(), "version", buildinfo.Read().Version).Info("serving", where...)
	if main.Option == background.SharedOption { // nobody reads it
		return
	}
	var text bytes.Buffer // in one piece: the log is on the same terminal
	banner(&text, base, main.Elsewhere(), c)
	d.tellProcesses(&text)
	if admin != "" {
		fmt.Fprintf(&text, "Status page   %s/status\n\n", admin)
	}
	if d.common.Cluster != nil {
		fmt.Fprintf(&text, "Replica       %s of the cluster %s\n\n", httpcheck.ClusterOf(d.common.Cluster).Replicas()[0].Name,
			c.ClusterName)
	}
	_, _ = text.WriteTo(m.Stdout)
	if m.Ready != nil {
		m.Ready(base+pathOf(c, first), admin)
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

// pathOf returns the path of a server.
func pathOf(c *config.Config, s *config.Server) string { return c.PrefixOf(s) + gateway.Path }

// banner shows the URL of each server, a first command, and what to paste into which client.
// elsewhere is the address for other machines, which may be empty.
func banner(w io.Writer, base, elsewhere string, c *config.Config) {
	first, isOAuth := c.Each()[0], len(c.OAuth) > 0
	if isOAuth { // which tokens are for
		base, elsewhere = strings.TrimSuffix(c.PublicURL, "/"), ""
	}
	what := c.Title(first)
	if first.Kind() == config.OfDemo && len(c.Servers) == 0 {
		what = "the demo server (tools echo, sleep)"
	}
	if at := first.Served(); strings.Contains(at, "://") && len(c.Servers) == 0 {
		what += ", " + at + ","
	}
	if len(c.Servers) > 1 {
		what = fmt.Sprintf("%d servers", len(c.Servers))
	}
	fmt.Fprintf(w, "sse-server serves %s at\n\n", what)
	for _, s := range c.Each() {
		fmt.Fprintf(w, "    %s\n", base+pathOf(c, s))
	}
	if elsewhere != "" {
		fmt.Fprint(w, "\nand, for other machines, at\n\n")
		for _, s := range c.Each() {
			fmt.Fprintf(w, "    %s\n", elsewhere+pathOf(c, s))
		}
	}
	tellOfPage(w, base, c)
	tellOfClients(w, base, c)
}

// inBanner are the clients that the banner has a line for; those that take the same share one.
var inBanner = []string{"claude-code", "cursor", "trae", "vs-code"}

// tellOfClients shows what to paste: for the first server alone where a command just tries it.
func tellOfClients(w io.Writer, base string, c *config.Config) {
	servers := serversOf(c, base)
	first := servers[:1]
	if c.Each()[0].Kind() == config.OfDemo {
		first[0].Call = `"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}`
	}
	text := func(name string, servers []clients.Server) (title, text string) {
		client, _ := clients.Named(name) // it is in the table
		if document := client.Entry.Document(servers); document != nil && name != "claude-code" {
			return client.Title, string(document)
		}
		return client.Title, client.Entry.Text(servers)
	}
	if !first[0].NeedsSession {
		_, curl := text("curl", first)
		fmt.Fprintf(w, "\n%s\n", curl)
	}
	var titles, texts []string
	for _, name := range inBanner {
		title, text := text(name, servers)
		if last := len(texts) - 1; last >= 0 && texts[last] == text {
			titles[last] += ", " + title
			continue
		}
		titles, texts = append(titles, title), append(texts, text)
	}
	title, inspector := text("inspector", first)
	titles, texts = append(titles, title), append(texts, inspector)
	fmt.Fprintln(w)
	for i, title := range titles {
		for line := range strings.Lines(texts[i]) {
			fmt.Fprintf(w, "%-13s %s\n", title, strings.TrimSuffix(line, "\n"))
			title = ""
		}
	}
	fmt.Fprintln(w)
}

// serversOf returns the servers of c as clients are told of them, below a URL.
func serversOf(c *config.Config, base string) (servers []clients.Server) {
	program := ourselves(os.Executable())
	for _, s := range c.Each() {
		isSSE := !slices.Contains(s.Transports, string(gateway.TransportStreamable))
		servers = append(servers, clients.Server{
			Name: c.Title(s), URL: base + pathOf(c, s), SSE: isSSE, NeedsSession: isSSE || !s.AutoInitialize,
			Token: c.Tokens != nil || len(c.OAuth) > 0, Issuer: len(c.OAuth) > 0, Program: program,
		})
	}
	return servers
}

// tellOfPage tells people of the page of the server, or of the list of several, where pages are served.
func tellOfPage(w io.Writer, base string, c *config.Config) {
	switch {
	case !c.ServesPage():
	case len(c.Servers) > 1:
		fmt.Fprintf(w, "\nOpen %s/ in a browser to try them.\n", base)
	default:
		fmt.Fprintf(w, "\nOpen %s in a browser to try it.\n", base+pathOf(c, c.Each()[0]))
	}
}
