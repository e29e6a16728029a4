package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
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
	where := []any{"url", base + pathOf(c, first), "server", c.Title(first)}
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
	var text bytes.Buffer // in one piece: the log is on the same terminal
	banner(&text, base, main.elsewhere(), c)
	d.tellProcesses(&text)
	if admin != "" {
		fmt.Fprintf(&text, "Status page   %s/status\n\n", admin)
	}
	if d.common.Cluster != nil {
		fmt.Fprintf(&text, "Replica       %s of the cluster %s\n\n", d.common.Cluster.Replicas()[0].Name,
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
		warm += gw.Warm()
	}
	if warm > 0 {
		fmt.Fprintf(w, "Processes     %d started ahead (--warm), and one for each client that calls\n\n", warm)
	}
}

// elsewhere returns the address with which other machines reach all addresses of this one; empty if the
// address is another, or there is none.
func (e *endpoint) elsewhere() string {
	at, ok := e.conns.Addr().(*net.TCPAddr)
	addrs, err := net.InterfaceAddrs()
	if !ok || !at.IP.IsUnspecified() || err != nil {
		return ""
	}
	var host string
	for _, addr := range addrs {
		one, ok := addr.(*net.IPNet)
		if !ok || !one.IP.IsGlobalUnicast() {
			continue
		}
		if host == "" || one.IP.To4() != nil && net.ParseIP(host).To4() == nil {
			host = one.IP.String()
		}
	}
	if host == "" {
		return ""
	}
	scheme := "http://"
	if e.tls {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, fmt.Sprint(at.Port))
}

// pathOf returns the path of a server.
func pathOf(c *config.Config, s *config.Server) string { return c.PrefixOf(s) + gateway.Path }

// kindOf returns the transport of a server that clients are told of, as they call it.
func kindOf(s *config.Server) string {
	if slices.Contains(s.Transports, gateway.TransportStreamable) {
		return "http"
	}
	return "sse"
}

// authorization is the header with a token that people put in.
const authorization = `"Authorization: Bearer TOKEN"`

// banner shows the URL of each server, a first command, and what to paste into which client.
// elsewhere is the address for other machines, which may be empty.
func banner(w io.Writer, base, elsewhere string, c *config.Config) {
	first, isOAuth := c.Each()[0], len(c.OAuth) > 0
	if isOAuth { // which tokens are for
		base, elsewhere = strings.TrimSuffix(c.PublicURL, "/"), ""
	}
	what, call := c.Title(first), `"tools/list"`
	if first.Kind() == config.OfDemo {
		call = `"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}`
		if len(c.Servers) == 0 {
			what = "the demo server (tools echo, sleep)"
		}
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
	url, curl, inspector, flag := base+pathOf(c, first), "", "", ""
	if c.Tokens != nil || isOAuth {
		curl, inspector = " -H "+authorization, " --header "+authorization
	}
	needsToken := c.Tokens != nil && !isOAuth // else these clients get one themselves
	if needsToken {
		flag = inspector
	}
	if kindOf(first) == "http" && first.AutoInitialize { // else a request needs a session
		fmt.Fprintf(w, "\ncurl %s%s -H 'Content-Type: application/json' -d '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":%s}'\n", url, curl, call)
	}
	label := "\nClaude Code   "
	for _, s := range c.Each() {
		fmt.Fprintf(w, "%sclaude mcp add --transport %s %s %s%s\n", label, kindOf(s), c.Title(s), base+pathOf(c, s), flag)
		label = "              "
	}
	fmt.Fprintf(w, "Cursor, Trae  {\"mcpServers\":%s}\n", entries(base, c, needsToken, false))
	fmt.Fprintf(w, "VS Code       {\"servers\":%s}\n", entries(base, c, needsToken, true))
	// Without @latest npm takes, for an older Node.js, a version that lacks --header.
	fmt.Fprintf(w, "Inspector     npx -y @modelcontextprotocol/inspector@latest --cli %s --transport %s --method tools/list%s\n\n", url, kindOf(first), inspector)
}

// tellOfPage tells people of the page of a server, where pages are served.
func tellOfPage(w io.Writer, base string, c *config.Config) {
	if c.ServesPage() {
		fmt.Fprintf(w, "\nOpen %s in a browser to try it.\n", base+pathOf(c, c.Each()[0]))
	}
}

// entries returns the servers as the configurations of clients have them, some with the type.
func entries(base string, c *config.Config, token, typed bool) string {
	type entry struct {
		Type    string            `json:"type,omitempty"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers,omitempty"`
	}
	var b strings.Builder
	separator := "{"
	for _, s := range c.Each() {
		one := entry{URL: base + pathOf(c, s)}
		if typed {
			one.Type = kindOf(s)
		}
		if token {
			one.Headers = map[string]string{"Authorization": "Bearer TOKEN"}
		}
		data, _ := json.Marshal(one) // never fails
		fmt.Fprintf(&b, "%s%q:%s", separator, c.Title(s), data)
		separator = ","
	}
	return b.String() + "}"
}
