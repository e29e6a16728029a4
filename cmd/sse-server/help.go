package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

const usage = `Usage: sse-server [flags] [-- command args...]
       sse-server check [flags] [-- command args...]
       sse-server help | version

Serves an MCP server over HTTP+SSE at /sse: the command given after --, started
once for each client; the remote server of --url; or a built-in demo server.
Several servers stand in a file under servers, each at /NAME/sse.

  sse-server                                        the demo server
  sse-server -- npx -y @modelcontextprotocol/server-everything
  sse-server --url https://mcp.example.com/mcp --header 'Authorization: Bearer ${TOKEN}'

Each flag below may also be given as an environment variable (its name in
capitals after SSE_SERVER_, as shown) and as a key of the file that --config
names. The words check, help and version stand for --check-config, --help and
--version. A flag wins over a variable, a variable over the file. A DURATION has a
unit: 500ms, 15s, 2m, 1h. BYTES may: 1048576, 512KiB, 4MiB, 1GiB.
`

// printHelp puts the usage, which kong cannot know, before its list of flags.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	if _, err := io.WriteString(ctx.Stdout, usage); err != nil {
		return fmt.Errorf("print help: %w", err)
	}
	return kong.DefaultHelpPrinter(options, ctx)
}

// helpText is the help of one flag with its default and its variable.
func helpText(value *kong.Value) string {
	flag := value.Flag
	if flag == nil || !inEnv(flag) {
		return value.Help
	}
	return fmt.Sprintf("%s [%s] $%s", value.Help, defaultText(flag), envName(flag.Name))
}

// defaultText is a flag's default for people.
func defaultText(flag *kong.Flag) string {
	switch {
	case flag.Default != "":
		return "default " + flag.Default
	case flag.IsBool():
		return "default false"
	default:
		return "default none"
	}
}

// effective lists the settings as a configuration file that has the same
// effect, with the origin of each that is not the default. The options of another
// kind of server are left out, as the file would be refused; of one of several
// servers all that are not its own. The environment and the headers are a
// comment: their values may be secrets and are not shown.
func (l *loaded) effective() string {
	var b strings.Builder
	l.writeOptions(&b, "", func(flag *kong.Flag) bool {
		if len(l.servers) > 0 { // the options of a kind are in its servers
			return flag.Group.Key != "remote"
		}
		return isFor(flag, l.kind()) && (flag.Name != "url" || l.kind() == kindRemote)
	})
	if len(l.servers) > 0 {
		fmt.Fprintf(&b, "%s:\n", serversKey)
	}
	for _, s := range l.servers {
		fmt.Fprintf(&b, "  %s:\n", s.server)
		s.writeOptions(&b, "    ", func(flag *kong.Flag) bool { return s.given(flag.Name) })
	}
	return b.String()
}

// writeOptions writes the command and those options that are wanted.
func (l *loaded) writeOptions(b *strings.Builder, indent string, wanted func(*kong.Flag) bool) {
	line := func(key, value, origin string) {
		fmt.Fprintf(b, "%s%s: %s", indent, key, value)
		if origin != "" {
			fmt.Fprintf(b, "  # %s", origin)
		}
		b.WriteByte('\n')
	}
	if len(l.command) > 0 {
		line(commandKey, yamlList(l.command), "")
	}
	for _, flag := range l.flags {
		if !inFile(flag) || !wanted(flag) {
			continue
		}
		key, value := flag.Name, flag.Target.Addr().Interface().(setting).String()
		switch {
		case flag.Name == "env" && len(l.Env.values) > 0, flag.Name == "header" && len(l.Header.names) > 0:
			key = "# " + key
		case flag.Name == "url" && l.place() != l.address: // as are its query and its password
			key, value = "# "+key, yamlText(l.place())
		}
		line(key, value, l.origin[flag.Name])
	}
}
