package setup

import (
	"fmt"
	"io"
	"strings"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/shellword"
)

// Banner shows the URL of each server, a first command, and what to paste into which client.
// elsewhere is the address for other machines, which may be empty.
func Banner(w io.Writer, base, elsewhere string, c *config.Config) {
	first := c.Each()[0]
	if c.PublicURL != "" { // the address that users type, and with oauth the one that tokens are for
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
	tellAddresses(w, base, c)
	if elsewhere != "" {
		fmt.Fprint(w, "\nand, for other machines, at\n\n")
		tellAddresses(w, elsewhere, c)
	}
	tellOfPage(w, base, elsewhere, c)
	tellOfClients(w, base, c)
}

// tellAddresses shows the URL of each view, with what it has, and of each server.
func tellAddresses(w io.Writer, base string, c *config.Config) {
	wide := 0
	for _, v := range c.Views {
		wide = max(wide, len(base+c.PathOf(v.Server)))
	}
	for _, v := range c.Views {
		fmt.Fprintf(w, "    %-*s   %s\n", wide, base+c.PathOf(v.Server), partsOf(v, c))
	}
	for _, s := range c.Each() {
		fmt.Fprintf(w, "    %s\n", base+c.PathOf(s))
	}
}

// maxParts is how many servers of a view the banner names.
const maxParts = 5

// partsOf says which servers a view has.
func partsOf(v *config.View, c *config.Config) string {
	if len(v.Members) == len(c.Servers) && len(v.Members) > 1 {
		return "all of them"
	}
	var names []string
	for _, m := range v.Members[:min(maxParts, len(v.Members))] {
		names = append(names, m.Name)
	}
	text := strings.Join(names, ", ")
	if more := len(v.Members) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// inBanner are the clients that the banner has a line for; those that take the same share one.
var inBanner = []string{"claude-code", "cursor", "trae", "vs-code"}

// tellOfClients shows what to paste: for the first server alone where a command just tries it.
func tellOfClients(w io.Writer, base string, c *config.Config) {
	servers := serversOf(c, base, c.Pasted())
	first := servers[:1]
	if c.Pasted()[0].Kind() == config.OfDemo {
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
	if command := connectCommand(c, servers[0]); command != "" {
		titles, texts = append(titles, "Others"), append(texts, command)
	}
	fmt.Fprintln(w)
	for i, title := range titles {
		for line := range strings.Lines(texts[i]) {
			fmt.Fprintf(w, "%-13s %s\n", title, strings.TrimSuffix(line, "\n"))
			title = ""
		}
	}
	fmt.Fprintln(w)
}

// connectCommand returns the command that prints what any client needs for what c serves, of which first comes first.
// It is empty where that would take more options than the file has.
func connectCommand(c *config.Config, first clients.Server) string {
	const command = "sse-server connect CLIENT"
	isElsewhere := c.Config == "" // not all that connect has to know is in the file
	for _, option := range []string{
		"addr", "public-url", "insecure", "tls-cert", "tls-key", "auth-tokens-file", "transports",
	} {
		isElsewhere = isElsewhere || c.Given(option) && !strings.HasPrefix(c.Place(option), c.Config)
	}
	switch {
	case !isElsewhere:
		return command + " --config " + shellword.Quote(c.Config)
	case first.Token, first.SSE, len(c.Pasted()) > 1:
		return ""
	}
	return command + " --name " + first.Name + " --url " + shellword.Quote(first.URL)
}

// tellOfPage tells people of the page of the server, or of the list of several, where pages are served, and why other
// machines get none.
func tellOfPage(w io.Writer, base, elsewhere string, c *config.Config) {
	if !c.ServesPage() {
		return
	}
	at, what := base+c.PathOf(c.Each()[0]), "it"
	if len(c.Endpoints()) > 1 {
		at, what = base+"/", "them"
	}
	fmt.Fprintf(w, "\nOpen %s in a browser to try %s.\n", at, what)
	if elsewhere != "" && c.KeepsPageHere() {
		fmt.Fprint(w, "Browsers on other machines get no page without --auth-tokens-file, oauth or --page.\n")
	}
}
