package config

import (
	"fmt"
	"strings"
)

const usage = `Usage: sse-server [flags] [-- command args...]
       sse-server stdio [flags] [-- command args...]
       sse-server check [flags] [-- command args...]
       sse-server help | version

Serves an MCP server over HTTP+SSE at /sse and over Streamable HTTP at /mcp. The
server is one of:

  sse-server                                        the built-in demo server
  sse-server -- npx -y @modelcontextprotocol/server-everything
                                                    a command, started once for each client
  sse-server --url https://mcp.example.com/mcp --header 'Authorization: Bearer ${TOKEN}'
                                                    a remote server

A configuration file can list several servers under the key servers. Each is then
served at /NAME/sse and /NAME/mcp.

"sse-server stdio" serves one agent on stdin and stdout, as does --stdio: for clients
that only start programs.

"sse-server check" checks the configuration and prints the effective settings, as
does --check-config. "help" and "version" are short for --help and --version.

Every flag can also be set by the environment variable shown at its end, or in the
file that --config names, under the name of the flag without the dashes. Flags win
over variables, and variables win over the file. A DURATION needs a unit: 500ms,
15s, 2m, 1h. BYTES may have one: 1048576, 512KiB, 4MiB, 1GiB.
`

// helpWidth is how many columns --help takes.
const helpWidth = 100

// Help returns the text of --help.
func Help() string {
	var b strings.Builder
	b.WriteString(usage)
	group := ""
	for _, o := range newConfig(nil).rows {
		if !o.isFlag() {
			continue
		}
		if o.group != group {
			group = o.group
			fmt.Fprintf(&b, "\n%s\n", group)
		}
		text := o.meaning()
		if o.inEnv() {
			text += fmt.Sprintf(" [default %s] $%s", o.defaultText(), envName(o.name))
		}
		fmt.Fprintf(&b, "  %s\n%s", o.form(), wrap(text))
	}
	return b.String()
}

// form is the flag as one types it.
func (o *option) form() string {
	form := "--" + o.name
	if o.value.invertible {
		form = "--[no-]" + o.name
	}
	if o.short != "" {
		form = o.short + ", " + form
	}
	return strings.TrimSpace(form + " " + o.value.unit)
}

// meaning is the help with what 0 means.
func (o *option) meaning() string { return strings.TrimSpace(o.help + " " + o.value.zero) }

// defaultText returns the default, if no source has set the option.
func (o *option) defaultText() string {
	switch text := o.value.text(); text {
	case `""`, "[]", "{}":
		return "none"
	default:
		if list, ok := strings.CutPrefix(text, "["); ok { // a flag takes it so
			return strings.ReplaceAll(strings.TrimSuffix(list, "]"), ", ", ",")
		}
		return strings.Trim(text, `"`)
	}
}

// wrap breaks a text into indented lines.
func wrap(text string) string {
	const indent = "       "
	var b strings.Builder
	line := indent
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > helpWidth {
			b.WriteString(line + "\n")
			line = indent
		}
		line += " " + word
	}
	return b.String() + line + "\n"
}

// Effective returns the settings as a configuration file that has the same effect,
// with the origin of each that is not a default. It leaves out options of another
// kind of server, because the file would be refused, and for one of several servers
// those that are not its own. What may be secret is not shown: the option is then a
// comment.
func (c *Config) Effective() string {
	var b strings.Builder
	several := len(c.Servers) > 0
	c.writeOptions(&b, "", func(o option) bool {
		if several {
			return o.where != serving
		}
		return o.isFor(c.Kind()) && (o.name != "url" || c.Kind() == Remote)
	})
	if several {
		fmt.Fprintf(&b, "%s:\n", serversKey)
	}
	for _, s := range c.Servers {
		fmt.Fprintf(&b, "  %s:\n", s.Options.Name)
		s.writeOptions(&b, "    ", func(o option) bool { return s.given(o.name) })
	}
	return b.String()
}

// writeOptions writes those options of the file that are wanted.
func (c *Config) writeOptions(b *strings.Builder, indent string, wanted func(option) bool) {
	for _, o := range c.rows {
		if !o.inFile() || !wanted(o) {
			continue
		}
		comment := ""
		if o.value.secret != nil && o.value.secret() {
			comment = "# "
		}
		fmt.Fprintf(b, "%s%s%s: %s", indent, comment, o.name, o.value.text())
		if c.given(o.name) && o.isFlag() {
			b.WriteString("  # " + c.Name(o.name))
		}
		b.WriteByte('\n')
	}
}
