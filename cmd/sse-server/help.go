package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

const usage = `Usage: sse-server [flags] [-- command args...]

Serves an MCP server over HTTP+SSE at /sse: the command given after --, started
once for each client, or a built-in demo server without one.

  sse-server                                        the demo server
  sse-server -- npx -y @modelcontextprotocol/server-everything

Each flag below may also be given as an environment variable (its name in
capitals after SSE_SERVER_, as shown) and as a key of the file that --config
names. A flag wins over a variable, a variable over the file. A DURATION has a
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
// effect, with the origin of each that is not the default. The options of a
// child process are left out without one, as the file would be refused. The
// environment is a comment: its values may be secrets and are not shown.
func (l *loaded) effective() string {
	var b strings.Builder
	line := func(key, value, origin string) {
		fmt.Fprintf(&b, "%s: %s", key, value)
		if origin != "" {
			fmt.Fprintf(&b, "  # %s", origin)
		}
		b.WriteByte('\n')
	}
	if len(l.command) > 0 {
		line(commandKey, yamlList(l.command), "")
	}
	for _, flag := range l.flags {
		switch {
		case !inFile(flag), ofChild(flag) && len(l.command) == 0:
		case len(l.Env.values) > 0 && flag.Name == "env":
			line("# env", l.Env.String(), l.origin["env"])
		default:
			line(flag.Name, flag.Target.Addr().Interface().(setting).String(), l.origin[flag.Name])
		}
	}
	return b.String()
}
